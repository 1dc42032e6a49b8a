#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The workloads in real runtimes: what brings them, their protocol, equal work across bindings, and profiles that show what they should.

What is not here is skipped with its reason; scripts/runtimes --all brings it. Node 24 and Python are always expected to be tried.
"""
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess

import harness

SOURCE = pathlib.Path(harness.SOURCE)
RUNTIMES = SOURCE / "scripts" / "runtimes"
NODE = SOURCE / "workloads" / "node"
PARALLEL_MJS, LOOP_MJS = NODE / "parallel.mjs", NODE / "loop.mjs"
PARALLEL_PY = SOURCE / "workloads" / "python" / "parallel.py"
VERCHK = SOURCE / "workloads" / "mono" / "verchk"
RATE_KEYS = {"calls", "rows", "secs", "rate", "cpu_secs", "cpu_rate", "ns_per_call", "nvcsw", "nivcsw", "span"}


@functools.lru_cache(maxsize=None)
def there(name):
    return subprocess.run([RUNTIMES, "--print", name], capture_output=True, text=True).returncode == 0


def has(name):
    """A probe for harness.needs: the runtime of that name."""
    return lambda: None if there(name) else f"{name} is not here (scripts/runtimes {name} brings it)"


def run(*command):
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300)


def node(*command):
    return run(harness.node24_path(), *command)


def together(runs, *commands):
    """What each command did, in their order. They run two at a time: for what is the same however long it takes."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda command: runs(*command), commands))


def lines(done, kind):
    return [line for line in done.stdout.splitlines() if line.startswith(kind + " ")]


def words(line):
    return dict(word.split("=", 1) for word in line.split()[1:] if "=" in word)


def bindings():
    return ["node:sqlite"] + [name for name in ("better-sqlite3", "sqlite3", "sqlite3-eager") if there(name)]


class Bringing(harness.Case):
    def test_names(self):
        done = run(RUNTIMES, "--list")
        self.assertEqual(done.returncode, 0)
        rows = [line.split() for line in done.stdout.splitlines()]
        self.assertEqual([row[0] for row in rows], ["node24", "node26.7", "node26.8", "better-sqlite3", "sqlite3", "sqlite3-eager", "mono"])
        self.assertLessEqual({row[1] for row in rows}, {"here", "missing"})

    def test_bad_words(self):
        for args in (["--print", "x"], ["--print"], ["x"], ["--x"]):
            done = run(RUNTIMES, *args)
            self.assertEqual((done.returncode, done.stdout), (2, ""), args)
            self.assertRegex(done.stderr, r"\Aruntimes: [^\n]+\n\Z")

    @harness.needs(harness.node24)
    def test_a_second_run_does_nothing(self):
        done = run(RUNTIMES, "--strict")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    @harness.needs(harness.node24)
    def test_release_is_the_pinned_one(self):
        pinned = json.loads((NODE / "package.json").read_text())["dependencies"]["node24"].rpartition("@")[2]
        self.assertEqual(run(harness.node24_path(), "--version").stdout.strip(), "v" + pinned)

    def test_what_cannot_be_had_is_named_and_leaves_nothing(self):
        tree, tools = pathlib.Path(self.scratch) / "tree", pathlib.Path(self.scratch) / "bin"
        shutil.copytree(SOURCE / "workloads" / "node", tree / "workloads" / "node", ignore=shutil.ignore_patterns("node_modules"))
        (tree / "scripts").mkdir()
        tools.mkdir()
        shutil.copy(RUNTIMES, tree / "scripts" / "runtimes")
        npm = tools / "npm"
        npm.write_text("#!/bin/sh\necho 'npm error code ENOTFOUND'\nexit 1\n")
        npm.chmod(0o755)
        env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
        for strict, status in (([], 0), (["--strict"], 1)):
            done = subprocess.run([tree / "scripts" / "runtimes", *strict, "node24", "sqlite3"], capture_output=True, text=True, env=env)
            self.assertEqual(done.returncode, status)
            self.assertRegex(done.stderr, r"\Aruntimes: no node24: npm ci failed: npm error code ENOTFOUND *\n"
                                          r"runtimes: no sqlite3: it is compiled with Node 24, which is not here\.\n\Z")
            self.assertEqual(os.listdir(tree / ".runtimes"), [])

    def test_locks_pin_checksums_and_name_no_place(self):
        locks = [NODE / "package-lock.json", *sorted(NODE.glob("packages/*/package-lock.json"))]
        self.assertEqual(len(locks), 5)
        for path in locks:
            lock = json.loads(path.read_text())
            for name, package in lock["packages"].items():
                if name:
                    self.assertRegex(package["integrity"], r"^sha512-", f"{path}: {name}")
                    self.assertNotIn("resolved", package, f"{path}: {name}")

    @harness.needs(harness.node24)
    def test_a_missing_binding_is_a_sentence_and_status_2(self):
        done = subprocess.run([harness.node24_path(), harness.READ_MJS, "--library", "better-sqlite3"], capture_output=True, text=True,
                              env={**os.environ, "ROWPROF_RUNTIMES": self.scratch})
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "read.mjs: better-sqlite3 is not here; run scripts/runtimes better-sqlite3.\n")


