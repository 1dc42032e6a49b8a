#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""scripts/reproduce: the verdicts follow their stated rules, every row is filled whatever happens, and real findings come out."""
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest.mock
from contextlib import redirect_stdout

import harness

SCRIPT = pathlib.Path(harness.SOURCE) / "scripts" / "reproduce"
sys.path.insert(0, str(SCRIPT.parent))
from findings import judging, measuring  # noqa: E402


def load():
    """The script as a module; it has no suffix, so that its loader must be named."""
    loader = importlib.machinery.SourceFileLoader("reproduce", str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("reproduce", loader))
    loader.exec_module(module)
    return module


def table(module, report, *args):
    """The script's main(): its status, what it printed, and its report."""
    words = ["reproduce", "--no-setup", "--rowprof", harness.ROWPROF, "--rowload", harness.ROWLOAD, "--output", report, *args]
    out = io.StringIO()
    with unittest.mock.patch.object(sys, "argv", words), redirect_stdout(out):
        status = module.main()
    return status, out.getvalue(), pathlib.Path(report).read_text(encoding="utf-8")


def run(*args):
    return subprocess.run([str(SCRIPT), "--no-setup", "--rowprof", harness.ROWPROF, "--rowload", harness.ROWLOAD, *map(str, args)],
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=500)


class Rules(harness.Case):
    def test_near(self):
        for here, published, share, wanted in ((1.0, 1.0, False, True), (1.49, 1.0, False, True), (1.51, 1.0, False, False), (1 / 1.49, 1.0, False, True),
                                               (0.66, 1.0, False, False), (0.0, 0.029, True, True), (0.0, 0.031, True, False), (-0.1, 0.1, False, False),
                                               (0.03, 0.01, True, True), (0.05, 0.01, True, False)):
            self.assertEqual(judging.near(here, published, share), wanted, (here, published, share))

    def test_rank_correlation(self):
        # The textbook example of IQ and hours of television: rho = -29/165.
        iq = dict(enumerate((106, 100, 86, 101, 99, 103, 97, 113, 112, 110)))
        hours = dict(enumerate((7, 27, 2, 50, 28, 29, 20, 12, 6, 17)))
        self.assertAlmostEqual(judging.rank_correlation(iq, hours), -29 / 165)
        self.assertAlmostEqual(judging.rank_correlation(iq, iq), 1.0)
        self.assertAlmostEqual(judging.rank_correlation({"a": 1, "b": 2, "c": 2}, {"a": 1, "b": 3, "c": 2}), 0.8660254, places=6)
        self.assertEqual(judging.rank_correlation({"a": 1, "b": 1}, {"a": 1, "b": 2}), 0.0)

    def test_outcome(self):
        def verdict(*args):
            done = judging.outcome("x", *args, why_not="not", why_other_size="size")
            return done.verdict, done.reason
        self.assertEqual(verdict(True, True), ("same size", ""))
        self.assertEqual(verdict(True, False), ("same direction", "size"))
        self.assertEqual(verdict(True, None), ("same direction", "size"))
        self.assertEqual(verdict(False, True), ("not reproduced", "not"))

    def test_ratio_is_taken_round_by_round(self):
        self.assertEqual(measuring.ratio({"a": [2, 20, 3], "b": [1, 10, 6]}, "a", "b"), (2.0, 2, 3))

    def test_rounds_alternate(self):
        seen = []
        found = measuring.rounds("ab", lambda name: seen.append(name) or len(seen), 3)
        self.assertEqual("".join(seen), "abbaab")
        self.assertEqual(found, {"a": [1, 4, 5], "b": [2, 3, 6]})


