#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Each workload's profile shows what workloads/README.md says it should: the category that leads, and the one that moves."""
import harness
from rowload_runs import run_ok

READY_FOR = harness.needs(harness.rowprof_there, harness.perf_events)
ENGINE, MUTEX, PARSER = "sqlite VDBE + btree (real query work)", "pthread mutex", "sqlite parser and planner (prepare)"
LOCKS, CHECK = "kernel: file locks", "version check (rowload)"
CONVERT, QUERY = "result conversion (rowload)", "pool query (rowload)"
HELD, OUT = "lock held (rowload)", "outside the lock (rowload)"
CALL, ROW = "per call (rowload)", "per row (rowload)"


class Workloads(harness.Case):
    def shares(self, *args, seconds=1, kernel=True):
        """The categories of a running workload, interrupts aside: on a busy machine they are nobody's cost."""
        target = self.start_rowload(*args)
        profile = self.profile(target.pid, "-F", 997, seconds=seconds, kernel=kernel)
        target.stop()
        self.assertEqual(target.process.returncode, 0)
        self.assertLessEqual(profile.share("uncategorized"), 0.03, profile.categories.keys())
        self.assertGreaterEqual(profile.complete_share(), 0.98)
        return profile

    def leads(self, profile, name):
        shares = {row: values["share"] for row, values in profile.categories.items() if row != "kernel: interrupts"}
        self.assertEqual(max(shares, key=shares.get), name, shares)

    def divided(self, profile, one, other, wanted, at_least=0.85):
        """The first of two categories has the wanted share of both, as well as that many samples can tell."""
        both = profile.share(one) + profile.share(other)
        self.assertGreater(both, at_least)
        error = 4 * (wanted * (1 - wanted) / (both * profile.samples)) ** 0.5
        self.assertAlmostEqual(profile.share(one) / both, wanted, delta=0.03 + error)

    @READY_FOR
    def test_scan_is_the_missing_index(self):
        base = ["scan", "--processes", 1, "--threads", 2, "--steady", 0]
        scanned, indexed = self.shares(*base), self.shares(*base, "--index")
        self.leads(scanned, ENGINE)
        self.assertGreater(scanned.share(ENGINE), 0.75)
        self.assertLess(scanned.share(MUTEX), 0.05)
        self.assertLess(indexed.share(ENGINE), scanned.share(ENGINE) - 0.2)

    @READY_FOR
    def test_version_checks(self):
        fresh, kept = self.shares("verchk", "--mode", "reprepare"), self.shares("verchk", "--mode", "prepared")
        self.assertGreater(fresh.share(PARSER), 0.05)
        self.assertLess(kept.share(PARSER), 0.01)
        self.leads(kept, LOCKS)
        self.leads(self.shares("verchk", "--mode", "header"), MUTEX)
        header = self.shares("verchk", "--mode", "header-nolock")
        self.leads(header, CHECK)
        self.assertLess(header.share(LOCKS), 0.02)

    @READY_FOR
    def test_event_loop(self):
        real = self.shares("evloop")
        self.leads(real, ENGINE)
        self.assertGreater(real.share(CONVERT), 0.2)
        self.divided(self.shares("evloop", "--query", "spin"), CONVERT, QUERY, 270 / (270 + 350))

    @READY_FOR
    def test_locks_while_they_are_on_the_processor(self):
        for kind in ("mutex", "spin"):
            with self.subTest(kind=kind):
                profile = self.shares("lockmix", "--threads", 2, "--hold", "spin", "--out", "spin", "--hold-ns", 300000,
                                      "--out-ns", 100000, "--kind", kind, kernel=False)
                self.divided(profile, HELD, OUT, 0.75, 0.85 if kind == "mutex" else 0.2)
                if kind == "mutex":
                    self.leads(profile, HELD)
                else:  # whoever waits spins too
                    self.assertGreater(profile.share("condition variables and other locks"), 0.01)

    @READY_FOR
    def test_two_shapes(self):
        for limit in (1, 10):
            with self.subTest(limit=limit):
                profile = self.shares("twoshape", "--limit", limit, kernel=False)
                self.divided(profile, CALL, ROW, 2000 / (2000 + limit * 500))

    @READY_FOR
    def test_writer(self):
        profile = self.shares("write", "--synchronous", "off", "--journal", "truncate")
        kernel = sum(row["share"] for name, row in profile.categories.items() if name.startswith("kernel: "))
        self.assertGreater(kernel, 0.5)
        self.assertGreater(profile.share("kernel: file write"), 0.05)
        many = self.shares("write", "--synchronous", "off", "--rows-per-tx", 200)
        self.leads(many, ENGINE)

    @READY_FOR
    def test_names_cost_what_goes_when_they_go(self):
        ablated = run_ok("get", "--ablate", "names", "--secs", 1.5).words("ABLATE")["share"]
        profile = self.shares("get", seconds=3, kernel=False)
        sampled = profile.total("rw_intern_name") + profile.total("sqlite3_column_name")
        print(f"names: {ablated:.4f} by ablation, {sampled:.4f} in the profile of {profile.samples}")
        self.assertAlmostEqual(sampled, ablated, delta=0.03 + 2 * (sampled * (1 - sampled) / profile.samples) ** 0.5)


if __name__ == "__main__":
    harness.main()
