#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Field cases about sampling: threads that come and go (A07), no hardware counter (A09), lost samples (A15)."""
import json
import signal

import harness

READY_FOR = harness.needs(harness.rowprof_there, harness.perf_events)


class CaseA07Threads(harness.Case):
    @READY_FOR
    def test_later_and_short_threads_are_covered(self):
        target = self.start(self.build("a07"))
        profile = self.profile(target.pid, seconds=4)
        target.stop()
        truth = target.words("TRUTH")
        self.assertGreater(truth["threads"], 3)  # 50 ms of CPU each, however long that takes here
        for name in ("late_hot", "short_work"):
            self.assertAlmostEqual(profile.total(name), truth[name], delta=0.06, msg=name)
        self.assertLess(profile.quality["lost"] / profile.samples, 0.02)
        self.assertGreaterEqual(profile.complete_share(), 0.97)


class CaseA09NoHardwareCounter(harness.Case):
    @READY_FOR
    def test_samples_come_by_themselves_and_the_clock_is_named(self):
        target = self.start_rowload("mix")
        profile = self.profile(target.pid, seconds=2)
        self.assertGreater(profile.samples, 200)
        self.assertRegex(profile.data["run"]["clock"], r"^(cpu-clock|cycles)")


class CaseA15Lost(harness.Case):
    @READY_FOR
    def test_a_slow_reader_counts_what_it_lost(self):
        target = self.start_rowload("mix", "--depth", "50")
        process = harness.rowprof_start("--pid", target.pid, "--seconds", 100, "-F", 4999, "--format", "json")
        harness.await_sampling(process)
        harness.let_run(target.pid, 0.2)
        process.send_signal(signal.SIGSTOP)
        harness.let_run(target.pid, 2)  # its ring holds half a second at a fifth of this rate
        process.send_signal(signal.SIGCONT)
        harness.let_run(target.pid, 0.2)
        run = harness.rowprof_stop(process)
        self.assertEqual(run.status, 0, run.stderr)
        quality = json.loads(run.stdout_bytes)["quality"]
        self.assertGreater(quality["lost"], 0)
        if quality["lost"] > 0.01 * (quality["samples"] + quality["lost"]):
            self.assertRegex(json.dumps(json.loads(run.stdout_bytes)["notes"]), r"(?i)\blost\b.*--?\w", "the note does not say which option helps")
        self.assertTrue(target.alive())


if __name__ == "__main__":
    harness.main()