class Protocol(harness.Case):
    def check(self, *command, extra=()):
        """READY before anything else, then a hold that TERM ends with status 0, a RATE and a SUM."""
        target = self.start(*command)
        for key in ("pid", "tid", "workload", "op", "limit", "seed"):
            self.assertIn(key, target.ready)
        self.assertEqual(target.ready["pid"], target.ready["tid"])
        target.stop(signal.SIGTERM)
        self.assertEqual(target.process.returncode, 0, target.err[-5:])
        self.assertLessEqual(RATE_KEYS, set(target.words("RATE")))
        self.assertEqual(target.words("RATE")["span"], "run")
        self.assertRegex(target.out[-1], r"^SUM [0-9a-f]{8}$")
        for kind in extra:
            target.words(kind)
        return target

    @harness.needs(harness.node24)
    def test_read(self):
        for library in bindings():
            with self.subTest(library=library):
                self.check(harness.node24_path(), harness.READ_MJS, "--library", library)

    @harness.needs(harness.node24)
    def test_parallel(self):
        for shape in (["--processes", "2", "--threads", "1"], ["--processes", "2", "--threads", "0"], ["--processes", "0", "--threads", "2"],
                      ["--processes", "0", "--threads", "0"]):
            with self.subTest(shape=shape):
                target = self.check(harness.node24_path(), PARALLEL_MJS, "--library", "node:sqlite", "--steady", "0", *shape)
                self.assertGreater(target.words("RATE")["calls"], 0)

    @harness.needs(harness.node24, has("sqlite3"))
    def test_loop(self):
        self.check(harness.node24_path(), LOOP_MJS, "--statements", "2", "--probe-ms", "5", extra=["LOOP"])

    def test_python(self):
        self.check("/usr/bin/python3", PARALLEL_PY, "--threads", "2", "--steady", "0")

    @harness.needs(has("mono"))
    def test_mono(self):
        for mode in ("reprepare", "prepared", "header"):
            self.check(VERCHK, "--mode", mode, "--threads", "2", extra=["CHECKS"])

    def test_bad_options(self):
        commands = [["/usr/bin/python3", PARALLEL_PY, "--processes", "0"], ["/usr/bin/python3", PARALLEL_PY, "--x"]]
        if harness.node24_path():
            at = harness.node24_path()
            commands += [[at, PARALLEL_MJS, "--cli", "cli-9"], [at, PARALLEL_MJS, "--threads", "-1"], [at, harness.READ_MJS, "--limit", "1.5"],
                         [at, harness.READ_MJS, "--library", "x"], [at, LOOP_MJS, "--depth", "0"], [at, LOOP_MJS, "x"]]
        if there("mono"):
            commands += [[VERCHK, "--mode", "pool"], [VERCHK, "--threads", "0"], [VERCHK, "--threads"], [VERCHK, "x"]]
        for command in commands:
            with self.subTest(command=command[1:]):
                done = run(*command)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertRegex(done.stderr, r"\A[a-z]+(\.mjs|\.py)?: [^\n]*\n\Z")


