#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The ptrace sampler: sleepers are not disturbed (A02), nobody stays stopped (A03), the deadline holds (A14), shares agree with perf's."""
import json
import os
import random
import signal
import time

import harness

READY_FOR = harness.needs(harness.rowprof_there, harness.ptrace)
BOTH = harness.needs(harness.rowprof_there, harness.ptrace, harness.perf_events)
PTRACE = ("--sampler", "ptrace")


def runs_of_both(pid, *args):
    """Runs of ptrace and, where it may, of perf that watch one target at the same time."""
    samplers = ("ptrace",) if harness.perf_events() else ("ptrace", "perf")
    processes = [harness.rowprof_start("--pid", pid, "--sampler", sampler, *args) for sampler in samplers]
    return [harness.rowprof_wait(process) for process in processes]


class CaseA02Sleepers(harness.Case):
    @READY_FOR
    def test_event_loops_under_both_samplers(self):
        target = self.start(self.build("a02_loops"))
        for run in runs_of_both(target.pid, "-F", 997, "--seconds", 4, "--format", "json"):
            self.assertEqual(run.status, 0, run.stderr)
            self.assertGreater(harness.Profile(run).samples, 0)
        target.stop()
        truth = target.words("TRUTH")
        self.assertGreater(truth["calls"], 300)
        self.assertLessEqual(truth["interrupted"], truth["calls"] / 10000)
        self.assertLessEqual(truth["others_interrupted"], truth["others"] / 10000)


class CaseA03NobodyStaysStopped(harness.Case):
    @READY_FOR
    def test_killed_at_any_moment(self):
        target = self.start(self.build("a03"))
        seed = random.randrange(1 << 30)
        chance = random.Random(seed)
        for i in range(50):
            process = harness.rowprof_start("--pid", target.pid, "--seconds", 30, *PTRACE, "-F", 1000)
            if i % 2:  # in the midst of sampling; else most of the time while it attaches, or on the way there
                harness.await_sampling(process)
            time.sleep(chance.uniform(0, 0.15))
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()
            states = target.states()
            self.assertFalse(set(states) & set("Tt"), f"seed {seed}, kill {i}: {states}")
        target.stop()
        self.assertTrue(target.words("TRUTH"))

    @READY_FOR
    def test_signals_get_through(self):
        target = self.start(self.build("a03"), "signals", 4)
        process = harness.rowprof_start("--pid", target.pid, "--seconds", 3, *PTRACE, "-F", 1000, "--format", "json")
        for _ in range(200):  # and ours are no trouble to rowprof
            time.sleep(0.01)
            process.send_signal(signal.SIGWINCH)
        run = harness.rowprof_wait(process)
        self.assertEqual(run.status, 0, run.stderr)
        target.stop()
        truth = target.words("TRUTH")
        self.assertGreater(truth["handled"], 20)
        self.assertLessEqual(truth["sent"] - truth["handled"], 1)

    @READY_FOR
    def test_job_control_goes_on_as_if_nobody_watched(self):
        target = self.start(self.build("a03"))
        process = harness.rowprof_start("--pid", target.pid, "--seconds", 100, *PTRACE, "-F", 1000, "--format", "json")
        harness.await_sampling(process)
        for _ in range(20):
            os.kill(target.pid, signal.SIGSTOP)
            harness.until(lambda: set(target.states()) == {"T"}, "it stops")
            time.sleep(0.03)
            self.assertEqual(set(target.states()), {"T"}, "it did not stay stopped")
            os.kill(target.pid, signal.SIGCONT)
            harness.until(lambda: "T" not in target.states(), "it goes on")  # `t` for a moment is a sample being taken
            time.sleep(0.05)
        run = harness.rowprof_stop(process)
        self.assertEqual(run.status, 0, run.stderr)


