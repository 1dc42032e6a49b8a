#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""--children: processes that are there and that come later, forked and exec'd, in one profile with the process as a dimension."""
import harness


class Children(harness.Case):
    def follow(self, sampler):
        target = self.start(self.build("children"))
        profile = self.profile(target.pid, "--children", "--sampler", sampler, "--by", "process", seconds=6)
        target.stop()
        truth = target.words("TRUTH")
        by_pid = {}
        for row in profile.data["processes"]:
            by_pid[row["pid"]] = by_pid.get(row["pid"], 0) + row["self"]
        self.assertEqual(set(by_pid), {target.pid, truth["early"], truth["later"], truth["exec"]})
        self.assertGreater(profile.complete_share(), 0.98)
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
    def test_without_it_only_the_process_itself(self):
        target = self.start(self.build("children"))
        profile = self.profile(target.pid, seconds=3)
        self.assertGreater(profile.total("parent_work"), 0.9)
        self.assertEqual(profile.total("later_work") + profile.total("early_work"), 0)


if __name__ == "__main__":
    harness.main()
