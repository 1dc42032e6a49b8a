#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Waiting, held against what the kernel and the target's own clock know of it: counts, times, stacks, locks and holders, with and without
a visible kernel. The figures are read from the profile file, so that nothing of the report stands in between.
"""
import collections
import json
import os
import sqlite3
import subprocess
import time

import harness

READY_FOR = harness.needs(harness.rowprof_there, harness.perf_events)
SEES_KERNEL = harness.needs(harness.rowprof_there, harness.perf_events, harness.root)
SYS_FUTEX, SYS_EPOLL_WAIT, SYS_NANOSLEEP = 202, 232, 230
NOBODY = 65534

Thread = collections.namedtuple("Thread", "id tid wall cpu preempted preemptions waiting waits run_delay")


class Recorded:
    """A profile file, with the times in seconds."""

    def __init__(self, path):
        self.db = sqlite3.connect(path)
        self.strings = dict(self.rows("SELECT id, text FROM strings"))
        self.threads = {row[1]: Thread(row[0], row[1], row[2] / 1e9, row[3] / 1e9, row[4] / 1e9, row[5], row[6] / 1e9, row[7], row[8] / 1e9)
                        for row in self.rows("SELECT id, tid, wall_ns, cpu_ns, preempted_ns, preemptions, waiting_ns, waits, run_delay_ns FROM threads")}
        self.run = dict(zip(("waits", "switches", "stacks", "lost", "kernel_visible", "seconds_ns"),
                            self.rows("SELECT waits, switches, wait_stacks, lost, kernel_visible, seconds_ns FROM run")[0]))
        self._parents = {row[0]: row[1:] for row in self.rows("SELECT id, parent, location FROM nodes")}
        self._names = collections.defaultdict(list)
        for location, name in self.rows("SELECT location, name FROM frames ORDER BY location, line_id"):
            self._names[location].append(name)

    def rows(self, query, *values):
        return self.db.execute(query, values).fetchall()

    def stack(self, node):
        names = []
        while node:
            parent, location = self._parents[node]
            names += self._names[location]
            node = parent
        return names

    def waiting(self, fits, thread=None):
        """Seconds and number of the waits whose (stack, syscall, tag) fits: stacked ones stand for all of their thread and duration class."""
        totals = {(t, c): (n, ns) for t, c, n, ns in self.rows("SELECT thread, wait_class, n, ns FROM wait_totals")}
        stacked, fitting = collections.Counter(), collections.Counter()
        counted, counted_fitting = collections.Counter(), collections.Counter()
        for t, c, node, syscall, tag, n, ns in self.rows("SELECT thread, wait_class, node, syscall, tag, n, ns FROM waits"):
            stacked[t, c] += ns
            counted[t, c] += n
            if fits(self.stack(node), syscall, tag):
                fitting[t, c] += ns
                counted_fitting[t, c] += n
        keys = [key for key in fitting if thread is None or key[0] == thread]
        return (sum(fitting[k] / stacked[k] * totals[k][1] for k in keys) / 1e9,
                sum(counted_fitting[k] / counted[k] * totals[k][0] for k in keys))


def under(name):
    return lambda stack, syscall, tag: name in stack


class WaitCase(harness.Case):
    def record(self, *args, **options):
        path = os.path.join(self.scratch, "profile")
        self.rowprof_ok("record", "-o", path, "--force", *args, **options)
        return Recorded(path)

    def launch(self, *command, args=()):
        """Records a command from its first to its last instruction; gives the profile and its THREAD lines."""
        path = os.path.join(self.scratch, "profile")
        run = self.rowprof_ok("record", "-o", path, "--force", "--seconds", 100, *args, "--", *command)
        # What a launched program prints comes out of our standard error.
        lines = [dict(word.split("=") for word in line.split()[1:]) for line in run.stderr.splitlines() if line.startswith("THREAD ")]
        return Recorded(path), [{key: float(value) for key, value in line.items()} for line in lines]

    def assert_sums_to_wall(self, recorded):
        for t in recorded.threads.values():
            self.assertAlmostEqual(t.cpu + t.preempted + t.waiting, t.wall, delta=0.01 * t.wall + 1e-6, msg=t)


class Truth(WaitCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.launched = None

    def launch_once(self):
        """One run of the target, of which every test looks at another side."""
        if not self.launched:
            type(self).launched = self.launch(self.build("waits_truth"))
            type(self).reported = self.reported_last()
        return self.launched

    def check_truth(self, recorded, truths):
        self.assertEqual(len(truths), 3)
        for truth in truths:
            thread = recorded.threads[int(truth["tid"])]
            self.assertAlmostEqual(thread.waits, truth["nvcsw"], delta=0.02 * truth["nvcsw"] + 2, msg=truth)
            # Between its birth and its first instruction a thread may have waited for a CPU.
            self.assertGreaterEqual(thread.wall, truth["wall"] - 0.01, msg=truth)
            self.assertLessEqual(thread.cpu + thread.waiting, truth["wall"] + 0.01, msg=truth)
            self.assertAlmostEqual(thread.cpu, truth["cpu"], delta=0.1 * truth["cpu"] + 0.01, msg=truth)
        self.assert_sums_to_wall(recorded)

    @SEES_KERNEL
    def test_counts_and_times_of_a_lock_held_asleep(self):
        recorded, truths = self.launch_once()
        self.assertEqual(recorded.run["waits"], 1)
        self.check_truth(recorded, truths)
        lock, times = recorded.waiting(under("pthread_mutex_lock"))
        sleep, _ = recorded.waiting(under("hold_asleep"))
        want_lock, want_sleep = sum(t["lock"] for t in truths), sum(t["sleep"] for t in truths)
        self.assertAlmostEqual(lock, want_lock, delta=0.05 * want_lock)
        self.assertAlmostEqual(sleep, want_sleep, delta=0.05 * want_sleep)
        self.assertLessEqual(times, sum(t["nvcsw"] for t in truths))
        total_s, total_n = recorded.rows("SELECT sum(ns) / 1e9, sum(n) FROM wait_totals")[0]
        of_threads_s, of_threads_n = recorded.rows("SELECT sum(waiting_ns) / 1e9, sum(waits) FROM threads")[0]
        self.assertAlmostEqual(total_s, of_threads_s, delta=1e-6)
        self.assertEqual(total_n, of_threads_n)

    @SEES_KERNEL
    def test_the_lock_is_named_and_its_holder_seen_asleep(self):
        recorded, _ = self.launch_once()
        locks = {row[0]: recorded.strings[row[1]] for row in recorded.rows("SELECT id, symbol FROM locks")}
        turn = next(lock for lock, name in locks.items() if name == "turn")
        waited = recorded.rows("SELECT sum(n) FROM waits WHERE tag = ?", turn + 1)[0][0]
        holders = recorded.rows("SELECT thread, node, state, n FROM holders WHERE thread NOTNULL AND lock = ?", turn)
        known = sum(row[3] for row in holders)
        asleep = sum(row[3] for row in holders if row[2] == 1 and "hold_asleep" in recorded.stack(row[1]))
        self.assertGreater(waited, 100)
        self.assertGreater(known, 10)
        self.assertGreater(asleep, 0.8 * known, [(row[2:], recorded.stack(row[1])[:6]) for row in holders])

    @SEES_KERNEL
    def test_sleeping_with_the_lock_is_no_idling(self):
        _, truths = self.launch_once()
        lock = next(lock for lock in self.reported["locks"] if lock["symbol"] == "turn")
        # Of the time of the three: the first thread only waits for them.
        self.assertAlmostEqual(lock["share_of_wall"], sum(t["lock"] for t in truths) / sum(t["wall"] for t in truths), delta=0.1)
        sleep = next(wait for wait in self.reported["waiting"] if wait["id"] == "wait.sleep")
        self.assertGreater(sleep["seconds"], 0.7 * sum(t["sleep"] for t in truths))

    def reported_last(self):
        return json.loads(self.rowprof_ok("report", os.path.join(self.scratch, "profile"), "--format", "json").stdout)

    def table(self):
        """What is printed of the last profile, but for what follows from the moments at which its blocks of time begin."""
        data = self.reported_last()
        categories = [{key: value for key, value in row.items() if key not in ("low", "high", "deff")} for row in data["categories"]]
        return data["quality"], categories, data["functions"], data["tree"]

    @SEES_KERNEL
    def test_snapshots_replay_to_the_same_table_and_waits(self):
        folder = os.path.join(self.scratch, "snapshots")
        target = self.start(self.build("a06"))
        live = self.record("--pid", target.pid, "--seconds", 2, "--save-snapshots", folder)
        shown = self.table()
        again = self.record("--from-snapshots", folder)
        self.assertEqual(self.table(), shown)
        self.assertEqual(again.run["waits"], 1)
        self.assertAlmostEqual(again.run["seconds_ns"], live.run["seconds_ns"], delta=0.5e9)
        self.assertAlmostEqual(live.run["switches"], again.run["switches"], delta=5)
        stacks = [{tuple(p.stack(node)) for node, in p.rows("SELECT node FROM waits WHERE tag")} for p in (live, again)]
        # A look at a thread because it holds a lock counts as a look at its own wait in the replay only.
        self.assertTrue(stacks[0])
        self.assertLessEqual(stacks[0], stacks[1])


class CaseA06Idle(WaitCase):
    def check(self, recorded):
        self.assert_sums_to_wall(recorded)
        idle = [t for t in recorded.threads.values() if t.waiting > 0.99 * t.wall and t.tid and recorded.waiting(under("pool_idle"), t.id)[0] > 0.9 * t.wall]
        self.assertEqual(len(idle), 4)
        contended, _ = recorded.waiting(lambda stack, syscall, tag: "query" in stack and "pthread_mutex_lock" in stack and syscall == SYS_FUTEX and tag)
        workers = [t for t in recorded.threads.values() if t not in idle and t.cpu > 0.05 * t.wall]
        self.assertEqual(len(workers), 3)
        self.assertAlmostEqual(contended, sum(t.waiting for t in workers), delta=0.1 * contended)
        self.assertGreater(contended, workers[0].wall)
        self.assertIn("query_mutex", [recorded.strings[row[0]] for row in recorded.rows("SELECT symbol FROM locks")])
        running = recorded.rows("SELECT sum(n) FROM holders WHERE state = 0 AND node")[0][0] or 0
        known = recorded.rows("SELECT sum(n) FROM holders WHERE thread NOTNULL")[0][0] or 0
        self.assertGreater(known, 5)
        self.assertGreater(running, 0.5 * known)

    @SEES_KERNEL
    def test_idle_and_contended_threads_differ(self):
        target = self.start(self.build("a06"))
        self.check(self.record("--pid", target.pid, "--seconds", 4))


class OneConnection(WaitCase):
    @SEES_KERNEL
    def test_the_mutex_is_told_to_be_that_of_the_connection(self):
        database = os.path.join(self.scratch, "rooms.db")
        target = self.start(self.build("a06_sqlite"), database)
        recorded = self.record("--pid", target.pid, "--seconds", 3)
        waited, times = recorded.waiting(lambda stack, syscall, tag: tag and "ask" in stack and any("sqlite3_" in name for name in stack))
        self.assertGreater(times, 20)
        locks = {row[0] + 1: recorded.strings[row[1]] for row in recorded.rows("SELECT id, database FROM locks")}
        of_connection, _ = recorded.waiting(lambda stack, syscall, tag: locks.get(tag) == database)
        self.assertGreater(of_connection, 0.9 * waited)
        self.assertEqual([name for name in locks.values() if name not in ("", database)], [])


class CaseA02Sleepers(WaitCase):
    @READY_FOR
    def test_no_wait_is_cut_short(self):
        target = self.start(self.build("a02"))
        recorded = self.record("--pid", target.pid, "--seconds", 4)
        target.stop()
        truth = target.words("TRUTH")
        self.assertGreater(truth["calls"], 200)
        self.assertLessEqual(truth["interrupted"], truth["calls"] / 10000)
        seconds, _ = recorded.waiting(lambda stack, syscall, tag: syscall == SYS_EPOLL_WAIT and "main" in stack)
        self.assertGreater(seconds, 0.9 * recorded.threads[target.pid].waiting)


class Preemption(WaitCase):
    @READY_FOR
    def test_a_busy_cpu_is_no_contention(self):
        cpu = min(os.sched_getaffinity(0))
        pin = lambda: os.sched_setaffinity(0, {cpu})
        others = [self.start(harness.ROWLOAD, "mix", "--idle", "none", preexec=pin) for _ in range(2)]
        target = self.start(harness.ROWLOAD, "mix", "--idle", "none", preexec=pin)
        recorded = self.record("--pid", target.pid, "--seconds", 3)
        del others
        self.assert_sums_to_wall(recorded)
        busy = max(recorded.threads.values(), key=lambda t: t.cpu)
        self.assertGreater(busy.preempted, 0.3 * busy.wall)
        self.assertGreater(busy.preemptions, 10)
        self.assertLess(busy.waiting, 0.1 * busy.wall)
        self.assertGreater(busy.run_delay, 0.8 * busy.preempted)
        self.assertLess(recorded.waiting(lambda stack, syscall, tag: bool(tag), busy.id)[0], 0.02 * busy.wall)


class BornAndDying(WaitCase):
    @READY_FOR
    def test_every_thread_sums_to_its_life(self):
        target = self.start(self.build("a07"))
        recorded = self.record("--pid", target.pid, "--seconds", 4)
        self.assertGreater(len(recorded.threads), 8)
        self.assert_sums_to_wall(recorded)
        main = recorded.threads[target.pid]
        self.assertGreater(main.waiting, 0.9 * main.wall)
        short = [t for t in recorded.threads.values() if 0.045 < t.cpu < 0.06 and t.tid != target.pid]
        self.assertGreater(len(short), 0.7 * (len(recorded.threads) - 3))


class OrdinaryUser(WaitCase):
    """perf_event_paranoid 2, no capability: switch records tell times, procfs the stacks."""

    def as_nobody(self):
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)

    def record_as_nobody(self, *args):
        os.chmod(self.scratch, 0o777)
        path = os.path.join(self.scratch, "profile")

        def before():
            harness.die_with_parent()
            self.as_nobody()
        done = subprocess.run([harness.ROWPROF, "record", "-o", path, "--force", *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=120, preexec_fn=before)
        self.assertEqual(done.returncode, 0, done.stderr)
        return Recorded(path)

    def paranoid(self):
        with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as file:
            return int(file.read())

    @SEES_KERNEL
    def test_idle_and_contended_threads_differ_without_the_kernel(self):
        if self.paranoid() != 2:
            self.skipTest("perf_event_paranoid is not 2")
        target = self.start(self.build("a06"), preexec=self.as_nobody)
        recorded = self.record_as_nobody("--pid", target.pid, "--seconds", 4)
        self.assertEqual(recorded.run["kernel_visible"], 0)
        CaseA06Idle.check(self, recorded)

    @SEES_KERNEL
    def test_kernel_time_has_a_row_of_its_own(self):
        if self.paranoid() != 2:
            self.skipTest("perf_event_paranoid is not 2")
        target = self.start("/usr/bin/python3", "-c", "import os,sys\nprint('READY pid=%d' % os.getpid(), file=sys.stderr, flush=True)\n"
                            "f = open('/dev/zero', 'rb', 0)\nb = bytearray(1 << 20)\nwhile True: f.readinto(b)", preexec=self.as_nobody)
        recorded = self.record_as_nobody("--pid", target.pid, "--seconds", 3)
        thread = recorded.threads[target.pid]
        hidden, shown = 0, 0
        for node, n, weight in recorded.rows("SELECT node, n, weight_ns FROM counts WHERE state = 0"):
            if "[kernel: not visible at this permission]" in recorded.stack(node):
                hidden += weight / 1e9
            else:
                shown += weight / 1e9
        self.assertAlmostEqual(hidden + shown, thread.cpu, delta=0.03 * thread.cpu)
        self.assertGreater(hidden, 0.8 * thread.cpu)  # it does nothing but fill memory in read(2)


if __name__ == "__main__":
    harness.main()
