#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The workloads keep their protocol and know themselves: READY, RATE, SUM, TRUTH, equal work across variants."""
import os
import re
import signal
import struct
import time

import harness
from rowload_runs import run, run_ok, sums

RATE_KEYS = {"calls", "rows", "secs", "rate", "cpu_secs", "cpu_rate", "ns_per_call", "nvcsw", "nivcsw", "span"}


class Protocol(harness.Case):
    def check_target(self, target):
        for key in ("pid", "tid", "workload", "op", "limit", "seed"):
            self.assertIn(key, target.ready)
        self.assertEqual(int(target.ready["tid"]), target.pid)
        self.assertTrue(os.path.isdir(f"/proc/{target.pid}/task/{target.ready['tid']}"))
        target.stop(signal.SIGTERM)
        self.assertEqual(target.process.returncode, 0)
        self.assertLessEqual(RATE_KEYS, set(target.words("RATE")))
        self.assertTrue(any(line.startswith("SUM ") for line in target.out))

    def test_get(self):
        self.check_target(self.start_rowload("get"))

    def test_mix(self):
        self.check_target(self.start_rowload("mix", "--idle", "epoll", "--idle-threads", "2"))

    @harness.needs(harness.node24)
    def test_node(self):
        for op in ("get", "all", "iterate"):
            with self.subTest(op=op):
                self.check_target(self.start_node(harness.READ_MJS, "--op", op, "--limit", "10"))

    def test_python(self):
        for op in ("get", "all", "iterate"):
            with self.subTest(op=op):
                self.check_target(self.start("/usr/bin/python3", harness.READ_PY, "--op", op, "--limit", "10"))

    def test_int_ends_it_too(self):
        target = self.start_rowload("get")
        target.stop(signal.SIGINT)
        self.assertEqual(target.process.returncode, 0)
        self.assertIn("calls", target.words("RATE"))  # none, when the signal comes right after READY

    def test_calls_are_exact(self):
        for workload in (["get", "--op", "all", "--limit", "7"], ["mix"]):
            calls = 1003 if workload[0] == "get" else 37
            rate = run_ok(*workload, "--calls", calls).words("RATE")
            self.assertEqual((rate["calls"], rate["rows"]), (calls, 7021) if workload[0] == "get" else (calls, rate["rows"]))

    def test_holds_for_its_seconds_and_reports_each(self):
        done = run_ok("get", "--secs", "2.2", "--progress")
        spans = re.findall(r"^RATE .*\bspan=(\w+)", done.stdout, re.M)
        self.assertEqual(spans[-1], "run")
        self.assertLessEqual(set(spans[:-1]), {"second"})
        self.assertIn(len(spans), (2, 3))  # a second may be late on a busy machine, but never one too many
        self.assertGreaterEqual(done.words("RATE")["secs"], 2.2)

    def test_counter_can_be_read_from_outside(self):
        path = os.path.join(self.scratch, "counter")
        target = self.start_rowload("get", "--counter", path)

        def read():
            with open(path, "rb") as file:
                return struct.unpack("=QQ", file.read(16))
        first = read()
        while read()[0] <= first[0] or read()[1] <= first[1]:
            self.assertTrue(target.alive())
        target.stop()
        self.assertEqual(read()[0], int(target.words("RATE")["calls"]))

    def test_bad_options_are_one_sentence_and_status_2(self):
        for args in (["nothing"], [], ["get", "--limit"], ["get", "--limit", "0"], ["get", "--limit", "1x"],
                     ["get", "--limit", "99999999999999999999"], ["get", "--op", "none"], ["get", "--progress=1"],
                     ["mix", "--mix", "a=50,b=49"], ["mix", "--mix", "a=50,,b=50"], ["mix", "--mix", "a=50,a=50"],
                     ["mix", "--mix", "z=100"], ["mix", "--mix", "a=33.33,b=66.67"], ["get", "--secs", "1.2.3"], ["get", "x"]):
            with self.subTest(args=args):
                done = run(*args)
                self.assertEqual(done.status, 2)
                self.assertRegex(done.stderr, r"\Arowload: [^\n]*\.\n\Z")
                self.assertEqual(done.stdout, "")


class EqualWork(harness.Case):
    def sums(self, *variants):
        return sums(*(("get", "--calls", "2000", *variant) for variant in variants))

    def test_switches_that_only_move_cost_keep_the_sum(self):
        for op in ("get", "all"):
            base = ["--op", op, "--limit", "9"]
            found = self.sums(base, [*base, "--names", "cached"], [*base, "--names", "perrow"], [*base, "--mutex", "none"],
                              [*base, "--objects", "none"])
            self.assertEqual(len(set(found)), 1, found)

    def test_what_changes_the_data_changes_the_sum(self):
        found = self.sums([], ["--seed", "2"], ["--blobs", "none"], ["--cols", "3"], ["--cols", "8kb"], ["--op", "all", "--limit", "2"])
        self.assertEqual(len(set(found)), len(found), found)

    def test_get_and_all_read_the_same_row(self):
        self.assertEqual(*self.sums(["--op", "get"], ["--op", "all"]))


class Truth(harness.Case):
    def truth(self, *args):
        return run_ok("mix", "--secs", "2", *args).words("TRUTH")

    def test_split_is_the_one_asked_for(self):
        for args, wanted in ((["--mix", "a=50,b=30,c=20"], {"a": 0.5, "b": 0.3, "c": 0.2}),
                             (["--mix", "a=97.5,h=2.5", "--depth", "20", "--rec", "9", "--fp", "0"], {"a": 0.975, "h": 0.025})):
            truth = self.truth(*args)
            for letter, share in wanted.items():
                self.assertAlmostEqual(truth[letter], share, delta=0.02)
            self.assertAlmostEqual(sum(truth[letter] for letter in wanted), 1.0, places=3)

    def test_clock_reads_cost_next_to_nothing(self):
        self.assertLess(self.truth()["clock"], 0.002)


class Idle(harness.Case):
    @staticmethod
    def blocked_in(target, tid):
        """The number of the system call that thread waits in; it may still be on its way there."""
        for _ in range(1000):
            with open(f"/proc/{target.pid}/task/{tid}/syscall", encoding="ascii") as file:
                word = file.read().split()[0]
            if word != "running":
                return int(word)
            time.sleep(0.01)
        return None

    def test_idle_threads_wait_where_they_should(self):
        for idle, call in (("futex", 202), ("epoll", 232), ("pipe", 0), ("sleep", (35, 230))):
            with self.subTest(idle=idle):
                target = self.start_rowload("mix", "--idle", idle, "--idle-threads", "3")
                tids = [tid for tid in os.listdir(f"/proc/{target.pid}/task") if int(tid) != target.pid]
                self.assertEqual(len(tids), 3)
                for tid in tids:
                    self.assertIn(self.blocked_in(target, tid), call if isinstance(call, tuple) else (call,))
                target.stop()
                self.assertEqual(target.process.returncode, 0)


if __name__ == "__main__":
    harness.main()
