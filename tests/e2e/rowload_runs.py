# SPDX-License-Identifier: MIT
"""Finished runs of rowload, and the words in their lines."""
import concurrent.futures
import re
import subprocess

import harness


class Finished:
    def __init__(self, done):
        self.status, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr

    def line(self, kind):
        """The last line that begins with `kind`."""
        found = [line for line in self.stdout.splitlines() if line.startswith(kind + " ")]
        if not found:
            raise AssertionError(f"no {kind} line: {self.stdout[-500:]}{self.stderr[-500:]}")
        return found[-1]

    def words(self, kind):
        """Its key=value words, numbers where they are numbers."""
        pairs = (word.split("=", 1) for word in self.line(kind).split()[1:] if "=" in word)
        return {key: float(value) if re.fullmatch(r"-?[0-9.]+", value) else value for key, value in pairs}

    @property
    def sum(self):
        return self.line("SUM")


def run(*args, **options):
    """Runs rowload to its end, whatever its status."""
    argv = [harness.ROWLOAD, *map(str, args)]
    return Finished(subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, **options))


def sums(*variants):
    """The SUM of each variant's arguments. They run two at a time: what a sum is does not depend on how long it takes."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return [done.sum for done in pool.map(lambda args: run_ok(*args), variants)]


def run_ok(*args, **options):
    done = run(*args, **options)
    if done.status:
        raise AssertionError(f"rowload {args}: status {done.status}: {done.stderr}")
    return done