class CaseA14Deadline(harness.Case):
    def ends(self, pid, sampler, seconds, status):
        begin = time.monotonic()
        kept = os.path.join(self.scratch, f"{sampler}.rowprof")
        run = harness.rowprof("record", "--pid", pid, "--seconds", seconds, "--sampler", sampler, "-o", kept, timeout=60)
        took = time.monotonic() - begin
        # Nothing ran and all waiting was idling: 5 by `rowprof help exit-status`; a stopped thread waits in the middle of its work: 0. The profile
        # is kept all the same.
        self.assertEqual(run.status, status, run.stderr)
        self.assertLess(took, seconds + 20, "a busy machine is slow, but not so slow")
        shown = harness.rowprof("report", kept, "--format", "json")
        self.assertEqual(shown.status, status, shown.stderr)
        self.assertEqual(json.loads(shown.stdout_bytes)["quality"]["samples"], 0)

    @BOTH
    def test_a_target_blocked_in_a_pipe_read(self):
        target = harness.subprocess.Popen(["cat"], stdin=harness.subprocess.PIPE, stdout=harness.subprocess.DEVNULL)
        self.addCleanup(target.wait)
        self.addCleanup(target.stdin.close)
        harness.until(lambda: harness.waits_in(target.pid, "0 0x0"), "it reads")
        for sampler in ("perf", "ptrace"):
            self.ends(target.pid, sampler, 0.5, 5)
        self.assertIsNone(target.poll())

    @BOTH
    def test_a_stopped_target(self):
        target = self.start(self.build("a03"))
        os.kill(target.pid, signal.SIGSTOP)
        harness.until(lambda: set(target.states()) == {"T"}, "it is stopped")
        for sampler in ("perf", "ptrace"):
            self.ends(target.pid, sampler, 0.5, 0)
        self.assertEqual(set(target.states()), {"T"})
        os.kill(target.pid, signal.SIGCONT)
        harness.until(lambda: not set(target.states()) & set("Tt"), "it goes on")


# Rowload reads its CPU clock every 200 us. A stop takes some microseconds to reach a running thread, and a system call made meanwhile ends in it: seen
# here, 0.5 % of the samples by perf are 3 % by ptrace. All other categories agree.
SYSTEM_CALLS = "clock reads"


class Agreement(harness.Case):
    """Both samplers at the same time on the same target: what they say differs by chance only."""

    def both(self, pid, *args, seconds=6):
        runs = runs_of_both(pid, "--seconds", seconds, "--no-kernel", "--format", "json", *args)
        for run in runs:
            self.assertEqual(run.status, 0, run.stderr)
        return [harness.Profile(run) for run in reversed(runs)]

    def agree(self, perf, ptrace):
        self.assertEqual(ptrace.data["run"]["clock"], "ptrace")
        self.assertGreaterEqual(ptrace.complete_share(), 0.99)
        for name, row in perf.categories.items():
            other = ptrace.categories.get(name)
            if name == SYSTEM_CALLS:
                self.assertLessEqual(other["share"] if other else 0, row["share"] + 0.06, name)
                continue
            # Two intervals of 95 % that do not touch: once in some thousand categories by chance; twice their width is allowed.
            width = (row["high"] - row["low"]) + ((other["high"] - other["low"]) if other else 4 / ptrace.samples)
            self.assertLessEqual(abs(row["share"] - (other["share"] if other else 0)), width, name)

    @BOTH
    def test_get(self):
        target = self.start_rowload("get")
        self.agree(*self.both(target.pid))

    @BOTH
    def test_mix(self):
        target = self.start_rowload("mix")
        perf, ptrace = self.both(target.pid)
        self.agree(perf, ptrace)
        for name in ("rw_mix_a", "rw_mix_b", "rw_mix_c"):
            self.assertAlmostEqual(ptrace.self_share(name), perf.self_share(name), delta=0.1, msg=name)

    @BOTH
    def test_threads_that_come_and_go(self):
        target = self.start(self.build("a07"))
        perf, ptrace = self.both(target.pid, seconds=5)
        for name in ("late_hot", "short_work"):
            self.assertAlmostEqual(ptrace.total(name), perf.total(name), delta=0.1, msg=name)


class ManyThreads(harness.Case):
    def one_is_busy(self, *args, **options):
        target = self.start(self.build("many_threads"), 2000)
        run = self.rowprof_ok("--pid", target.pid, "--seconds", 2, "--no-kernel", "--format", "json", *args, **options)
        profile = harness.Profile(run)
        self.assertGreaterEqual(profile.total("only_work"), 0.95)
        self.assertLess(run.max_rss_mb, 300)
        return profile

    @BOTH
    def test_perf(self):
        self.one_is_busy("--sampler", "perf")

    @harness.needs(harness.rowprof_there, harness.perf_events, harness.root)
    def test_perf_with_few_descriptors(self):
        profile = self.one_is_busy("--sampler", "perf", preexec_fn=few_files)
        self.assertIn("whole CPUs", profile.notes)

    @READY_FOR
    def test_ptrace_with_few_descriptors(self):
        self.one_is_busy(*PTRACE, preexec_fn=few_files)


def few_files():
    harness.die_with_parent()
    harness.resource.setrlimit(harness.resource.RLIMIT_NOFILE, (1024, 1024))


if __name__ == "__main__":
    harness.main()
