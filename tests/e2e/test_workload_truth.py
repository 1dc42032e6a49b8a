#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the workloads claim of themselves is true: changes seen are the commits made, locks are used as theory says, costs add up.

Only what holds on a busy machine is asserted: counts, orders of CPU time that differ by half and more, shares of a run.
"""
import functools
import glob
import os
import re
import signal
import sqlite3
import statistics
import struct
import time

import harness
from rowload_runs import run, run_ok, sums

NEW = (["scan", "--processes", 2, "--threads", 2, "--steady", 0], ["verchk", "--threads", 2], ["evloop"],
       ["lockmix", "--hold-ns", 100000], ["twoshape"], ["write", "--readers", 1, "--synchronous", "off"])


class Protocol(harness.Case):
    def test_ready_hold_rate_sum_and_nothing_left(self):
        for args in NEW:
            with self.subTest(args=args):
                target = self.start(harness.ROWLOAD, *args, env={"TMPDIR": self.scratch})
                for key in ("pid", "tid", "workload", "op", "limit", "seed"):
                    self.assertIn(key, target.ready)
                time.sleep(0.2)
                target.stop(signal.SIGINT if args[0] == "scan" else signal.SIGTERM)
                self.assertEqual(target.process.returncode, 0, target.err)
                rate = target.words("RATE")
                self.assertGreater(rate["calls"], 0)
                for key in ("cpu_secs", "ns_per_call", "nvcsw", "nivcsw"):
                    self.assertGreaterEqual(rate[key], 0)
                self.assertTrue(any(line.startswith("SUM ") for line in target.out))
                self.assertEqual(glob.glob(self.scratch + "/*"), [])

    def test_worker_processes_die_with_a_killed_parent(self):
        target = self.start(harness.ROWLOAD, "scan", "--processes", 3, "--threads", 1, "--steady", 0,
                            env={"TMPDIR": self.scratch})
        pids = [int(pid) for pid in target.ready["pids"].split(",")]
        self.assertEqual((len(pids), pids[0]), (3, target.pid))
        target.stop(signal.SIGKILL)
        for pid in pids[1:]:
            for _ in range(1000):
                if not self.runs(pid):
                    break
                time.sleep(0.01)
            self.assertFalse(self.runs(pid))

    @staticmethod
    def runs(pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                return file.read().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    def test_workers_share_the_calls_out_exactly(self):
        done = run_ok("scan", "--processes", 2, "--threads", 3, "--calls", 100)
        calls = [int(re.search(r" calls=(\d+)", line).group(1)) for line in done.stdout.splitlines() if line.startswith("WORKER ")]
        self.assertEqual(calls, [17, 17, 17, 17, 16, 16])
        self.assertEqual(done.words("RATE")["calls"], 100)

    def test_bad_options_are_one_sentence_and_status_2(self):
        for args in (["scan", "--processes", 0], ["scan", "--processes", 64, "--threads", 1000], ["verchk", "--mode", "stat"],
                     ["verchk", "--locking", "exclusive"], ["verchk", "--db-path", "x"], ["lockmix", "--kind", "none"],
                     ["lockmix", "--hold-ns", 0, "--out-ns", 0], ["twoshape", "--per-call-ns", 0, "--limit", 0],
                     ["evloop", "--eager", 2], ["write", "--journal", "none"], ["get", "--ablate", "names", "--names", "cached"]):
            with self.subTest(args=args):
                done = run(*args)
                self.assertEqual(done.status, 2)
                self.assertRegex(done.stderr, r"\Arowload: [^\n]*\.\n\Z")

    def test_help_lists_every_workload_and_the_readme_explains_it(self):
        text = run_ok("help").stdout
        with open(os.path.join(harness.SOURCE, "workloads", "README.md"), encoding="utf-8") as file:
            readme = file.read()
        for name in re.findall(r"\n\n(\w+): ", text):
            section = readme.partition(f"## rowload {name}\n")[2].partition("\n## ")[0]
            self.assertTrue(section, name)
            options = text.partition(f"\n{name}: ")[2].partition("\n\n")[0]
            for option in re.findall(r"^  (--[\w-]+)", options, re.M):
                self.assertRegex(section, re.escape(option) + r"\b", f"{name} {option}")


class EqualWork(harness.Case):
    def check(self, *variants):
        found = sums(*variants)
        self.assertEqual(len(set(found)), 1, found)

    def test_scan(self):
        base = ["scan", "--calls", 600, "--rows", 500]
        self.check([*base, "--processes", 1, "--threads", 1], [*base, "--processes", 2, "--threads", 3, "--prepare", "each"],
                   [*base, "--processes", 1, "--threads", 4, "--index"],
                   ["scan", "--rows", 500, "--processes", 2, "--threads", 2, "--queries-per-thread", 150])

    def test_verchk(self):
        self.check(*(["verchk", "--calls", 3000, "--mode", mode] for mode in ("reprepare", "header", "fcntl")))

    def test_evloop(self):
        base = ["evloop", "--queries", 150, "--convert-ns", 10000]
        self.check(base, [*base, "--eager", 1, "--statements", 7])

    def test_lockmix(self):
        self.check(*(["lockmix", "--calls", 60, "--kind", kind] for kind in ("mutex", "spin", "rw")))

    def test_write(self):
        base = ["write", "--calls", 200, "--synchronous", "off"]
        self.check(base, [*base, "--journal", "truncate"], ["write", "--calls", 50, "--rows-per-tx", 4, "--op", "update",
                                                            "--synchronous", "off"])


class Scan(harness.Case):
    def test_the_published_report_to_the_byte(self):
        done = run_ok("scan", "--threads-per-proc", 2, "--queries-per-thread", 40, "--rows", 100, "--pin-cpus")
        number, seconds = r"\d+\.\d\d\n", r"\d+\.\d{4} s"
        process = "".join(rf"Process {i}:\n  Wall time: {seconds}\n  Queries:   80\n  QPS:       {number}" for i in (0, 1))
        self.assertRegex(done.stdout, (
            r"\ACreating DB at \S+ with 100 rows \(x in \[0,1000\)\)\nRunning benchmark with 2 processes × 2 threads\n"
            r"Total threads: 4\nQueries per thread: 40\nTotal queries: 160\nAttempting to pin processes to CPUs: \[0, 1\]\n"
            rf"RATE [^\n]*\n(WORKER [^\n]*\n){{4}}\n--- Per-process stats ---\n{process}"
            r"\n--- Per-thread QPS \(over all processes\) ---\nThreads total: 4\n"
            rf"Min QPS:   {number}Median QPS:{number}Mean QPS:  {number}Max QPS:   {number}"
            r"\n--- Global stats ---\nTotal queries:      160\n"
            rf"Global wall time:   {seconds} \(includes process startup/teardown\)\nGlobal effective QPS: {number}SUM \w+\n\Z"))
        wall = float(re.search(r"Global wall time:   (\S+)", done.stdout).group(1))
        self.assertGreaterEqual(wall, done.words("RATE")["secs"] - 0.001)
        qps = float(re.search(r"Global effective QPS: (\S+)", done.stdout).group(1))
        half_a_digit = 0.00005  # the wall time has four decimals, the rate two
        self.assertLessEqual(abs(160 / qps - wall), half_a_digit + 160 * 0.005 / qps ** 2)

    def test_cost_is_that_of_the_rows_unless_there_is_an_index(self):
        def cpu(*args):
            return run_ok("scan", "--processes", 1, "--threads", 1, "--calls", 1500, *args).words("RATE")["ns_per_call"]
        small, large, indexed = cpu("--rows", 1000), cpu("--rows", 4000), cpu("--rows", 4000, "--index")
        self.assertGreater(large, 2.5 * small)
        self.assertLess(large, 6 * small)
        self.assertLess(indexed, large / 3)


@functools.lru_cache(maxsize=None)
def checks(mode, threads=1, *args):
    return run_ok("verchk", "--mode", mode, "--threads", threads, "--secs", 0.4, "--commit-hz", 50, *args).words("CHECKS")


class VersionChecks(harness.Case):
    def check_seen(self, words):
        self.assertGreater(words["commits"], 0)
        self.assertEqual(words["changes"], words["commits"], words)
        self.assertEqual(words["changes_most"], words["commits"], words)

    def test_right_ways_see_every_commit(self):
        for mode in ("reprepare", "prepared", "pool", "header", "header-nolock"):
            for threads in (1, 4):
                if threads == 1 or mode in ("prepared", "pool", "header-nolock"):
                    with self.subTest(mode=mode, threads=threads):
                        self.check_seen(checks(mode, threads))

    def test_a_writer_in_the_same_process_is_seen_too(self):
        for mode in ("prepared", "header", "counter"):
            with self.subTest(mode=mode):
                self.check_seen(checks(mode, 2, "--writer", "thread"))

    def test_wrong_ways_miss_them(self):
        for mode in ("fcntl", "counter"):
            words = checks(mode)
            self.assertGreater(words["commits"], 0)
            self.assertEqual(words["changes_most"], 0)

    def test_cpu_time_of_a_check(self):
        cost = {(mode, threads): checks(mode, threads)["cpu_ns_per_check"]
                for mode, threads in (("reprepare", 1), ("prepared", 1), ("header", 1), ("prepared", 4), ("pool", 4))}
        self.assertGreater(cost["reprepare", 1], cost["prepared", 1] * 1.15, cost)
        self.assertGreater(cost["prepared", 1], cost["header", 1] * 5, cost)
        self.assertLess(cost["pool", 4], cost["prepared", 4] * 0.8, cost)

    def test_without_a_header_sqlite_is_asked(self):
        words = checks("header", 1, "--journal", "delete")
        self.check_seen(words)
        self.assertGreaterEqual(words["fallbacks"], words["checks"])
        words = run_ok("verchk", "--mode", "header-nolock", "--locking", "exclusive", "--commit-hz", 0, "--secs", 0.3).words("CHECKS")
        self.assertGreaterEqual(words["fallbacks"], words["checks"])


class ForeignCommits(harness.Case):
    """Python's SQLite commits; the header is read from outside. What must be seen is known here."""

    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.scratch, "foreign.db")
        self.db = sqlite3.connect(self.path, isolation_level=None)
        self.addCleanup(self.db.close)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, n INTEGER)")
        self.db.execute("INSERT INTO t VALUES(1, 0)")
        self.counter = os.path.join(self.scratch, "counter")

    def begin(self, mode):
        self.target = self.start_rowload("verchk", "--mode", mode, "--db-path", self.path, "--commit-hz", 0, "--counter", self.counter)
        self.await_checks()

    def calls(self):
        with open(self.counter, "rb") as file:
            return struct.unpack("=QQ", file.read(16))[0]

    def await_checks(self):
        """Until batches that began after now have been counted."""
        for _ in range(3):
            before = self.calls()
            while self.calls() == before:
                self.assertTrue(self.target.alive())
                time.sleep(0.001)

    def seen(self):
        self.target.stop()
        self.assertEqual(self.target.process.returncode, 0, self.target.err)
        return self.target.words("CHECKS")["changes"]

    def test_each_commit_once_and_nothing_else(self):
        for mode in ("header", "pool"):
            with self.subTest(mode=mode):
                self.begin(mode)
                for _ in range(10):
                    self.db.execute("UPDATE t SET n = n + 1")
                    self.await_checks()
                self.db.execute("BEGIN IMMEDIATE")
                self.db.execute("UPDATE t SET n = n + 1")
                self.await_checks()
                self.db.execute("ROLLBACK")
                self.db.execute("BEGIN IMMEDIATE")
                self.db.execute("COMMIT")
                self.await_checks()
                self.assertEqual(self.seen(), 10)

    def test_another_file_under_the_same_name_is_mapped(self):
        self.begin("header-nolock")
        with open(self.path + "-shm", "rb") as file:
            content = file.read()
        with open(self.path + "-new", "wb") as file:
            file.write(content[:96].replace(content[8:12], b"\0\0\0\0") + content[96:])  # its checksum is wrong now
        os.replace(self.path + "-new", self.path + "-shm")
        for _ in range(20):
            self.await_checks()
        self.target.stop()
        words = self.target.words("CHECKS")
        self.assertEqual(words["remaps"], 1)
        self.assertGreater(words["torn"], 0)
        self.assertGreater(words["fallbacks"], 0)


