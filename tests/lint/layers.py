#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The layering law: a folder includes only what profiler/README.md's table lets it include, and names of files and of functions are unique in the tree: of
two functions with one name in two libraries the linker takes whichever it meets first, and says nothing.

The table is read from the README, so the document cannot go stale: a row `| fold | base target … |` is the law for profiler/fold.
"""
import pathlib
import re
import sys


def read_law(readme):
    law = {}
    for line in readme.read_text().splitlines():
        row = re.match(r"\|\s*`([a-z]+)/?`\s*\|[^|]*\|\s*([a-z ]*?|nothing)\s*\|$", line)
        if row:
            uses = row.group(2).split()
            law[row.group(1)] = set() if uses == ["nothing"] else set(uses)
    return law


def layer_of(root, path):
    parts = path.relative_to(root).parts
    return "categorize" if parts[0] == "categorize" else parts[1]


def included_layer(include):
    return include.split("/")[0] if "/" in include else None


def check_file(root, path, law):
    layer = layer_of(root, path)
    problems = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        other = match and included_layer(match.group(1))
        if other and other != layer and other not in law.get(layer, set()):
            problems.append(f"{path.relative_to(root)}:{number}: {layer}/ may not include {match.group(1)}")
    return problems


def functions_of(path):
    """Names of the functions other files can see."""
    return re.findall(r"^(?!static\b)\w[\w \t*]*?\b((?:rp|cat)_\w+)\((?=[^;]*?\)\s*\{)", path.read_text(), re.M)


def find_cycle(law):
    done, path = set(), []

    def visit(layer):
        if layer in path:
            return path[path.index(layer):] + [layer]
        if layer in done:
            return None
        path.append(layer)
        for other in sorted(law.get(layer, ())):
            cycle = visit(other)
            if cycle:
                return cycle
        path.pop()
        done.add(layer)
        return None

    for layer in sorted(law):
        cycle = visit(layer)
        if cycle:
            return cycle
    return None


def main():
    root = pathlib.Path(sys.argv[1])
    law = read_law(root / "profiler" / "README.md")
    problems = []
    files = [p for d in ("profiler", "categorize") for p in sorted((root / d).rglob("*.[ch]")) if p.name != "main.c"]
    layers = {layer_of(root, p) for p in files}
    if len(law) < 8:
        problems.append("profiler/README.md: the table of layers was not found")
    for layer in sorted(layers - set(law)):
        problems.append(f"{layer}/ has no row in the table of profiler/README.md")
    for path in files:
        problems += check_file(root, path, law)
    cycle = find_cycle(law)
    if cycle:
        problems.append("the table has a cycle: " + " -> ".join(cycle))
    seen = {}
    for path in files:
        if path.name in seen:
            problems.append(f"{path.relative_to(root)}: the name stands also at {seen[path.name].relative_to(root)}")
        seen[path.name] = path
    defined = {}
    for path in (p for p in files if p.suffix == ".c"):
        for name in functions_of(path):
            if name in defined:
                problems.append(f"{path.relative_to(root)}: {name} is defined also in {defined[name].relative_to(root)}")
            defined[name] = path
    if len(defined) < 100:
        problems.append("the functions of the libraries were not found")
    print("\n".join(problems) if problems else f"{len(files)} files keep the layering law")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
