#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""--children: processes that are there and that come later, forked and exec'd, in one profile with the process as a dimension."""
import os
import signal

import harness


class Children(harness.Case):
    def begin(self, *args):
        """A target with a child, and a rowprof that has seen something of it."""
        target = self.start(self.build("children"))
        process = harness.rowprof_start("--pid", target.pid, "--by", "process", "--no-kernel", "--format", "json", *args)
        harness.await_sampling(process)
        harness.let_run(target.pid, 0.3)
        return target, process

    def end(self, run):
        self.assertEqual(run.status, 0, run.stderr)
        profile = harness.Profile(run)
        self.assertGreater(profile.complete_share(), 0.98)
        return profile

    def follow(self, sampler):
        target, process = self.begin("--children", "--sampler", sampler, "--seconds", 3)
        os.kill(target.pid, signal.SIGUSR1)
        profile = self.end(harness.rowprof_wait(process))
        target.stop()
        truth = target.words("TRUTH")
        by_pid = {}
        for row in profile.data["processes"]:
            by_pid[row["pid"]] = by_pid.get(row["pid"], 0) + row["self"]
        self.assertEqual(set(by_pid), {target.pid, truth["early"], truth["later"], truth["exec"]})
        for name, pids in (("parent_work", [target.pid]), ("early_work", [truth["early"]]), ("later_work", [truth["later"]]),
                           ("exec_work", [truth["exec"]])):
            # Each function runs in its own process only, so shares by function and by process are the same thing.
            self.assertAlmostEqual(profile.total(name), sum(by_pid[pid] for pid in pids) / profile.samples, delta=0.03, msg=name)

    @harness.needs(harness.rowprof_there, harness.perf_events)
    def test_perf(self):
        self.follow("perf")

    @harness.needs(harness.rowprof_there, harness.ptrace)
    def test_ptrace(self):
        self.follow("ptrace")

    @harness.needs(harness.rowprof_there, harness.perf_events)
    def test_without_it_only_the_process_itself_which_may_become_another_program(self):
        target, process = self.begin("--seconds", 100)
        for number in (signal.SIGUSR1, signal.SIGUSR2):  # it forks, then it execs
            os.kill(target.pid, number)
            harness.let_run(target.pid, 0.3)
        profile = self.end(harness.rowprof_stop(process))
        rows = {row["generation"]: row["self"] for row in profile.data["processes"]}
        self.assertEqual({row["pid"] for row in profile.data["processes"]}, {target.pid})
        self.assertEqual(set(rows), {0, 1})
        for generation, name, seconds in ((0, "parent_work", 0.5), (1, "exec_work", 0.2)):
            self.assertAlmostEqual(profile.total(name), rows[generation] / profile.samples, delta=0.03, msg=name)
            self.assertGreater(rows[generation], 0.5 * seconds * profile.data["run"]["hz"])
        self.assertFalse({"early_work", "later_work"} & profile.names())


if __name__ == "__main__":
    harness.main()
