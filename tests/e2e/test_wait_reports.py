#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What the user sees of waiting: lock waits named and first, idle threads dropped and listed, sums that close. The profile behind it is tested in test_waits.py.

The trap is the busy machine: shares of waiting move with its load, so what is asserted is order, presence and sums, and counts that the target's structure fixes.
"""
import os
import signal
import subprocess

import harness

SEES_KERNEL = harness.needs(harness.rowprof_there, harness.perf_events, harness.root)
READY_FOR = harness.needs(harness.rowprof_there, harness.perf_events)


class Reports(harness.Case):
    def report(self, pid, *args, seconds=2):
        run = self.rowprof_ok("--pid", pid, "--seconds", seconds, "--format", "json", *args)
        data = harness.Profile(run).data
        self.assert_sums_close(data)
        return data

    def assert_sums_close(self, data):
        for t in data["threads"]:
            parts = t["cpu_s"] + t["preempted_s"] + t["waiting_s"] + t["idle_s"] + t["unknown_s"]
            self.assertAlmostEqual(parts, t["wall_s"], delta=0.01 * t["wall_s"] + 1e-3, msg=t)
        total = data["time"]
        self.assertAlmostEqual(sum(w["seconds"] for w in data["waiting"]), total["waiting_s"], delta=0.01 * total["wall_s"] + 1e-3)
        for w in data["waiting"]:
            self.assertLessEqual(w["p50_s"], w["p99_s"] + 1e-9, w)
            self.assertLessEqual(w["p99_s"], w["max_s"] + 1e-9, w)

    @staticmethod
    def waiting(data, category):
        return next((w for w in data["waiting"] if w["id"] == category), {"seconds": 0, "waits": 0})

    @staticmethod
    def symbols(data, of):
        return {node["symbol"] for tree in data["waiting_tree"] if tree["of"] == of for node in tree["nodes"]}


class CaseA06(Reports):
    @SEES_KERNEL
    def test_four_idle_threads_are_dropped_and_three_wait_in_query(self):
        data = self.report(self.start(self.build("a06")).pid, seconds=3)
        self.assertEqual(data["waiting"][0]["id"], "wait.lock")
        self.assertGreater(data["waiting"][0]["seconds"], 3 * 0.75)
        pools = [g for g in data["idle"]["groups"] if g["rule"] in ("idle.pool", "idle.never-ran")]
        self.assertEqual(sum(g["threads"] for g in pools), 4, data["idle"])
        self.assertIn("query", self.symbols(data, "waits"))
        self.assertNotIn("pool_idle", self.symbols(data, "waits"))
        self.assertEqual(data["locks"][0]["symbol"], "query_mutex")

    @SEES_KERNEL
    def test_two_threads_on_one_sqlite_connection(self):
        data = self.report(self.start(self.build("a06_sqlite"), os.path.join(self.scratch, "a.db")).pid, seconds=3)
        self.assertEqual(data["waiting"][0]["id"], "wait.lock", data["waiting"])
        self.assertIn("ask", self.symbols(data, "waits"))
        self.assertGreater(data["locks"][0]["seconds"], 0.9 * data["waiting"][0]["seconds"])

    @READY_FOR
    def test_a_sleeping_program_says_what_was_dropped(self):
        sleeper = subprocess.Popen(["/bin/sleep", "60"])
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        run = harness.rowprof("--pid", sleeper.pid, "--seconds", 1)
        self.assertEqual(run.status, 5, run.stderr)
        self.assertIn("rule idle.sleep", run.stdout)
        self.assertIn("0 samples kept of 1", run.stdout)
        self.assertNotIn("nan", run.stdout.lower())
        shown = harness.rowprof("--pid", sleeper.pid, "--seconds", 1, "--idle")
        self.assertEqual(shown.status, 0, shown.stderr)
        self.assertIn("sleeping", shown.stdout)


class VersionCheck(Reports):
    @SEES_KERNEL
    def test_reprepare_waits_for_the_lock_first(self):
        target = self.start_rowload("verchk", "--mode", "reprepare", "--threads", "4", "--secs", "60")
        data = self.report(target.pid, "--locks")
        self.assertEqual(data["waiting"][0]["id"], "wait.lock", data["waiting"])
        self.assertGreater(data["waiting"][0]["waits"], 100)
        self.assertIn("rw_version_lock", self.symbols(data, "waits"))

    @SEES_KERNEL
    def test_without_a_lock_there_is_no_lock_wait(self):
        target = self.start_rowload("verchk", "--mode", "header-nolock", "--threads", "4", "--secs", "60")
        data = self.report(target.pid)
        self.assertLess(self.waiting(data, "wait.lock")["seconds"], 0.001 * data["time"]["wall_s"], data["waiting"])


class WallClock(Reports):
    @SEES_KERNEL
    def test_shares_of_wall_sum_to_one(self):
        target = self.start_rowload("lockmix", "--threads", "3", "--hold-ns", "2000000", "--out-ns", "1000000", "--secs", "60")
        data = self.report(target.pid, "--clock", "wall")
        self.assertAlmostEqual(sum(row["share"] for row in data["wall"]), 1, delta=0.01)
        self.assertEqual(max(data["wall"], key=lambda row: row["share"])["id"], "wait.lock")

    @READY_FOR
    def test_no_waiting_measures_nothing(self):
        target = self.start_rowload("mix", "--secs", "60")
        run = self.rowprof_ok("--pid", target.pid, "--seconds", 1, "--no-waiting", "--format", "json")
        data = harness.Profile(run).data
        self.assertNotIn("waiting", data)
        self.assertNotIn("time", data)


class Python(Reports):
    @SEES_KERNEL
    def test_two_busy_threads_wait_for_the_lock_of_the_interpreter(self):
        spin = ("import os,sys,threading\ndef spin():\n while True: sum(range(1000))\nthreading.Thread(target=spin, daemon=True).start()\n"
                "print('READY pid=%d' % os.getpid(), file=sys.stderr, flush=True)\nspin()\n")
        data = self.report(self.start("/usr/bin/python3", "-c", spin).pid, seconds=1)
        self.assertEqual(data["waiting"][0]["id"], "wait.gil", data["waiting"])
        gil = data["waiting"][0]["seconds"]
        self.assertGreater(gil, 0.8 * data["time"]["waiting_s"], data["waiting"])
        # Its condition's words are no locks; the mutex of the condition is one, and nearly free.
        self.assertLess(sum(lock["seconds"] for lock in data["locks"]), 0.2 * gil, data["locks"])


class Stopped(Reports):
    @READY_FOR
    def test_a_stopped_process_is_said_to_be(self):
        target = self.start("sh", "-c", "echo READY pid=$$; exec sleep 100")
        os.kill(target.pid, signal.SIGSTOP)
        run = self.rowprof_ok("--pid", target.pid, "--seconds", 0.3, "--idle")
        self.assertIn(f"Process {target.pid} is stopped", run.stdout)
        self.assertIn(f"kill -CONT {target.pid}", " ".join(run.stdout.split()))
        os.kill(target.pid, signal.SIGCONT)
        self.assertNotIn("stopped", self.rowprof_ok("--pid", target.pid, "--seconds", 0.1, "--idle").stdout)


if __name__ == "__main__":
    harness.main()
