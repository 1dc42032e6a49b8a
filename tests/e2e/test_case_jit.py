#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Field cases about JIT maps: stale entries (A08), names that break reports (A18), dialects and code no map explains (A20)."""
import csv
import io
import os
import re
import shutil
import tempfile
import unicodedata

import harness

READY_FOR = harness.needs(harness.rowprof_there, harness.perf_events)

class JitCase(harness.Case):
    def start_page(self, *offsets):
        """A target spinning at these offsets of a JIT page; returns it and the page's address."""
        target = self.start(self.build("jit_page"), *(f"{offset:x}" for offset in offsets))
        return target, int(target.ready["page"], 16)


class CaseA08StaleMaps(JitCase):
    @READY_FOR
    def test_the_later_line_wins_at_one_address(self):
        target, page = self.start_page(0x100)
        self.write_map(target.pid, f"{page + 0x100:x} 10 stale\n{page + 0x100:x} 10 fresh\n")
        profile = self.profile(target.pid)
        self.assertGreaterEqual(profile.self_share("fresh"), 0.97)
        self.assertNotIn("stale", profile.names())

    @READY_FOR
    def test_a_wide_stale_entry_stays_valid_outside_the_fresh_one(self):
        target, page = self.start_page(0x100, 0x800)
        self.write_map(target.pid, f"{page:x} 1000 stale_wide\n{page + 0x100:x} 10 fresh_narrow\n")
        profile = self.profile(target.pid)
        self.assertAlmostEqual(profile.self_share("fresh_narrow"), 0.5, delta=0.1)
        self.assertAlmostEqual(profile.self_share("stale_wide"), 0.5, delta=0.1)

    @READY_FOR
    def test_a_fresh_wide_entry_covers_stale_narrow_ones(self):
        target, page = self.start_page(0x100, 0x800)
        self.write_map(target.pid, f"{page + 0x100:x} 10 stale_1\n{page + 0x7f0:x} 40 stale_2\n{page:x} 1000 fresh_wide\n")
        profile = self.profile(target.pid)
        self.assertGreaterEqual(profile.self_share("fresh_wide"), 0.97)
        self.assertFalse({"stale_1", "stale_2"} & profile.names())

    @harness.needs(harness.rowprof_there, harness.perf_events, harness.node24)
    def test_node_that_keeps_compiling(self):
        script = os.path.join(self.scratch, "evals.js")
        with open(script, "w", encoding="ascii") as file:
            file.write("""
let made = 0;
function steadyLoop(f) { let s = 0; for (let i = 0; i < 200000; i++) s = (s + f(i)) | 0; return s; }
function turn() {
  const name = 'made_' + (made++);
  steadyLoop(eval('(function ' + name + '(x) { return (x * ' + made + ') ^ ' + made + '; })'));
  setImmediate(turn);
}
for (let i = 0; i < 50; i++) turn();
console.error('READY pid=' + process.pid);
""")
        target = self.start_node("--perf-basic-prof", "--interpreted-frames-native-stack", script)
        self.addCleanup(self.write_map, target.pid, "")
        profile = self.profile(target.pid, "-t", "MainThread", seconds=4)
        self.assertGreaterEqual(profile.total(re.compile(r"^node::Start\b")), 0.9)
        self.assertTrue(profile.rows(re.compile(r"steadyLoop")), sorted(profile.names())[:50])
        self.assertLess(profile.total("[jit]"), 0.1)


EVIL = ['a</script><b>&"\'', "x;y z", "tab\there", "escape\x1b[31mred", "emoji \U0001f600 here", "L" * 5000]
EVIL_BYTES = b"bad\xffbyte"


