#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs command-line tests: NAME.sh against NAME.expected, which holds its exit status, standard output and standard error.

usage: run.py [--update] SCRIPT.sh ...

A script runs with bash in a folder of its own, with `rowprof` and `make_profile` in PATH (make_profile TEXT.fake OUT.rowprof
writes a profile that tests/support/fake_profile.h describes) and $DATA naming tests/golden. In an expected file

    ~ GLOB      is a line that fits a glob (fnmatch)
    ~...        stands for any number of lines

and every other line is itself. --update writes what was seen, unless what stands there fits already. The trap is a script that
prints nothing and always passes: an expected file without any output is refused.
"""
import fnmatch
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def environment(folder):
    bin_folder = folder / "bin"
    bin_folder.mkdir()
    for variable, name in (("ROWPROF", "rowprof"), ("MAKE_PROFILE", "make_profile"), ("ROWLOAD", "rowload")):
        if os.environ.get(variable):
            (bin_folder / name).symlink_to(os.environ[variable])
    kept = {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS")}
    return {**kept, "PATH": f"{bin_folder}:/usr/bin:/bin", "DATA": str(HERE), "HOME": str(folder), "LC_ALL": "C.UTF-8", "TERM": "xterm"}


def run(script):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        env = environment(folder)
        work = folder / "work"
        work.mkdir()
        done = subprocess.run(["/bin/bash", "-u", str(script)], cwd=work, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=100)
    text = f"exit {done.returncode}\n--- stdout\n"
    text += done.stdout.decode("utf-8", "backslashreplace").replace("\r\n", "\\r\n")
    text += "--- stderr\n" + done.stderr.decode("utf-8", "backslashreplace")
    return text.replace(name, "TMP")


def fits(expected, seen):
    """Line by line; `~...` may stand for any number of lines."""
    reached = {0}
    for line in expected:
        if line == "~...":
            reached = set(range(min(reached), len(seen) + 1)) if reached else set()
        elif line.startswith("~ "):
            reached = {n + 1 for n in reached if n < len(seen) and fnmatch.fnmatchcase(seen[n], line[2:])}
        else:
            reached = {n + 1 for n in reached if n < len(seen) and seen[n] == line}
    return len(seen) in reached


def show_difference(expected, seen):
    import difflib
    for line in difflib.unified_diff(expected, seen, "expected", "seen", lineterm=""):
        print(line)


def check(script, update):
    file = script.with_suffix(".expected")
    seen = run(script).splitlines()
    expected = file.read_text().splitlines() if file.exists() else []
    if len(seen) <= 3:
        print(f"{script.name}: prints nothing")
        return False
    if fits(expected, seen):
        return True
    if update:
        file.write_text("\n".join(seen) + "\n")
        print(f"{script.name}: written")
        return True
    show_difference(expected, seen)
    print(f"{script.name}: not as expected; run.py --update writes it anew")
    return False


def main():
    words = sys.argv[1:]
    update = "--update" in words
    scripts = [pathlib.Path(word).resolve() for word in words if word != "--update"]
    if not scripts:
        print(__doc__)
        return 2
    for variable in ("ROWPROF", "MAKE_PROFILE"):
        if not os.access(os.environ.get(variable, ""), os.X_OK):
            print(f"${variable} must name the program; ctest sets it")
            return 2
    return 0 if all([check(script, update) for script in scripts]) else 1


if __name__ == "__main__":
    sys.exit(main())