class Rows(harness.Case):
    """The table is filled whatever a finding does."""

    def table(self, *measures):
        module = load()
        module.FINDINGS = tuple((f"row-{i}", f"Finding {i} | with a bar", "1 %", measure) for i, measure in enumerate(measures))
        return table(module, os.path.join(self.scratch, "deep", "report.md"))

    def raising(self, error):
        def measure():
            raise error
        return measure

    @harness.needs(harness.rowprof_there)
    def test_missing_runtime_is_a_row_with_its_remedy(self):
        status, out, report = self.table(self.raising(measuring.Missing("mono is not here; run scripts/runtimes mono.")),
                                         lambda: judging.outcome("2 %", True, True, details=["a detail"]))
        self.assertEqual(status, 0)
        self.assertIn("| Finding 0 \\| with a bar | 1 % | - | not run | mono is not here; run scripts/runtimes mono. |\n", report)
        self.assertIn("| Finding 1 \\| with a bar | 1 % | 2 % | same size |  |\n", report)
        self.assertIn("- a detail\n", report)
        self.assertIn(judging.RULES, report)
        self.assertRegex(out, r"(?m)^1 not run, 1 same size\. ")

    @harness.needs(harness.rowprof_there)
    def test_reasons_name_no_folder_of_this_machine(self):
        source = pathlib.Path(harness.SOURCE).resolve()
        _, out, report = self.table(self.raising(RuntimeError(f"{pathlib.Path(harness.ROWLOAD).resolve()} get failed; see {source / 'scripts' / 'deps'}")))
        for text in (" ".join(out.split()), report):
            self.assertIn("RuntimeError: rowload get failed; see scripts/deps", text)

    @harness.needs(harness.rowprof_there)
    def test_failed_measurement_ends_with_status_1_after_the_rest(self):
        status, out, report = self.table(self.raising(RuntimeError("it broke")), lambda: judging.outcome("2 %", False, None, "a reason"))
        self.assertEqual(status, 1)
        self.assertIn("| - | failed | RuntimeError: it broke |", report)
        self.assertIn("| 2 % | not reproduced | a reason |", report)
        self.assertIn("because   a reason", out)

    def test_list(self):
        done = run("--list")
        self.assertEqual(done.returncode, 0)
        names = [line.split()[0] for line in done.stdout.splitlines()]
        self.assertEqual(len(names), len(set(names)))
        self.assertLessEqual({"table-1", "table-100", "names-gone", "mutex-value", "fix-1", "fix-100", "clis-short", "clis-long", "eager-c", "eager-npm",
                              "statements", "check", "header", "check-share", "lock-waits", "lock-seconds", "lock-ladder", "lock-cores"}, set(names))

    def test_reader_that_has_seen_enough(self):
        process = subprocess.Popen([str(SCRIPT), "--list"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.stdout.close()
        said = process.stderr.read()
        process.stderr.close()
        self.assertEqual((process.wait(), said), (-signal.SIGPIPE, ""))

    def test_bad_options(self):
        for args in (["--only", "x"], ["--x"], ["x"]):
            self.assertEqual(run(*args).returncode, 2, args)
        done = run("--only", "header", "--rowload", os.path.join(self.scratch, "none"))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("is not there; build it", done.stderr)


class Real(harness.Case):
    SCALE = 0.5  # of the length of a short run; what is asserted are orders and factors

    def verdicts(self, names):
        with unittest.mock.patch.object(measuring.Tools, "scale", self.SCALE):
            status, out, report = table(load(), os.path.join(self.scratch, "report.md"), "--only", names)
        self.assertEqual(status, 0, out)
        rows = [line.split(" | ") for line in report.splitlines() if re.match(r"\| [A-Z]", line)]
        self.assertEqual(len(rows), len(names.split(",")))
        for row in rows:
            self.assertTrue(all(cell.strip(" |") for cell in row[:4]), row)
            self.assertTrue(row[3] == "same size" or row[4].strip(" |"), row)
        return [row[3] for row in rows]

    @harness.needs(harness.rowprof_there, harness.perf_events)
    def test_version_check(self):
        self.assertTrue(set(self.verdicts("check,header,check-share")) <= {"same size", "same direction"})

    @harness.needs(harness.rowprof_there, harness.perf_events)
    def test_contention(self):
        # How many cores are used depends on who else uses them; the other three hold on a busy machine too.
        self.assertTrue(set(self.verdicts("lock-waits,lock-seconds,lock-ladder,lock-cores")[:3]) <= {"same size", "same direction"})

    @harness.needs(harness.rowprof_there, harness.perf_events, harness.node24)
    def test_rows_of_node(self):
        self.assertTrue(set(self.verdicts("table-1,table-100,names-gone,mutex-value")) <= {"same size", "same direction"})


if __name__ == "__main__":
    harness.main()
