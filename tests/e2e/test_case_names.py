#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Field cases about names: segment offsets (A01), return addresses (A05), aliases (A11), sizes and gaps (A16), PLT stubs
(A19), demangling (A25)."""
import re

import harness
from harness import build

READY_FOR = harness.needs(harness.rowprof_there, harness.perf_events)


class CaseA01SegmentOffsets(harness.Case):
    @READY_FOR
    def test_lld_layout(self):
        target = self.start(self.build("a01"))
        profile = self.profile(target.pid)
        self.assertGreaterEqual(profile.self_share("hot_function"), 0.97)
        self.assertFalse({"cold_before", "cold_after"} & profile.names())
        self.assertGreaterEqual(profile.total("main"), 0.97)

    @harness.needs(harness.rowprof_there, harness.perf_events, harness.node24)
    def test_node_with_three_code_segments(self):
        target = self.start_node(harness.READ_MJS)
        profile = self.profile(target.pid, "-t", "MainThread")
        # One wrong segment would put these names elsewhere: the binding must stand above SQLite, main above it all.
        for name in (r"^node::sqlite::StatementSync::Get\b", r"^node::Start\b"):
            self.assertGreaterEqual(profile.total(re.compile(name)), 0.9, name)
        self.assertGreater(profile.total("sqlite3_step"), 0.05)


class CaseA05ReturnAddress(harness.Case):
    @READY_FOR
    def test_the_caller_is_named_not_what_follows_it(self):
        target = self.start(self.build("a05"))
        profile = self.profile(target.pid)
        self.assertNotIn("innocent", profile.names())
        self.assertGreaterEqual(profile.total("caller"), 0.99)
        self.assertGreaterEqual(profile.total("main"), 0.99)


class CaseA11Aliases(harness.Case):
    @READY_FOR
    def test_one_name_whatever_the_order_of_the_table(self):
        for order in ("a11_order0", "a11_order1"):
            target = self.start(self.build(order))
            for _ in range(5):
                profile = self.profile(target.pid, seconds=0.2, least=50)
                self.assertGreaterEqual(profile.self_share("real_name"), 0.95, profile.names())
                self.assertFalse({"a_weak_name", "__real_name", "__GI_real_name"} & profile.names())
            target.stop()

    @READY_FOR
    def test_rules_see_every_alias(self):
        rules = self.scratch + "/alias.yaml"
        with open(rules, "w", encoding="ascii") as file:
            file.write('categories:\n  - {id: t.alias, name: "by its alias", kind: cost}\n'
                       'rules:\n  - {id: t-alias, category: t.alias, symbol: "a_weak_name"}\n')
        target = self.start(self.build("a11_order0"))
        profile = self.profile(target.pid, "--rules", rules)
        self.assertGreaterEqual(profile.categories["by its alias"]["share"], 0.95)


class CaseA16SizesAndGaps(harness.Case):
    @READY_FOR
    def test_a_label_without_size_reaches_to_the_next_symbol(self):
        profile = self.profile(self.start(self.build("a16_zero")).pid)
        self.assertGreaterEqual(profile.self_share("zero_sized_hot"), 0.97)
        self.assertFalse({"sized_before", "sized_after"} & profile.names())

    @READY_FOR
    def test_a_hidden_function_is_not_given_to_the_export_before_it(self):
        target = self.start(self.build("a16_gap"))
        address, size, _ = build.symbols(self.build("libgap_whole.so"))["hidden_hot"]
        profile = self.profile(target.pid)
        self.assertFalse({"export_before", "export_after", "hidden_hot"} & profile.names())
        self.assertLess(profile.self_share("run_gap"), 0.02)
        found = 0
        for row in profile.rows(re.compile(r"^libgap\.so\+0x")):
            offset = int(re.match(r"libgap\.so\+0x([0-9a-f]+)", row["symbol"]).group(1), 16)
            self.assertTrue(address <= offset < address + size, row)
            found += row["self"]
        self.assertGreaterEqual(found / profile.samples, 0.97)
        self.assertGreater(profile.quality["unnamed"], 0)
        self.assertGreaterEqual(profile.total("main"), 0.97)


class CaseA19Plt(harness.Case):
    @READY_FOR
    def test_stubs_are_named_from_their_relocations(self):
        profile = self.profile(self.start(self.build("a19")).pid)
        self.assertGreater(profile.self_share("getpagesize@plt"), 0.02, profile.names())
        self.assertNotIn("_init", profile.names())
        self.assertGreaterEqual(profile.total("main"), 0.97)


class CaseA25Demangling(harness.Case):
    @READY_FOR
    def test_templates_rust_and_a_name_of_200000_letters(self):
        target = self.start(self.build("a25"))
        profile = self.profile(target.pid)
        names = profile.names()
        for wanted in (r"\(anonymous namespace\)::exec<void ?\(\*\)\(\)>", r"^<a::S<3(usize)?, fn\(u8\) -> i32> as a::T>::go",
                       r"^core::fmt::Formatter::pad$"):
            found = profile.rows(re.compile(wanted))
            self.assertTrue(found, f"{wanted} is not among {[name[:100] for name in names]}")
            self.assertGreater(sum(row["self"] for row in found) / profile.samples, 0.05)
        # The long one is whole, or raw, or cut with balanced brackets; never missing.
        long_names = [row for row in profile.functions if re.match(r"f\(int|_Z1fPPP", row["symbol"])
                      or re.match(r"f$", row["symbol"])]
        self.assertGreater(sum(row["self"] for row in long_names) / profile.samples, 0.05, [name[:60] for name in names])
        for name in names:
            for left, right in ("()", "<>", "[]"):
                bare = re.sub(r"operator(<<=?|>>=?|<=>|<=?|>=?|->\*?)|->", "", name)
                self.assertEqual(bare.count(left), bare.count(right), name[:200])


if __name__ == "__main__":
    harness.main()