class Locks(harness.Case):
    def lock(self, *args):
        return run_ok("lockmix", "--secs", 0.8, *args).words("LOCK")

    def test_utilisation_is_what_theory_says(self):
        for threads, hold_ms, out_ms in ((1, 2, 2), (2, 2, 8), (4, 3, 1)):
            for kind in ("mutex", "rw") if threads == 4 else ("mutex",):
                with self.subTest(threads=threads, kind=kind):
                    words = self.lock("--threads", threads, "--hold-ns", hold_ms * 10**6, "--out-ns", out_ms * 10**6, "--kind", kind)
                    hold, out = words["held_ns"], words["out_ns"]
                    self.assertGreaterEqual(hold, hold_ms * 1e6)
                    self.assertGreaterEqual(out, out_ms * 1e6)
                    self.assertAlmostEqual(words["utilisation"], min(1.0, threads * hold / (hold + out)), delta=0.08)

    def test_one_thread_waits_for_nobody_and_four_for_each_other(self):
        alone = self.lock("--threads", 1)
        self.assertEqual((alone["contended"], alone["wait_secs"]), (0, 0))
        four = self.lock("--threads", 4, "--hold-ns", 4000000, "--out-ns", 1000)
        self.assertGreater(four["contended"], 0.5 * four["taken"])
        self.assertGreater(four["wait_per_sec"], 2.0)  # of at most three that can wait at once
        self.assertLess(four["wait_per_sec"], 3.2)


