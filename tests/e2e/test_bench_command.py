#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""`rowprof bench` with small programs whose rates are known, because they print what they are told to.

The trap is timing: none of the programs measures anything; a test that did would fail on a busy machine.
"""
import csv
import json
import os
import pathlib
import signal
import stat
import subprocess
import time

import harness

# Prints a RATE line: BASE calls in 1 s, spread over rounds by a counter in a file, so that runs scatter by about a percent.
PROGRAM = """#!/bin/sh
# {mark}
count=$(cat "$COUNT" 2>/dev/null || echo 0)
echo $((count + 1)) > "$COUNT"
base={base}
case "$*" in *slow*) base={slow} ;; esac
echo "RATE calls=$((base + count * 7919 % 23)) rows=$((base * 2)) secs=1.0 cpu_secs={cpu} nvcsw=1 nivcsw=2 span=run"
"""


def state_of(pid):
    """The state letter of a process, None when it is gone."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return None


class Bench(harness.Case):
    def setUp(self):
        super().setUp()
        self.count = os.path.join(self.scratch, "count")
        os.environ["COUNT"] = self.count
        self.addCleanup(os.environ.pop, "COUNT", None)

    def script(self, name, text):
        path = os.path.join(self.scratch, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
        return path

    def program(self, name, base, slow=None, cpu="0.99"):
        return self.script(name, PROGRAM.format(mark=name, base=base, slow=slow or base, cpu=cpu))

    def bench(self, *args, status=0):
        run = harness.rowprof("bench", *args)
        self.assertEqual(run.status, status, run.stderr + run.stdout)
        return run

    def json(self, *args):
        return json.loads(self.bench("--format", "json", "--quiet", *args).stdout)


class Verdicts(Bench):
    def test_what_is_faster_is_convicted_and_what_is_not_is_not(self):
        old, new = self.program("old", 1000, slow=1000), self.program("new", 1000, slow=1200)
        got = self.json("--old", old, "--new", new, "--config", "equal: x", "--config", "grown: slow", "-n", "6")
        rows = {row["name"]: row for row in got["configs"]}
        self.assertEqual(rows["grown"]["verdict"], "faster")
        self.assertAlmostEqual(rows["grown"]["improvement"], 0.2, delta=0.02)
        self.assertEqual(rows["equal"]["verdict"], "noise")
        self.assertGreater(rows["grown"]["improvement"], rows["grown"]["floor"])
        self.assertEqual((got["faster"], got["slower"], got["runs"]), (1, 0, 36))
        self.assertEqual([row["name"] for row in got["configs"]], ["grown", "equal"])
        self.assertEqual(got["rate"], "process")

    def test_slower_is_convicted_too(self):
        got = self.json("--old", self.program("old", 1200), "--new", self.program("new", 1000), "-n", "5")
        self.assertEqual(got["configs"][0]["verdict"], "slower")
        self.assertLess(got["geomean"]["high"], 0)

    def test_noise_convicts_nothing(self):
        got = self.json("--noise", self.program("old", 1000), "-n", "8")
        self.assertEqual((got["faster"], got["slower"], got["runs"]), (0, 0, 24))
        self.assertEqual(got["old"], got["new"])

    def test_text(self):
        run = self.bench("--old", self.program("old", 1000), "--new", self.program("new", 1200), "-n", "5")
        self.assertRegex(run.stdout, r"(?m)^\+\d+\.\d\d % \*\*\*.* 1\.0[12]k +1\.2[12]k  convicted faster  all$")
        self.assertIn("configs: 1  significant: 1\n", run.stdout)
        self.assertIn("geomean: +", run.stdout)
        self.assertIn("smallest detectable change:", run.stdout)
        self.assertNotIn("no change", run.stdout)
        self.assertEqual(run.stderr.count("sha256 "), 2)

    def test_hashes_are_those_of_sha256sum(self):
        old, new = self.program("old", 1000), self.program("new", 1001)
        got = self.json("--old", old, "--new", new, "-n", "1")
        for path, key in ((old, "old"), (new, "new")):
            said = subprocess.run(["sha256sum", path], capture_output=True, text=True, check=True).stdout.split()[0]
            self.assertEqual(got[key]["sha256"], said)


class Files(Bench):
    def test_csv_is_read_back_to_the_same_verdicts(self):
        kept = os.path.join(self.scratch, "runs.csv")
        measured = self.json("--old", self.program("old", 1000), "--new", self.program("new", 1100), "-n", "4", "--csv", kept)
        again = json.loads(self.bench("--read", kept, "--format", "json").stdout)
        self.assertEqual(measured["configs"], again["configs"])
        with open(kept, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 12)
        self.assertEqual({row["binary"] for row in rows}, {"old", "old2", "new"})
        self.assertEqual({row["nivcsw"] for row in rows}, {"2"})
        self.bench("--old", self.program("old", 1000), "--new", self.program("new", 1100), "--csv", kept, status=1)

    def test_suite(self):
        suite = self.script("s.suite", "args {here}\nconfig a b: slow\nconfig c: 'x y'\n")
        old = self.script("show", '#!/bin/sh\necho "RATE calls=10 secs=1 cpu_secs=1"; echo "$1|$2|$#" >> "$COUNT"\n')
        new = self.script("show2", '#!/bin/sh\necho "RATE calls=11 secs=1 cpu_secs=1"\n')
        self.bench("--old", old, "--new", new, "--suite", suite, "-n", "1")
        with open(self.count, encoding="utf-8") as file:
            self.assertEqual(sorted(set(file.read().split("\n")) - {""}), [f"{self.scratch}|slow|2", f"{self.scratch}|x y|2"])
        one = self.bench("--old", old, "--new", new, "--suite", suite, "-n", "1", "--filter", "c")
        self.assertIn("configs: 1 ", one.stdout)

    def test_snapshot_keeps_the_copies(self):
        old, new = self.program("old", 1000), self.program("new-and-longer", 1000)
        place = os.path.join(self.scratch, "copies")
        run = self.bench("--old", old, "--new", new, "-n", "1", "--snapshot", place)
        copies = sorted(os.path.join(folder, name) for folder, _, names in os.walk(place) for name in names)
        self.assertEqual(len(copies), 3)
        self.assertEqual(len({len(path) for path in copies}), 1)
        for path in copies:
            self.assertIn(path, run.stderr)

    def test_nothing_temporary_is_left(self):
        os.environ["TMPDIR"] = self.scratch
        self.addCleanup(os.environ.pop, "TMPDIR", None)
        self.bench("--old", self.program("old", 1000), "--new", self.program("new", 1001), "-n", "1")
        self.assertEqual([name for name in os.listdir(self.scratch) if name.startswith("rowprof-bench")], [])

    def test_published_data(self):
        data = os.path.join(harness.SOURCE, "tests", "fixtures", "bench", "ab_node267_268_quiet.csv")
        out = self.bench("--read", data).stdout
        self.assertRegex(out, r"(?m)^\+10\.47 % \*\*\* .*convicted faster  get SELECT \* FROM foo LIMIT 1$")
        self.assertRegex(out, r"(?m)^ -5\.34 % \*\* .* 0\.0116 .* 5\.84 % .*inside noise      all SELECT text_8kb_column FROM foo_large LIMIT 100$")
        self.assertIn("configs: 20  significant: 13\n", out)
        markdown = self.bench("--read", data, "--format", "markdown").stdout
        self.assertEqual(markdown.count("\n|"), 21)
        table = list(csv.DictReader(self.bench("--read", data, "--format", "csv").stdout.splitlines()))
        self.assertEqual(len(table), 20)
        self.assertEqual(table[-1]["verdict"], "noise")


class Circumstances(Bench):
    def test_contended_runs_are_repeated_and_the_best_kept(self):
        # of four attempts in a row the third is the least disturbed
        text = ('#!/bin/sh\n# {0}\nn=$(cat "$COUNT" 2>/dev/null || echo 0); echo $((n + 1)) > "$COUNT"\n'
                'case $((n % 4)) in 2) cpu=0.8 ;; *) cpu=0.5 ;; esac\necho "RATE calls=$((100 + n)) secs=1 cpu_secs=$cpu"\n')
        kept = os.path.join(self.scratch, "runs.csv")
        run = self.bench("--old", self.script("old", text.format("old")), "--new", self.script("new", text.format("new")), "-n", "2", "--csv", kept)
        self.assertIn("6 runs, 6 contended (CPU time below 90 % of wall time), 6 repeated", run.stdout)
        with open(kept, encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual({row["attempts"] for row in rows}, {"4"})
        self.assertEqual({float(row["process_secs"]) for row in rows}, {0.8})
        self.assertEqual([int(row["calls"]) % 4 for row in rows], [2] * 6)

    def test_kept_to_one_cpu(self):
        # what a process's own threads take from the one that works is no disturbance where they have one CPU among them
        text = '#!/bin/sh\n# {0}\ngrep Cpus_allowed_list /proc/self/status >> "$COUNT"\necho "RATE calls={1} secs=1 cpu_secs=0.99 thread_cpu_secs=0.75"\n'
        old, new = self.script("old", text.format("old", 100)), self.script("new", text.format("new", 110))
        cpu = max(os.sched_getaffinity(0))
        got = self.json("--old", old, "--new", new, "-n", "2", "--cpus", str(cpu))
        self.assertEqual((got["cpus"], got["contended"], got["runs"]), (str(cpu), 0, 6))
        with open(self.count, encoding="utf-8") as file:
            self.assertEqual(set(file.read().split("\n")), {f"Cpus_allowed_list:\t{cpu}", ""})
        shown = self.bench("--old", old, "--new", new, "-n", "1", "--cpus", str(cpu)).stdout
        self.assertIn(f"3 runs on CPU {cpu}, 0 contended", shown)
        if len(os.sched_getaffinity(0)) > 1:
            self.assertEqual(self.json("--old", old, "--new", new, "-n", "2", "--repeats", "0")["contended"], 6)
        for wrong in ("one", "1-", "", "9000", "1000"):
            run = self.bench("--old", old, "--new", new, "--cpus", wrong, status=2)
            self.assertIn("--cpus", run.stderr)

    def test_without_a_rate_line_the_whole_process_counts(self):
        quiet = "#!/bin/sh\n# {0}\ni=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done\n"
        old, new = self.script("old", quiet.format("old")), self.script("new", quiet.format("new"))
        refused = self.bench("--old", old, "--new", new, "-n", "1", status=1)
        self.assertIn("it printed no line RATE", refused.stderr)
        got = self.json("--old", old, "--new", new, "-n", "2", "--calls", "100", "--repeats", "0")
        self.assertEqual(got["runs"], 6)
        self.assertGreater(got["configs"][0]["old"]["rate"], 0)

    def test_failures_name_configuration_and_arm(self):
        good = self.program("good", 1000)
        bad = self.script("bad", "#!/bin/sh\necho 'first words' >&2\necho 'the disk is full' >&2\nexit 3\n")
        run = self.bench("--old", good, "--new", bad, "--config", "one: x", status=1)
        self.assertIn("configuration 'one', round 1, new: it ended with status 3: the disk is full", run.stderr)
        killed = self.script("killed", "#!/bin/sh\nkill -9 $$\n")
        self.assertIn("ended by signal 9", self.bench("--old", good, "--new", killed, status=1).stderr)
        broken = self.script("broken", "#!/no/such/interpreter\n")
        self.assertIn("cannot run", self.bench("--old", good, "--new", broken, status=1).stderr)

    def test_a_command_that_is_not_there(self):
        self.assertIn("there is no program no-such-command in $PATH", self.bench("--old", "no-such-command", "--new", "sh", status=1).stderr)

    def test_what_hangs_is_ended_with_all_that_it_started(self):
        hangs = self.script("hangs", '#!/bin/sh\nsleep 1000 &\necho $! > "$COUNT"\nwait\n')
        run = self.bench("--old", self.program("good", 10), "--new", hangs, "--timeout", "0.5", status=1)
        self.assertIn("longer than 0.5 s", run.stderr)
        with open(self.count, encoding="utf-8") as file:
            pid = int(file.read())
        for _ in range(100):
            if state_of(pid) in (None, "Z"):
                return
            time.sleep(0.1)
        self.fail("the sleep goes on")

    def test_a_grandchild_that_keeps_the_pipe_is_not_waited_for(self):
        daemon = self.script("daemon", "#!/bin/sh\nsleep 1000 &\necho 'RATE calls=1000 secs=1 cpu_secs=1'\n")
        self.bench("--old", daemon, "--new", self.program("good", 1000), "-n", "1", "--timeout", "60")

    def test_the_program_itself_is_refused(self):
        old = self.program("old", 1000)
        link, copy = os.path.join(self.scratch, "link"), os.path.join(self.scratch, "copy")
        os.symlink(old, link)
        subprocess.run(["cp", old, copy], check=True)
        for other, why in ((old, "they are the same file"), (link, "they are the same file"), (copy, "they have the same content")):
            run = self.bench("--old", old, "--new", other, status=2)
            self.assertIn(why, run.stderr)
        # other arguments make another command; a script that is the same file does not
        self.bench("--old", f"{old} a", "--new", f"{old} b", "-n", "1")
        self.assertIn("same file", self.bench("--old", f"sh {old}", "--new", f"sh {link}", status=2).stderr)

    def test_same_build_id_is_refused(self):
        other = os.path.join(self.scratch, "rowload")
        done = subprocess.run(["objcopy", "--remove-section=.comment", harness.ROWLOAD, other], capture_output=True)
        if done.returncode:
            self.skipTest("objcopy is not here")
        self.assertIn("the same build-id", self.bench("--old", harness.ROWLOAD, "--new", other, status=2).stderr)

    def test_in_place(self):
        where = '#!/bin/sh\n# {0}\necho "$0" >> "$COUNT"\necho "RATE calls=1000 secs=1 cpu_secs=1"\n'
        old, new = self.script("old", where.format(1)), self.script("new", where.format(2))
        self.bench("--old", old, "--new", new, "-n", "1", "--in-place")
        with open(self.count, encoding="utf-8") as file:
            self.assertEqual(sorted(file.read().split()), sorted([old, old, new]))
        # and a program that is built anew meanwhile is told
        spoils = self.script("spoils", f'#!/bin/sh\necho >> "{old}"\necho "RATE calls=1000 secs=1 cpu_secs=1"\n')
        self.assertIn("was replaced while it was measured", self.bench("--old", old, "--new", spoils, "-n", "1", "--in-place", status=1).stderr)

    def test_interrupt_keeps_what_was_measured(self):
        kept = os.path.join(self.scratch, "runs.csv")
        slow = '#!/bin/sh\n# {0}\nsleep 0.05\necho "RATE calls=1000 secs=1 cpu_secs=1"\n'
        process = harness.rowprof_start("bench", "--old", self.script("old", slow.format(1)), "--new", self.script("new", slow.format(2)),
                                        "-n", "10000", "--csv", kept, "--format", "json")
        for _ in range(600):
            if os.path.exists(kept) and pathlib.Path(kept).read_text(encoding="utf-8").count("\n") > 7:
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        run = harness.rowprof_wait(process)
        self.assertEqual(run.status, 0, run.stderr)
        got = json.loads(run.stdout)
        self.assertEqual(got["cut_short"], "interrupted")
        with open(kept, encoding="utf-8") as file:
            self.assertEqual(len(file.readlines()), got["runs"] + 1)
        self.assertGreaterEqual(got["runs"], 7)

    def test_wrong_use(self):
        for args, says in (((), "takes two commands"), (("--old", "a"), "one of them is missing"),
                           (("--read", "f", "--old", "a"), "--read judges runs"), (("--noise", "a", "--new", "b"), "--noise compares"),
                           (("--old", "a | b", "--new", "c"), "holds a '|'"), (("--old", "", "--new", "c"), "not an empty word"),
                           (("--old", " ", "--new", "sh"), "names no command"), (("--old", "a", "--new", "b", "x"), "a command is one word"),
                           (("--runs", "0"), "--runs takes"), (("--rate", "x"), "--rate takes"), (("--format", "xml"), "--format takes")):
            self.assertIn(says, self.bench(*args, status=2).stderr)
        self.assertIn("cannot open", self.bench("--read", os.path.join(self.scratch, "none.csv"), status=1).stderr)


if __name__ == "__main__":
    harness.main()
