#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `rowprof help` says and what profiler/cli/README.md says are the same: every option with its argument and text, both ways round, and the exit
statuses. $ROWPROF is the program.

The trap is checking a list against itself: the options are taken from the printed help, never from the source.
"""
import os
import pathlib
import re
import subprocess
import sys

TOPICS = ["record", "report", "diff", "shapes", "rules check", "rules explain", "bench", "help"]


def help_text(*topic):
    done = subprocess.run([os.environ["ROWPROF"], "help", *topic], capture_output=True, text=True, check=True)
    return done.stdout


def options_of(text):
    """{"-p, --pid PID": "what it does"} out of one help."""
    found, last = {}, None
    for line in text.splitlines():
        row = re.match(r"  (-\w, |    )(--[\w-]+(?: \S+)?)(?:  +(.*))?$", line)
        if row:
            last = (row.group(1).strip() + " " + row.group(2)).strip()
            found[last] = row.group(3) or ""
        elif last and line.startswith(" " * 20):
            found[last] = (found[last] + " " + line.strip()).strip()
        else:
            last = None
    return found


def documented(readme):
    rows = re.findall(r"^\| `((?:-\w, )?--[^`]*)` \| (.*) \|$", readme, re.M)
    return {option.replace("\\|", "|"): text for option, text in rows}


def differences(helped, written):
    problems = [f"{option}: in the help, not in the README" for option in helped.keys() - written.keys()]
    problems += [f"{option}: in the README, not in the help" for option in written.keys() - helped.keys()]
    problems += [f"{option}: the help says '{helped[option]}', the README '{written[option]}'"
                 for option in helped.keys() & written.keys() if helped[option] != written[option]]
    return problems


def main():
    root = pathlib.Path(sys.argv[1])
    readme = (root / "profiler/cli/README.md").read_text()
    helped = {}
    for topic in [[]] + [topic.split() for topic in TOPICS]:
        helped.update(options_of(help_text(*topic)))
    written = documented(readme)
    problems = differences(helped, written)
    # `--no-default-rules` and others stand in several groups with texts of their own: those are compared by name only.
    shared = [o for o in written if len(re.findall(r"^\| `" + re.escape(o) + "`", readme, re.M)) > 1]
    problems = [p for p in problems if not any(p.startswith(o + ": the help says") for o in shared)]
    if not helped:
        problems.append("the help lists no options")
    told = re.findall(r"^  (\d)  ", help_text("exit-status"), re.M)
    listed = re.findall(r"^\| (\d) \|", readme, re.M)
    if told != listed or not told:
        problems.append(f"exit statuses: the help has {told}, the README {listed}")
    for problem in sorted(problems):
        print("profiler/cli/README.md:", problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