class EqualWork(harness.Case):
    @harness.needs(harness.node24)
    def test_bindings_read_the_same_rows(self):
        for op in ("get", "all", "iterate"):
            done = together(node, *((harness.READ_MJS, "--library", library, "--op", op, "--limit", 7, "--calls", 1500, "--seed", 3)
                                    for library in bindings()))
            self.assertEqual([one.returncode for one in done], [0] * len(done), [one.stderr[-1000:] for one in done])
            self.assertEqual(len({one.stdout.splitlines()[-1] for one in done}), 1, [one.stdout for one in done])
            self.assertEqual({words(lines(one, "RATE")[-1])["rows"] for one in done}, {"1500" if op == "get" else "10500"})
        other = node(harness.READ_MJS, "--op", "iterate", "--limit", 7, "--calls", 1500, "--seed", 4)
        self.assertNotEqual(other.stdout.splitlines()[-1], done[0].stdout.splitlines()[-1])

    @harness.needs(harness.node24)
    def test_parallel_programs_do_the_same_queries(self):
        def sums(*shape, libraries):
            return {done.stdout.splitlines()[-1] for done in together(node, *(
                (PARALLEL_MJS, *shape, "--library", library, *more) for library in libraries
                for more in (["--tuned", "on", "--draw", "before"], ["--tuned", "off", "--draw", "loop"])))}
        libraries = [name for name in bindings() if name != "sqlite3-eager"]
        four = sums("--processes", 2, "--threads", 2, "--queries", 100, libraries=libraries)
        one = sums("--processes", 0, "--threads", 4, "--queries", 100, libraries=libraries[:1])
        held = node(PARALLEL_MJS, "--processes", 2, "--threads", 2, "--calls", 400, "--library", "node:sqlite").stdout.splitlines()[-1]
        self.assertEqual(four, one)
        self.assertEqual(four, {held})
        self.assertNotEqual(four, sums("--processes", 2, "--threads", 2, "--queries", 101, libraries=["node:sqlite"]))

    def test_python_index_changes_no_result(self):
        sums = {done.stdout.splitlines()[-1] for done in together(run, *(
            ("/usr/bin/python3", PARALLEL_PY, "--threads", 2, "--queries", 100, *more) for more in ([], ["--index"], ["--pin-cpus"])))}
        self.assertEqual(len(sums), 1, sums)


