# SPDX-License-Identifier: MIT
"""The published classification of Node profiles, as an oracle: regular expressions on the leaf name, and for leaves that say nothing
(allocation helpers, memcpy) the nearest telling caller. Reads `perf script`; shares no code, no rule file and no data with rowprof.
"""
import collections
import re

# First match wins. Names as perf prints them: demangled, no parameter lists.
LEAF = [(category, re.compile(pattern)) for category, pattern in [
    ("mutex", r"^(__GI_)*_*(pthread_mutex_|lll_lock)|^pthreadMutex(Enter|Leave)|^sqlite3_mutex_"),
    ("malloc", r"^_int_(malloc|free|realloc|memalign)|^(__libc_|__GI_|__)*(malloc|cfree|free|calloc|realloc)(@|$)|^malloc_consolidate|^unlink_chunk|^sysmalloc"
               r"|^systrim|^tcache|^operator (new|delete)|^sqlite3Mem(Malloc|Free|Realloc|Size|Roundup)|^alloc_perturb|^checked_request"),
    ("names", r"StringTable::|InternalizeString|InternalizeUtf8|^v8::internal::Utf8Decoder|StringHasher::|^v8::String::NewFromUtf8|String::IsEqualTo"
              r"|^sqlite3_column_name|^columnName|ColumnNameToName|GetCachedColumnNames"),
    ("buffers", r"ArrayBuffer(?!Allocator)|BackingStore|TypedArray|Uint8Array|ExternalMemory|_Sp_counted_base|GetNumberOfEmbedderDataFields|JSObject::InitializeBody"),
    ("capi", r"^sqlite3_(?!mutex)|^columnMem|^columnNullValue"),
    ("vdbe", r"^sqlite3[A-Z]|^btree|^pcache|^pager|^getPage|^moveTo|^releaseMemArray|^allocateCursor|^getCellInfo|^callFinaliser|^wal|^unix"
             r"|^freeP4|^vdbe|^releaseAll|^getAndInit|^cellSize|^fetchPayload|^saveCursor|^codeEqual|^closeCursor"),
    ("binding", r"^node::sqlite::|^node::BaseObject|^node::NodeArrayBufferAllocator"),
    ("objects", r"^v8::Object::New|NameDictionary|^v8::internal::Map::|TransitionsAccessor|::NewMap|InitializeMap|JSObject(?!::GetHeaderSize|Body|FromMap)|NewSlowJSObject"
                r"|PrototypeBenefits"),
]]

# Leaves that say nothing by themselves.
GENERIC = re.compile(r"Factory(Base<.*>)?::(AllocateRaw|NewFixedArrayWithMap|InitializeJSObject|New)|InitializeJSObject|JSObject::GetHeaderSize|HeapAllocator|Heap::AllocateRaw"
                     r"|^_*(mem|str)[a-z]+(_|$|@)|^v8::internal::(Factory|LocalFactory|Heap|MainAllocator|LocalHeap|AllocationResult|HandleScope|Isolate)\b|^v8::HandleScope|^v8::internal::HeapObject")

CONTEXT = [(category, re.compile(pattern)) for category, pattern in [
    ("names", r"NewFromUtf8|InternalizeUtf8"),
    ("strings", r"NewFromOneByte"),
    ("buffers", r"ArrayBuffer::New|Uint8Array::New|BackingStore"),
    ("objects", r"^v8::Object::New|NameDictionary"),
    ("arrays", r"^v8::Array::New"),
    ("gc", r"Heap::CollectGarbage|Scavenge"),
    ("vdbe", r"^sqlite3VdbeExec"),
    ("capi", r"^sqlite3_"),
]]


def classify(stack):
    """Category of one stack: a list of (symbol, dso), leaf first."""
    leaf, dso = stack[0]
    if dso.startswith("[kernel") or dso == "[unknown]" and leaf.startswith("["):
        return "kernel"
    if not GENERIC.search(leaf):
        for category, pattern in LEAF:
            if pattern.search(leaf):
                return category
        if "v8::" not in leaf:
            return "rest"
    for symbol, _ in stack[1:]:
        for category, pattern in CONTEXT:
            if pattern.search(symbol):
                return category
    return "rest"


def read_script(text):
    """Stacks of `perf script -F comm,tid,ip,sym,dso`, one list of (symbol, dso) a sample, leaf first."""
    stack = []
    for line in text.splitlines():
        if not line.strip():
            if stack:
                yield stack
            stack = []
            continue
        frame = re.match(r"^\s+([0-9a-f]+) (.*) \(([^()]*(?:\([^()]*\))?[^()]*)\)$", line)
        if frame:
            stack.append((frame.group(2), frame.group(3)))
    if stack:
        yield stack


def shares(text):
    """Share of each category, and the number of samples."""
    counts = collections.Counter(classify(stack) for stack in read_script(text))
    total = sum(counts.values())
    return {category: n / total for category, n in counts.items()}, total


if __name__ == "__main__":
    import sys
    content = open(sys.argv[1]).read()
    table, total = shares(content)
    print(total, {k: round(100 * v, 1) for k, v in sorted(table.items(), key=lambda row: -row[1])})
    rest = collections.Counter(s[0] for s in read_script(content) if classify(s) == "rest")
    print(rest.most_common(25))
