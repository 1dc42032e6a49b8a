#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Field cases about stacks: no frame pointers (A04), recursion (A10), JIT code in the middle (A17), depth and size (A21)."""
import re

import harness

NODE_START = re.compile(r"^node::Start\b")  # main itself jumps there
READY_FOR = harness.needs(harness.rowprof_there, harness.perf_events)


class CaseA04NoFramePointer(harness.Case):
    @READY_FOR
    def test_stacks_reach_main_past_a_junk_base_register(self):
        target = self.start(self.build("a04"))
        profile = self.profile(target.pid)
        for name in ("mid2", "mid1", "main"):
            self.assertGreaterEqual(profile.total(name), 0.99, name)
        self.assertGreaterEqual(profile.self_share("leaf"), 0.95)
        self.assertGreaterEqual(profile.complete_share(), 0.99)
        # The junk 0x5a5a... must never be taken for an address.
        self.assertFalse([name for name in profile.names() if "5a5a5a" in name])

    @READY_FOR
    def test_a_handler_stands_on_what_it_interrupted(self):
        profile = self.profile(self.start(self.build("a04_signal")).pid)
        self.assertGreaterEqual(profile.complete_share(), 0.99)
        self.assertGreater(profile.total("handler_work"), 0.1)
        for name in ("interrupted", "main"):
            self.assertGreaterEqual(profile.total(name), 0.99, name)
        callers = {row["symbol"]: row["total"] for row in profile.functions}
        self.assertAlmostEqual(callers["on_signal"], callers["handler_work"], delta=0.01 * profile.samples)

    @READY_FOR
    def test_depth_and_recursion_without_frame_pointers(self):
        target = self.start_rowload("mix", "--fp", "0", "--depth", "12", "--rec", "6", "--mix", "a=60,b=40")
        profile = self.profile(target.pid)
        for name in ("rw_nofp_depth", "rw_nofp_rec_a", "rw_nofp_rec_b", "rw_mix_nofp_enter", "main"):
            self.assertGreaterEqual(profile.total(name), 0.98, name)


class CaseA10Recursion(harness.Case):
    def check_no_share_above_all(self, profile):
        for row in profile.functions:
            self.assertLessEqual(row["total"], profile.samples, row)
            self.assertLessEqual(row["self"], row["total"], row)
        for row in profile.categories.values():
            self.assertLessEqual(row["total"], profile.samples, row)

    @READY_FOR
    def test_mutual_recursion_counts_once(self):
        for fp, prefix in (("1", "rw_rec_"), ("0", "rw_nofp_rec_")):
            with self.subTest(fp=fp):
                target = self.start_rowload("mix", "--rec", "40", "--fp", fp)
                profile = self.profile(target.pid)
                self.check_no_share_above_all(profile)
                for letter in "ab":
                    self.assertGreaterEqual(profile.total(prefix + letter), 0.98)
                    self.assertLessEqual(profile.self_share(prefix + letter), 0.02)

    @READY_FOR
    def test_sqlite_inside_sqlite_counts_once(self):
        target = self.start(self.build("a10"))
        profile = self.profile(target.pid)
        self.check_no_share_above_all(profile)
        self.assertGreaterEqual(profile.total("sqlite3VdbeExec"), 0.5)
        self.assertGreaterEqual(profile.total("nested"), 0.9)


class CaseA17JitInTheMiddle(harness.Case):
    @READY_FOR
    def test_native_jit_native(self):
        target = self.start(self.build("a17"))
        self.write_map(target.pid, f"{int(target.ready['code'], 16):x} 8 jit_middle\n")
        profile = self.profile(target.pid)
        self.assertGreaterEqual(profile.self_share("callee"), 0.95)
        for name in ("jit_middle", "outer", "main"):
            self.assertGreaterEqual(profile.total(name), 0.98, name)
        self.assertGreaterEqual(profile.complete_share(), 0.98)

    @READY_FOR
    def test_without_a_map_the_frame_is_called_jit(self):
        target = self.start(self.build("a17"))
        profile = self.profile(target.pid)
        self.assertGreaterEqual(profile.total("[jit]"), 0.98)
        self.assertGreaterEqual(profile.total("main"), 0.98)

    @harness.needs(harness.rowprof_there, harness.perf_events, harness.node24)
    def test_node_stacks_cross_javascript(self):
        target = self.start_node("--interpreted-frames-native-stack", "--perf-basic-prof", harness.READ_MJS)
        self.addCleanup(self.write_map, target.pid, "")
        profile = self.profile(target.pid, "-t", "MainThread", seconds=3)
        self.assertGreaterEqual(profile.complete_share(), 0.95)  # a few are cut before the copy has grown
        self.assertGreaterEqual(profile.total(NODE_START), 0.95)
        # The workload's own functions, whatever file of it they stand in.
        self.assertGreaterEqual(profile.total(re.compile(r"^JS:.*workloads/node/.*\.mjs:\d+")), 0.9)


class CaseA21DeepStacks(harness.Case):
    def check_rooted(self, profile, least_complete):
        """Each stack reaches main, or says with its root frame that it was cut."""
        self.assertEqual(profile.quality["complete"] + profile.quality["truncated"], profile.samples)
        cut = profile.quality["truncated"] / profile.samples
        self.assertGreaterEqual(profile.total("main") + cut, 0.98)
        self.assertGreaterEqual(profile.complete_share(), least_complete)
        if cut > 0.01:
            self.assertTrue(profile.rows(re.compile(r"^\[truncated")), "cut stacks have no root that says so")

    @READY_FOR
    def test_recursion_300_deep_is_whole(self):
        profile = self.profile(self.start(self.build("a21"), "deep", "300").pid)
        self.check_rooted(profile, 0.98)
        self.assertGreaterEqual(profile.total("deeper"), 0.98)

    @READY_FOR
    def test_recursion_5000_deep_says_where_it_was_cut(self):
        profile = self.profile(self.start(self.build("a21"), "deep", "5000").pid)
        self.check_rooted(profile, 0.0)
        self.assertGreaterEqual(profile.total("deeper"), 0.98)

    @READY_FOR
    def test_large_locals_say_where_they_were_cut(self):
        profile = self.profile(self.start(self.build("a21"), "alloca", "100000").pid)
        self.check_rooted(profile, 0.0)
        self.assertGreaterEqual(profile.self_share("bottom"), 0.9)

    @READY_FOR
    def test_medium_locals_are_whole_once_the_copy_has_grown(self):
        # Three frames of 15,000 bytes fit into the largest copy the kernel makes, not into the first one.
        profile = self.profile(self.start(self.build("a21"), "alloca", "15000").pid, seconds=4)
        self.check_rooted(profile, 0.5)
        self.assertGreaterEqual(profile.total("wider"), 0.5)

    @READY_FOR
    def test_memory_is_bounded_100000_deep(self):
        profile = self.profile(self.start(self.build("a21"), "deep", "100000").pid)
        self.check_rooted(profile, 0.0)
        self.assertLess(profile.run.max_rss_mb, 300)


if __name__ == "__main__":
    harness.main()
