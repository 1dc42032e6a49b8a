#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Functions we do not call (no bounds, no error, or past base/alloc.h), and libraries that print or exit."""
import pathlib
import re
import sys

EVERYWHERE = r"\b(strcpy|strcat|sprintf|vsprintf|sscanf|strtok|atoi|atol|atof|gets|strtoul|strtol|strtoull|strtoll|alloca)\s*\("
HEAP = r"\b(malloc|calloc|realloc|strdup|strndup|asprintf)\s*\("
CHILD = {"profiler/bench/run.c"}  # _exit there ends a forked child that could not become the program
PRINTS = r"\b(printf|puts|putchar|perror|exit|_exit|abort)\s*\("


def code_lines(text):
    """Lines with comments and strings blanked, so that prose may name what code may not call."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group(0))
    text = re.sub(r"/\*.*?\*/", blank, text, flags=re.S)
    text = re.sub(r"//[^\n]*", blank, text)
    text = re.sub(r'"(\\.|[^"\\\n])*"', blank, text)
    return enumerate(text.splitlines(), 1)


def main():
    root = pathlib.Path(sys.argv[1])
    problems = []
    for path in sorted(p for d in ("profiler", "categorize") for p in (root / d).rglob("*.[ch]")):
        relative = path.relative_to(root)
        bans = [EVERYWHERE]
        if relative.parts[1:2] != ("base",) or path.name != "alloc.c":
            bans.append(HEAP)
        if relative.parts[1] != "cli":
            bans.append(PRINTS)
        for number, line in code_lines(path.read_text()):
            for ban in bans:
                match = re.search(ban, line)
                if match and match.group(1) == "_exit" and str(relative) in CHILD:
                    continue
                if match and not re.search(r"__attribute__|rp_\w*$", line[:match.start()].rstrip()):
                    problems.append(f"{relative}:{number}: {match.group(1)} is not used here")
    print("\n".join(problems) if problems else "nothing banned is called")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