class EventLoop(harness.Case):
    @staticmethod
    def processors_to_spare():
        """How much CPU time two threads get per second just now."""
        rate = run_ok("lockmix", "--threads", 2, "--hold-ns", 0, "--out", "spin", "--secs", 0.3).words("RATE")
        return rate["cpu_secs"] / rate["secs"]

    def test_eager_overlaps_more(self):
        late, early = (run_ok("evloop", "--eager", eager, "--secs", 0.5).words("LOOP") for eager in (0, 1))
        self.assertEqual(late["under_way"], 0)
        self.assertGreater(early["under_way"], 0.9)
        # One after the other cannot take less than both.
        self.assertGreaterEqual(late["elapsed_ns"], 0.98 * (late["convert_ns"] + late["query_ns"]))

    def test_eager_uses_more_processors(self):
        spare = self.processors_to_spare()
        held = 0
        for seed in range(5):  # both ways in turns within one process, so that the machine is equally busy for both
            turns = run_ok("evloop", "--eager", "both", "--secs", 0.6, "--seed", seed).words("TURNS")
            held += turns["early_cpu_per_wall"] > turns["late_cpu_per_wall"]
        spare = min(spare, self.processors_to_spare())
        if held < 4 and spare < 1.6:
            self.skipTest(f"the machine is too busy to run two threads at once: they got {spare:.2f} processors")
        self.assertGreaterEqual(held, 4)

    def test_more_statements_than_threads_queue_up(self):
        few = run_ok("evloop", "--query", "spin", "--query-ns", 200000, "--convert-ns", 1000, "--pool", 2, "--statements", 1,
                     "--secs", 0.5).words("LOOP")
        many = run_ok("evloop", "--query", "spin", "--query-ns", 200000, "--convert-ns", 1000, "--pool", 2, "--statements", 20,
                      "--secs", 0.5).words("LOOP")
        self.assertGreater(many["queue_ns"], 3 * 200000)  # (20 - 2) / 2 queries stand before it
        self.assertGreater(many["queue_ns"], 3 * few["queue_ns"])


