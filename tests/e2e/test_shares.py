#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Real processes that run SQLite: stacks are whole, little is left uncategorized, and costs move with the shape of the calls as
they must. Only what holds in any run is asserted here; shares against another profiler are another test's business."""
import re

import harness

READY_FOR = harness.needs(harness.rowprof_there, harness.perf_events)
NODE = harness.needs(harness.rowprof_there, harness.perf_events, harness.node24)
SQLITE, MUTEX, MALLOC = "sqlite VDBE + btree (real query work)", "pthread mutex", "malloc/free"


class Shares(harness.Case):
    def check_quality(self, profile, complete, uncategorized, grown=0):
        """`grown`: so many stacks may be cut besides, before the copies have grown to what this program needs."""
        self.assertLessEqual(profile.quality["truncated"], profile.samples * (1 - complete) + grown, profile.quality)
        self.assertLessEqual(profile.share("uncategorized"), uncategorized, {n: r["share"] for n, r in profile.categories.items()})
        self.assertAlmostEqual(sum(row["share"] for row in profile.categories.values()), 1.0, places=2)
        for row in profile.categories.values():
            self.assertLessEqual(row["low"], row["share"])
            self.assertGreaterEqual(row["high"], row["share"])


class CProgram(Shares):
    """On the distribution's stripped libsqlite3."""
    NAMES, OBJECTS = "name interning (rowload)", "row objects (rowload)"
    measured = {}

    def measure(self, *args):
        """Each way of calling is measured once, whoever looks."""
        if args not in self.measured:
            target = self.start_rowload("get", *args)
            self.measured[args] = self.profile(target.pid, seconds=3, kernel=True)
            target.stop()
            self.check_quality(self.measured[args], 0.999, 0.03)
        return self.measured[args]

    @READY_FOR
    def test_what_is_paid_per_call_vanishes_with_a_hundred_rows(self):
        one = self.measure("--op", "get", "--limit", "1")
        hundred = self.measure("--op", "all", "--limit", "100")
        self.assertGreater(one.share(self.NAMES), 0.05)
        self.assertLess(hundred.share(self.NAMES), 0.01)
        self.assertGreater(hundred.share(self.OBJECTS), one.share(self.OBJECTS))
        for profile in (one, hundred):
            for name in (SQLITE, MUTEX, MALLOC, self.OBJECTS):
                self.assertGreater(profile.share(name), 0.015, name)

    @READY_FOR
    def test_a_cost_that_is_switched_off_is_gone(self):
        cached = self.measure("--names", "cached")
        self.assertLess(cached.share(self.NAMES), 0.002)
        locked = self.measure("--op", "all", "--limit", "20", "--objects", "none")
        unlocked = self.measure("--op", "all", "--limit", "20", "--objects", "none", "--mutex", "none")
        self.assertLess(unlocked.share(self.OBJECTS), 0.002)
        # The allocator's own mutex stays.
        self.assertLess(unlocked.share(MUTEX), locked.share(MUTEX) / 2)

    @READY_FOR
    def test_the_mutex_is_paid_for_by_the_api(self):
        profile = self.measure("--op", "all", "--limit", "100")
        row = profile.categories[MUTEX]
        self.assertTrue(row["paid_by"])
        self.assertLessEqual(sum(payer["samples"] for payer in row["paid_by"]), row["samples"])


class CPython(Shares):
    @READY_FOR
    def test_sqlite3_module(self):
        for op in ("get", "all"):
            with self.subTest(op=op):
                target = self.start("/usr/bin/python3", harness.READ_PY, "--op", op, "--limit", 20)
                profile = self.profile(target.pid, seconds=3, kernel=True)
                target.stop()
                self.check_quality(profile, 0.99, 0.05)
                self.assertGreater(profile.share(SQLITE), 0.1)
                self.assertGreater(profile.share("CPython sqlite3 binding"), 0.02)
                self.assertGreater(profile.total(re.compile(r"^sqlite3_step$")), 0.1)


class Node(Shares):
    NAMES = "column-name interning (V8 strings)"

    def measure(self, op, limit):
        target = self.start_node(harness.READ_MJS, "--op", op, "--limit", limit)
        profile = self.profile(target.pid, "-t", "MainThread", seconds=5, kernel=True)
        target.stop()
        self.check_quality(profile, 0.99, 0.03, grown=25)
        self.assertGreaterEqual(profile.share(MUTEX), 0.10)
        self.assertLessEqual(profile.share(MUTEX), 0.26)
        return profile

    @NODE
    def test_column_names_cost_one_row_and_not_a_hundred(self):
        one, hundred = self.measure("get", 1), self.measure("all", 100)
        self.assertGreater(one.share(self.NAMES), 0.05)
        self.assertLess(hundred.share(self.NAMES), 0.005)
        self.assertLess(hundred.share(SQLITE), one.share(SQLITE) * 2 / 3)
        nodes = one.tree("v8.names")
        callers = [node for node in nodes if node["depth"] == 0 and "StatementExecutionHelper::Get" in node["symbol"]]
        self.assertTrue(callers, [node["symbol"] for node in nodes if node["depth"] == 0])
        self.assertTrue(all(node.get("offset") or node.get("line") for node in callers))


if __name__ == "__main__":
    harness.main()