class CaseA18EvilNames(JitCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.kept = None

    def show(self, *args):
        """One recording in any form: as bytes, decoded strictly, since bad UTF-8 must have been replaced."""
        if not self.kept:
            offsets = [0x100 * (i + 1) for i in range(len(EVIL) + 1)]
            target, page = self.start_page(*offsets)
            lines = [f"{page + at:x} 10 ".encode() + (name if isinstance(name, bytes) else name.encode()) + b"\n"
                     for at, name in zip(offsets, [*EVIL, EVIL_BYTES])]
            self.write_map(target.pid, b"".join(lines))
            folder = tempfile.mkdtemp(prefix="rowprof-test-")
            self.addClassCleanup(shutil.rmtree, folder)
            kept = os.path.join(folder, "evil.rowprof")
            self.rowprof_ok("record", "--pid", target.pid, "--seconds", 3, "-o", kept)
            type(self).kept = kept
        run = self.rowprof_ok("report", self.kept, *args)
        return run, run.stdout_bytes.decode("utf-8")

    def check_clean(self, text, allowed="\n"):
        text.encode("utf-8")
        bad = {char for char in text if unicodedata.category(char) == "Cc" and char not in allowed}
        self.assertFalse(bad, "control characters in the output")

    @READY_FOR
    def test_json_holds_every_name(self):
        run, text = self.show("--format", "json")
        self.check_clean(text)
        profile = harness.Profile(run)
        self.assertGreaterEqual(profile.self_share(EVIL[0]), 0.05)
        self.assertGreaterEqual(profile.self_share("x;y z"), 0.05)
        self.assertGreaterEqual(profile.self_share(EVIL[4]), 0.05)
        for begin in ("tab", "escape", "bad", "LLLLLLLL"):
            self.assertTrue(profile.rows(re.compile("^" + begin)), begin)
        self.assertEqual(sum(row["self"] for row in profile.functions), profile.samples)

    @READY_FOR
    def test_csv_is_read_back_whole(self):
        _, text = self.show("--by", "function", "--format", "csv")
        self.check_clean(text, "\r\n")
        table = list(csv.reader(io.StringIO(text), strict=True))
        self.assertEqual(len({len(row) for row in table}), 1, "rows of different width")
        cells = {cell for row in table for cell in row}
        for name in (EVIL[0], "x;y z", EVIL[4]):
            self.assertIn(name, cells)

    @READY_FOR
    def test_text_is_clean(self):
        for args in (("--tree",), ("--callers", "--tree"), ("--by", "function", "--no-tree")):
            _, text = self.show("--no-kernel", *args)
            self.check_clean(text)
            self.assertLess(max(map(len, text.splitlines())), 6000)
            for begin in (EVIL[0], "x;y z", "tab", "escape", EVIL[4], "bad", "LLLLLLLL"):
                self.assertIn(begin, text, args)


class CaseA20Dialects(JitCase):
    @READY_FOR
    def test_every_dialect_and_every_kind_of_name_in_one_map(self):
        """Each line is of a function of its own, and names it; unit.symbolize_jit reads each dialect for itself."""
        kinds = (lambda at, name: f"{at:x} 10 {name}\n",
                 lambda at, name: f"0x{at:x} 0x10 {name}\n",
                 lambda at, name: f"0X{at:X} 1F {name}\n",
                 lambda at, name: f"{at:020x} 00010 {name}\n",
                 lambda at, name: f"{at:x}  10  {name}\n",
                 lambda at, name: f"{at:x}\t10\t{name}\n",
                 lambda at, name: f"{at:x} 10 {name}\r\n",
                 lambda at, name: f"hello\n\n{at:x} 0 size zero\nffffffffffffff00 1000 wraps\n{at:x} zz not hex\n{at:x} 10 {name}\n{at:x} 10\n",
                 lambda at, name: f"{at + 0x20:x} 10 {'m' * 1000000}\n{at:x} 10 {name}\n",
                 lambda at, name: f"{at:x} 10 {name}")  # the last line is cut
        names = [f"wanted name {i}" for i in range(len(kinds))]
        names[:4] = ("instance void [Asm] Ns.Type::Method(class Other`1<int32>,bool)[Tier0]", "RegExp:^(a|b)*? [\\s\\S]{2,}$",
                     "ResponseCache:CurrentPrepared ()", "JS:*run file:///x/y.mjs:9:37")
        offsets = [0x100 * (i + 1) for i in range(len(kinds))]
        target, page = self.start_page(*offsets)
        self.write_map(target.pid, "".join(kind(page + at, name) for kind, at, name in zip(kinds, offsets, names)))
        profile = self.profile(target.pid, seconds=2, least=1000)
        for name in names:  # all run for as long as each other
            self.assertAlmostEqual(profile.self_share(name), 1 / len(names), delta=0.06, msg=name)

    @READY_FOR
    def test_two_million_lines(self):
        target, page = self.start_page(0x100)
        lines = [f"{0x10000 + i * 16:x} 10 filler_{i}" for i in range(2000000)]
        self.write_map(target.pid, "\n".join([*lines, f"{page + 0x100:x} 10 wanted name", ""]))
        profile = self.profile(target.pid, seconds=1)
        self.assertGreaterEqual(profile.self_share("wanted name"), 0.9)
        self.assertLess(profile.run.max_rss_mb, 600)

    @READY_FOR
    def test_code_of_a_file_that_is_not_elf(self):
        path = os.path.join(self.scratch, "fake.dll")
        target = self.start(self.build("a20"), path)
        profile = self.profile(target.pid)
        rows = profile.rows(re.compile(r"fake\.dll"))
        self.assertGreaterEqual(sum(row["self"] for row in rows) / profile.samples, 0.95, profile.names())
        self.assertTrue(all(row["module"].endswith("fake.dll") for row in rows))
        self.assertGreaterEqual(profile.total("main"), 0.95)


if __name__ == "__main__":
    harness.main()
