/* SPDX-License-Identifier: MIT */
/* Mangled names into readable ones, and readable ones into the short form that rules see.
 *
 * The language is decided by prefix, since a Rust demangler tried first spoils C++ names and the reverse. The traps: names come from the target
 * and may be built to recurse once per letter or to print exponentially much, so input, nesting and output are bounded, and the raw name is the
 * fallback; and cutting at the first bracket makes `void exec<void (*)()>(int)` into `void exec<void`, so short forms come from the demangler's own
 * knowledge of what the parameters are, and where text must be cut, brackets are counted. */
#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "symbolize/symbolize.h"

enum {
    /* Above this length libiberty refuses C++ names unless its limit on recursion is lifted, which is done only for names whose letters outside
     * identifiers (each may nest one level) are fewer than STRUCTURE_MAX. */
    LIBERTY_LENGTH_MAX = 1000,
    STRUCTURE_MAX = 3000
};

/* Output of a callback demangler. It cannot be told to stop, so it is left by longjmp: it holds no heap memory while it prints. */
struct sink {
    struct rp_buf *out;
    size_t start;
    jmp_buf too_much;
};

static void take(const char *text, size_t length, void *context)
{
    struct sink *sink = context;

    if (sink->out->failed || sink->out->length - sink->start + length > RP_SYMBOL_MAX)
        longjmp(sink->too_much, 1);
    rp_buf_append(sink->out, text, length);
}

typedef int demangler(const char *mangled, int options, demangle_callbackref callback, void *opaque);

/* Appends the demangled form; on failure `out` is as before. */
static bool demangle_with(demangler *demangle, const char *mangled, int options, struct rp_buf *out)
{
    struct sink sink = {.out = out, .start = out->length};
    volatile bool good = false;

    if (setjmp(sink.too_much) == 0)
        good = demangle(mangled, options, take, &sink) != 0;
    if (good && out->length > sink.start)
        return true;
    out->length = sink.start;
    if (out->data && out->capacity > out->length)
        out->data[out->length] = '\0';
    return false;
}

/* Letters outside identifiers: an upper bound of how deep a name can nest. Identifiers are a decimal length and that many bytes. */
static size_t structure_of(const char *mangled, size_t length)
{
    size_t count = 0;

    for (size_t i = 0; i < length; count++) {
        size_t skip = 0;

        while (i < length && isdigit((unsigned char)mangled[i]) && skip < length)
            skip = skip * 10 + (size_t)(mangled[i++] - '0');
        i = skip && skip <= length - i ? i + skip : i + 1;
    }
    return count;
}

static bool demangle_cxx(const char *mangled, size_t length, bool short_form, struct rp_buf *out)
{
    int options = DMGL_ANSI | (short_form ? 0 : DMGL_PARAMS);

    if (length > LIBERTY_LENGTH_MAX) {
        if (structure_of(mangled, length) > STRUCTURE_MAX)
            return false;
        options |= DMGL_NO_RECURSE_LIMIT;
    }
    return demangle_with(cplus_demangle_v3_callback, mangled, options, out);
}

/* `_ZN…17h<16 hexadecimal digits>E`: what Rust made before its own mangling. */
static bool is_rust_legacy(const char *mangled, size_t length)
{
    const char *hash = mangled + length - 20;

    if (length < 24 || strncmp(mangled, "_ZN", 3) != 0 || memcmp(hash, "17h", 3) != 0 || mangled[length - 1] != 'E')
        return false;
    for (int i = 3; i < 19; i++) {
        if (!isxdigit((unsigned char)hash[i]) || isupper((unsigned char)hash[i]))
            return false;
    }
    return true;
}

/* Position of the `(` that matches the `)` at `close`; SIZE_MAX when none does. Angle brackets need no counting: what stands between round ones is
 * skipped whole. */
static size_t matching_open(const char *text, size_t close)
{
    size_t depth = 0;

    for (size_t i = close + 1; i-- > 0;) {
        if (text[i] == ')')
            depth++;
        else if (text[i] == '(' && --depth == 0)
            return i;
    }
    return SIZE_MAX;
}

/* Length of `text` without its last parameter list and the qualifiers after it. */
static size_t without_parameters(const char *text, size_t length)
{
    static const char *const qualifiers[] = {" const", " volatile", " &", " &&", " noexcept"};
    size_t end = length, open;

    for (size_t i = 0; i < sizeof qualifiers / sizeof *qualifiers; i++) {
        size_t n = strlen(qualifiers[i]);

        if (end > n && memcmp(text + end - n, qualifiers[i], n) == 0) {
            end -= n;
            i = (size_t)-1;
        }
    }
    if (!end || text[end - 1] != ')')
        return length;
    open = matching_open(text, end - 1);
    if (open == SIZE_MAX || open == 0 || isspace((unsigned char)text[open - 1]) || text[open - 1] == ':')
        return length;
    if (open >= 8 && open + 2 == end && memcmp(text + open - 8, "operator", 8) == 0)
        return length; /* this pair of brackets is the name */
    return open;
}

/* Where the name begins in `text`, whose parameters were cut: after the last blank outside brackets, if the demangler printed a return type.
 * Names of operators hold blanks and lone angle brackets and are left alone. */
static size_t after_return_type(const char *text, size_t length)
{
    size_t start = 0, depth = 0;

    for (size_t i = 0; i < length; i++) {
        if (length - i >= 8 && memcmp(text + i, "operator", 8) == 0)
            return start;
        if (text[i] == '(' || text[i] == '<' || text[i] == '[' || text[i] == '{')
            depth++;
        else if (text[i] == ')' || text[i] == '>' || text[i] == ']' || text[i] == '}')
            depth = depth ? depth - 1 : 0;
        else if (text[i] == ' ' && !depth)
            start = i + 1;
    }
    return start;
}