class TwoShape(harness.Case):
    def test_two_limits_tell_the_costs_and_predict_a_third(self):
        """Each process measures anew how much work a nanosecond is, and may be disturbed at that in either direction: so the median of five."""
        times = {1: [], 10: [], 100: []}
        for _ in range(5):
            for limit, measured in times.items():
                measured.append(run_ok("twoshape", "--limit", limit, "--secs", 0.3).words("RATE")["ns_per_call"])
        t = {limit: statistics.median(measured) for limit, measured in times.items()}
        per_row = (t[100] - t[1]) / 99
        per_call = t[1] - per_row
        self.assertAlmostEqual(per_row / 500, 1.0, delta=0.1, msg=times)
        self.assertAlmostEqual(per_call / 2000, 1.0, delta=0.1, msg=times)
        self.assertAlmostEqual((per_call + 10 * per_row) / t[10], 1.0, delta=0.05, msg=times)


class Writer(harness.Case):
    def test_readers_are_in_the_way_of_a_rollback_journal_only(self):
        delete = run_ok("write", "--journal", "delete", "--synchronous", "off", "--readers", 2, "--secs", 0.7).words("WRITER")
        wal = run_ok("write", "--synchronous", "off", "--readers", 2, "--secs", 0.7).words("WRITER")
        self.assertGreater(delete["busy"] + delete["reader_busy"], 0)
        self.assertEqual(wal["reader_busy"], 0)
        self.assertGreater(wal["reads"], 0)

    def test_a_sync_puts_the_writer_to_sleep_and_none_does_not(self):
        per_call = {}
        for level in ("off", "full"):
            rate = run_ok("write", "--synchronous", level, "--calls", 60).words("RATE")
            per_call[level] = rate["nvcsw"] / rate["calls"]
        self.assertLess(per_call["off"], 0.5)
        if per_call["full"] < 0.5:
            self.skipTest("TMPDIR is on a file system where fsync waits for nothing")
        self.assertGreater(per_call["full"], 0.5)


if __name__ == "__main__":
    harness.main()