class Report(harness.Case):
    """The published report: the same bytes but for names, numbers and this project's own lines."""
    CALLS = 240

    def shape(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        kept = [line for line in done.stdout.splitlines() if not line.startswith(("RATE ", "SUM ", "WORKER ", "Creating DB at "))]
        self.assertRegex(done.stdout, r"\ACreating DB at \S+ with 2000 rows \(x in \[0,1000\)\)\n")
        return re.sub(r"[0-9]+\.[0-9]{4}\b", "F4", re.sub(r"[0-9]+\.[0-9]{2}\b", "F2", "\n".join(kept)))

    @harness.needs(harness.node24)
    def test_all_programs_print_the_same_report(self):
        shape = ["--processes", 2, "--threads", 2, "--pin-cpus"]
        native, *others = map(self.shape, together(
            run, (harness.ROWLOAD, "scan", *shape, "--queries-per-thread", 60), ("/usr/bin/python3", PARALLEL_PY, *shape, "--queries", 60),
            *((harness.node24_path(), PARALLEL_MJS, *shape, "--library", library, "--queries", 60) for library in bindings())))
        for who, other in zip(("python", *bindings()), others):
            self.assertEqual(native, other, who)
        self.assertIn("Running benchmark with 2 processes × 2 threads\nTotal threads: 4\nQueries per thread: 60\nTotal queries: 240\n"
                      "Attempting to pin processes to CPUs: [0, 1]\n", native)
        self.assertTrue(native.endswith("Total queries:      240\nGlobal wall time:   F4 s (includes process startup/teardown)\n"
                                        "Global effective QPS: F2"), native)

    @harness.needs(harness.node24)
    def test_presets(self):
        presets = (("cli", 2, 16), ("cli-2", 2, 3), ("cli-5", 2, 1), ("cli-6", 1, 32))
        runs = together(node, *((PARALLEL_MJS, "--cli", cli, "--library", "node:sqlite", "--queries", 5) for cli, _, _ in presets))
        for done, (_, processes, threads) in zip(runs, presets):
            self.assertIn(f"Running benchmark with {processes} processes × {threads} threads\n", done.stdout, done.stderr)
            self.assertIn(f"Total queries: {processes * threads * 5}\n", done.stdout)


class Check(harness.Case):
    @harness.needs(has("mono"))
    def test_every_commit_is_seen(self):
        for mode in ("reprepare", "prepared", "header"):
            for threads in (1, 4):
                done = run(VERCHK, "--mode", mode, "--threads", threads, "--commit-hz", 100, "--seconds", 1)
                checks = words(lines(done, "CHECKS")[-1])
                self.assertEqual(checks["changes"], checks["commits"], done.stdout)
                self.assertGreater(int(checks["commits"]), 0)

    @harness.needs(has("mono"))
    def test_no_commit_is_no_change(self):
        done = run(VERCHK, "--mode", "header", "--commit-hz", 0, "--seconds", 0.5)
        self.assertEqual(words(lines(done, "CHECKS")[-1])["changes"], "0")


class Profiles(harness.Case):
    """What the profile of each shows first, as workloads/README.md says."""

    def check_first(self, target, *ids):
        """These categories together are the most of the profile."""
        pids = target.ready.get("pids", str(target.pid)).split(",")
        profile = self.profile(pids[0], *(word for pid in pids[1:] for word in ("--pid", pid)), seconds=2)
        target.stop()
        shares = {row["id"]: row["share"] for row in profile.data["categories"]}
        self.assertGreater(sum(shares.get(i, 0.0) for i in ids), 0.5, shares)
        return profile, shares

    @harness.needs(harness.rowprof_there, harness.perf_events)
    def test_python_scans(self):
        target = self.start("/usr/bin/python3", PARALLEL_PY, "--threads", "2", "--steady", "0")
        _, scan = self.check_first(target, "sqlite.vdbe")
        target = self.start("/usr/bin/python3", PARALLEL_PY, "--threads", "2", "--steady", "0", "--index")
        pids = target.ready["pids"].split(",")
        index = self.profile(pids[0], "--pid", pids[1]).data["categories"]
        self.assertLess(sum(row["share"] for row in index if row["id"] == "sqlite.vdbe"), scan["sqlite.vdbe"] * 0.8)

    @harness.needs(harness.rowprof_there, harness.perf_events, harness.node24)
    def test_node_scans(self):
        self.check_first(self.start(harness.node24_path(), PARALLEL_MJS, "--library", "node:sqlite", "--steady", "0", "--threads", "1", cwd=self.scratch),
                         "sqlite.vdbe", "pthread.mutex", "sqlite.capi")

    @harness.needs(harness.rowprof_there, harness.perf_events, harness.node24, has("better-sqlite3"))
    def test_better_sqlite3_takes_no_mutex(self):
        target = self.start_node(harness.READ_MJS, "--library", "better-sqlite3", "--op", "all", "--limit", "100")
        profile = self.profile(target.pid)
        self.assertLess(sum(row["share"] for row in profile.data["categories"] if row["id"] == "pthread.mutex"), 0.03)

    @harness.needs(harness.rowprof_there, harness.perf_events, harness.node24, has("sqlite3"))
    def test_sqlite3_waits_for_the_mutex_of_its_connection(self):
        """The binding asks for the mutex before it calls SQLite: the connection is reached through its statement."""
        target = self.start_node(LOOP_MJS, "--library", "sqlite3", "--statements", "4")
        for _ in range(10):  # on a busy machine the workers may not meet in one second
            locks = [row for row in self.profile(target.pid, seconds=1).data["locks"] if "Statement::Work_All" in row["name"]]
            if locks:
                break
        self.assertTrue([row for row in locks if row["database"].startswith("connection at 0x")], locks)

    @harness.needs(harness.rowprof_there, harness.perf_events, has("mono"))
    def test_mono_checks_in_sqlite_unless_it_reads_the_header(self):
        profile, shares = self.check_first(self.start(VERCHK, "--mode", "reprepare"), "sqlite.prepare", "sqlite.vdbe", "sqlite.capi",
                                           "pthread.mutex", "libc.malloc")
        self.assertGreater(profile.total("ResponseCache:CurrentReprepared ()"), 0.8)
        self.assertGreater(profile.complete_share(), 0.95)
        self.assertGreater(shares["sqlite.prepare"] + shares["sqlite.vdbe"], 0.2)
        target = self.start(VERCHK, "--mode", "header", "--commit-hz", "0")
        header = self.profile(target.pid)
        self.assertGreater(header.total("ResponseCache:CurrentHeader ()"), 0.3)
        self.assertEqual(sum(row["share"] for row in header.data["categories"] if row["id"].startswith("sqlite.")), 0.0)


if __name__ == "__main__":
    harness.main()