/* dlang_demangle has no callback, but it is linear in its input and its output is bounded by it. It always prints parameters. */
static bool demangle_d(const char *mangled, bool short_form, struct rp_buf *out)
{
    char *text = dlang_demangle(mangled, DMGL_DLANG);
    size_t length = text ? strlen(text) : 0;

    if (text && length <= RP_SYMBOL_MAX)
        rp_buf_append(out, text, short_form ? without_parameters(text, length) : length);
    free(text);
    return length > 0 && length <= RP_SYMBOL_MAX;
}

static bool demangle_by_prefix(const char *mangled, size_t length, bool short_form, struct rp_buf *out)
{
    if (length < 3 || length > RP_DEMANGLE_INPUT_MAX || mangled[0] != '_')
        return false;
    if (mangled[1] == 'R')
        return demangle_with(rust_demangle_callback, mangled, 0, out);
    if (is_rust_legacy(mangled, length) && demangle_with(rust_demangle_callback, mangled, 0, out))
        return true;
    if (mangled[1] == 'Z')
        return demangle_cxx(mangled, length, short_form, out);
    return mangled[1] == 'D' && demangle_d(mangled, short_form, out);
}

/* Length of a name without `@@VERSION`, `@VERSION`, `@plt`. Only symbols have those: in `JS:*f /app/@scope/file.js` it is part of a path. */
static size_t without_version(const char *name, size_t length)
{
    size_t plain = length ? 1 + strcspn(name + 1, "@ /:(<") : 0;

    return plain < length && name[plain] == '@' ? plain : length;
}

/* Length of a name without what compilers append: `.constprop.0`, `.part.12`, `.cold` …, and a number that keeps local names apart. */
static size_t without_compiler_suffix(const char *name, size_t length)
{
    static const char *const words[] = {"constprop", "part", "isra", "cold", "lto_priv", "localalias", "llvm", "warm", "hot", "clone"};
    size_t end = length;

    for (;;) {
        size_t dot = end;
        bool known;

        while (dot > 0 && name[dot - 1] != '.')
            dot--;
        if (dot < 2 || dot == end)
            return end;
        known = strspn(name + dot, "0123456789") >= end - dot;
        for (size_t i = 0; !known && i < sizeof words / sizeof *words; i++)
            known = strlen(words[i]) == end - dot && memcmp(name + dot, words[i], end - dot) == 0;
        if (!known)
            return end;
        end = dot - 1;
    }
}

/* Appends a name that was never mangled; if it looks like a C++ signature, `int ns::f<int>(long) const`, without return type and parameters. Names
 * from JIT maps (`JS:~f file.js:1:2`, `RegExp:a(b)`, Mono's `Class:Method ()`) have single colons or a blank before the bracket and stay whole. */
static void append_signature(const char *name, size_t length, struct rp_buf *out)
{
    size_t end, start;

    for (size_t i = 0; i < length; i++) {
        if (name[i] != ':')
            continue;
        if (i + 1 < length && name[i + 1] == ':') {
            i++;
        } else {
            rp_buf_append(out, name, length);
            return;
        }
    }
    end = without_parameters(name, length);
    start = end < length ? after_return_type(name, end) : 0;
    rp_buf_append(out, name + start, end - start);
}

static size_t without_clone(const char *name, size_t length)
{
    for (size_t i = 0; i + 7 <= length; i++) {
        if (memcmp(name + i, " [clone", 7) == 0 || (memcmp(name + i, " [local", 7) == 0))
            return i;
    }
    return length;
}

static void append_short(const char *raw, size_t length, struct rp_buf *out)
{
    struct rp_buf name = {0};
    size_t end = without_clone(raw, length);
    bool identifier;

    end = without_version(raw, end);
    identifier = strcspn(raw, " (:<") >= end;
    end = identifier ? without_compiler_suffix(raw, end) : end;
    rp_buf_append(&name, raw, end);
    if (name.failed || !demangle_by_prefix(rp_buf_text(&name), end, true, out)) {
        size_t skip = end > 5 && strncmp(raw, "__GI_", 5) == 0 ? 5 : 0;

        append_signature(raw + skip, end - skip, out);
    }
    rp_buf_release(&name);
}

/* With parameters; `@plt` is kept since it is another place, versions are not; the compiler's suffix is shown as binutils show it. */
static void append_full(const char *raw, size_t length, struct rp_buf *out)
{
    size_t end = without_version(raw, length), bare = without_compiler_suffix(raw, end);
    struct rp_buf name = {0};

    rp_buf_append(&name, raw, bare);
    if (!name.failed && demangle_by_prefix(rp_buf_text(&name), bare, false, out)) {
        if (bare < end)
            rp_buf_printf(out, " [clone %.*s]", (int)(end - bare), raw + bare);
    } else {
        rp_buf_append(out, raw, end < RP_SYMBOL_MAX ? end : RP_SYMBOL_MAX);
        if (end > RP_SYMBOL_MAX)
            rp_buf_puts(out, "…");
    }
    if (length - end == 4 && memcmp(raw + end, "@plt", 4) == 0)
        rp_buf_puts(out, "@plt");
    rp_buf_release(&name);
}

void rp_demangle(const char *raw, bool short_form, struct rp_buf *out)
{
    size_t length = strlen(raw);

    if (short_form)
        append_short(raw, length < RP_SYMBOL_MAX ? length : RP_SYMBOL_MAX, out);
    else
        append_full(raw, length, out);
}
