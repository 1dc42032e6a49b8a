#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The parallelism benchmark in Python: processes (multiprocessing) times threads that each scan a table for one value.

The published program and its report, to the byte; rowload scan and workloads/node/parallel.mjs are its twins. sqlite3 lets go of
the interpreter's lock while SQLite runs, so one process can use several cores. Without --steady (or --seconds, --calls) each
thread does --queries-per-thread, and starting and ending are inside the time; with it all threads warm up and hold together.

The trap is fork: a connection must not be carried into a child, so the database is made and closed before any child exists.
"""
import argparse
import ctypes
import multiprocessing
import os
import queue
import random
import resource
import shutil
import signal
import sqlite3
import statistics
import sys
import tempfile
import threading
import time

QUERY = "SELECT a, b, c, d FROM table1 WHERE x = ?"
WARM_QUERIES, WARM_SECONDS = 3000, 0.5
PR_SET_PDEATHSIG = 1
BATCH = 20  # queries between two looks at the clock: about a millisecond


def whole(low, high):
    def convert(text):
        value = int(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"a number from {low} to {high}, not '{text}'.")
        return value
    return convert


def seconds(text):
    value = float(text)
    if not 0.0 <= value <= 864000.0:
        raise argparse.ArgumentTypeError(f"a number from 0 to 864000, not '{text}'.")
    return value


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"{self.prog}: {message.rstrip('.')}.\n")


def options():
    parser = Parser(prog="parallel.py", allow_abbrev=False)
    parser.add_argument("--processes", type=whole(1, 64), default=2)
    parser.add_argument("--threads-per-proc", "--threads", dest="threads", type=whole(1, 256), default=16)
    parser.add_argument("--queries-per-thread", "--queries", dest="queries", type=whole(1, 2**32 - 1), default=50000)
    parser.add_argument("--rows", type=whole(1, 10**8), default=2000)
    parser.add_argument("--x-range", type=whole(1, 2**32 - 1), default=1000)
    parser.add_argument("--pin-cpus", action="store_true")
    parser.add_argument("--index", action="store_true")
    parser.add_argument("--db-path")
    parser.add_argument("--steady", type=seconds)
    parser.add_argument("--seconds", type=seconds, default=0.0)
    parser.add_argument("--calls", type=whole(0, 2**63), default=0)
    parser.add_argument("--seed", type=whole(0, 2**32 - 1), default=1)
    option = parser.parse_args()
    option.held = option.steady is not None or option.seconds > 0 or option.calls > 0
    option.seconds = option.steady if option.steady is not None else option.seconds
    option.workers = option.processes * option.threads
    return option


def seed_database(option):
    if os.path.exists(option.path):
        os.remove(option.path)
    database = sqlite3.connect(option.path, isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("CREATE TABLE table1(id INTEGER PRIMARY KEY, x INTEGER NOT NULL, a TEXT, b TEXT, c TEXT, d TEXT)")
    rand = random.Random(option.seed)
    database.execute("BEGIN")
    database.executemany("INSERT INTO table1 (x, a, b, c, d) VALUES (?, ?, ?, ?, ?)",
                         ((rand.randrange(option.x_range), *[f"v{i}"] * 4) for i in range(option.rows)))
    if option.index:
        database.execute("CREATE INDEX table1_x ON table1(x)")
    database.execute("COMMIT")
    database.close()


class Worker(threading.Thread):
    """One thread with its own connection."""

    def __init__(self, option, index, stop, opened, go):
        super().__init__(daemon=True)
        self.option, self.index, self.stop, self.opened, self.go = option, index, stop, opened, go
        self.calls = self.rows = self.sum = 0
        self.secs = 0.0
        self.failed = None

    def run(self):
        try:
            self.serve()
        except Exception as error:  # told to the parent: a thread's own traceback would leave it waiting
            self.failed = f"{type(error).__name__}: {error}"
            self.opened.release()

    def batch(self, cursor, rand, count):
        for _ in range(count):
            rows = cursor.execute(QUERY, (rand.randrange(self.option.x_range),)).fetchall()
            for row in rows:
                self.sum += len(row[0]) * 31 + ord(row[3][-1])
            self.rows += len(rows)
        self.calls += count

    def serve(self):
        option = self.option
        database = sqlite3.connect(option.path, timeout=30)
        cursor = database.cursor()
        rand = random.Random(option.seed * 1000003 + self.index)
        if option.held:
            begin = time.monotonic()
            while self.calls < WARM_QUERIES or time.monotonic() - begin < WARM_SECONDS:
                self.batch(cursor, rand, 100)
            self.calls = self.rows = self.sum = 0
            rand = random.Random(option.seed * 1000003 + self.index)
        self.opened.release()
        if option.held:
            self.go.wait()
        begin = time.monotonic()
        if not option.held:
            self.batch(cursor, rand, option.queries)
        else:
            part = option.calls // option.workers + (self.index < option.calls % option.workers)
            while not self.stop.is_set() and not (option.calls and self.calls >= part):
                self.batch(cursor, rand, min(BATCH, part - self.calls) if option.calls else BATCH)
        self.secs = time.monotonic() - begin
        database.close()


def usage():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, used.ru_nvcsw, used.ru_nivcsw


def process_main(option, which, told, orders):
    """A process of the benchmark: starts its threads, says when they are open, and gives their results to `told`."""
    # The parent says when: a signal to the whole group is the parent's to answer. Without a parent there is nobody to tell.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    begin = time.monotonic()
    # A forked child begins with no CPU time of its own.
    before = (0.0, 0, 0)
    if option.pin_cpus:
        try:
            os.sched_setaffinity(0, {which})
        except OSError as error:
            print(f"parallel.py: process {which} is not pinned to CPU {which}: {error.strerror}", file=sys.stderr)
    opened, go, stop = threading.Semaphore(0), threading.Event(), threading.Event()
    workers = [Worker(option, which * option.threads + i, stop, opened, go) for i in range(option.threads)]
    for worker in workers:
        worker.start()
    for _ in workers:
        opened.acquire()
    told.put((which, "opened", os.getpid()))
    if option.held:
        orders.get()
        before = usage()
        go.set()
        threading.Thread(target=lambda: (orders.get(), stop.set()), daemon=True).start()
    for worker in workers:
        worker.join()
    after = usage()
    failed = next((worker.failed for worker in workers if worker.failed), None)
    told.put((which, "done", {
        "lines": [(w.calls, w.rows, w.sum, w.secs) for w in workers], "failed": failed, "wall": time.monotonic() - begin,
        "used": tuple(a - b for a, b in zip(after, before))}))


def published(ends, secs):
    print("\n--- Per-process stats ---")
    for i, end in enumerate(ends):
        calls = sum(line[0] for line in end["lines"])
        print(f"Process {i}:\n  Wall time: {end['wall']:.4f} s\n  Queries:   {calls}\n  QPS:       {calls / end['wall']:.2f}")
    qps = sorted(line[0] / line[3] for end in ends for line in end["lines"])
    print(f"\n--- Per-thread QPS (over all processes) ---\nThreads total: {len(qps)}")
    print(f"Min QPS:   {qps[0]:.2f}\nMedian QPS:{statistics.median(qps):.2f}\nMean QPS:  {statistics.fmean(qps):.2f}\nMax QPS:   {qps[-1]:.2f}")
    total = sum(line[0] for end in ends for line in end["lines"])
    print(f"\n--- Global stats ---\nTotal queries:      {total}")
    print(f"Global wall time:   {secs:.4f} s (includes process startup/teardown)\nGlobal effective QPS: {total / secs:.2f}")


def rate(ends, secs, own):
    calls, rows = (sum(line[k] for end in ends for line in end["lines"]) for k in (0, 1))
    cpu, voluntary, involuntary = (own[k] + sum(end["used"][k] for end in ends) for k in (0, 1, 2))
    print(f"RATE calls={calls} rows={rows} secs={secs:.6f} rate={calls / secs if secs else 0:.1f} cpu_secs={cpu:.6f}"
          f" cpu_rate={calls / cpu if cpu else 0:.1f} ns_per_call={cpu * 1e9 / calls if calls else 0:.1f}"
          f" nvcsw={voluntary} nivcsw={involuntary} span=run")


def hear(told, children):
    """The next message; a child that dies without one ends the program."""
    while True:
        try:
            return told.get(timeout=0.2)
        except queue.Empty:
            dead = next((child for child in children if child.exitcode not in (None, 0)), None)
            if dead:
                sys.exit(f"parallel.py: a process ended early ({dead.exitcode}).")


def run(option):
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    seed_database(option)
    print(f"Creating DB at {option.path} with {option.rows} rows (x in [0,{option.x_range}))")
    print(f"Running benchmark with {option.processes} processes × {option.threads} threads\nTotal threads: {option.workers}")
    if not option.held:
        print(f"Queries per thread: {option.queries}\nTotal queries: {option.workers * option.queries}")
    if option.pin_cpus:
        print(f"Attempting to pin processes to CPUs: {list(range(option.processes))}")
    sys.stdout.flush()
    context = multiprocessing.get_context("fork")
    told = context.Queue()
    own, begin = usage(), time.monotonic()
    orders = [context.Queue() for _ in range(option.processes)]
    children = [context.Process(target=process_main, args=(option, i, told, orders[i]), daemon=True) for i in range(option.processes)]
    for child in children:
        child.start()
    pids, ends, from_ = {}, {}, begin

    def take(message):
        which, kind, what = message
        (pids if kind == "opened" else ends)[which] = what

    while len(pids) < option.processes:
        take(hear(told, children))
    print(f"READY pid={os.getpid()} tid={threading.get_native_id()} workload=parallel.py processes={option.processes}"
          f" threads={option.threads} pids={','.join(str(pids[i]) for i in range(option.processes))} op=scan limit=0"
          f" queries={option.queries} rows={option.rows} x_range={option.x_range} index={int(option.index)} pin={int(option.pin_cpus)}"
          f" steady={int(option.held)} python={sys.version.split()[0]} sqlite={sqlite3.sqlite_version} seed={option.seed}",
          file=sys.stderr, flush=True)
    if option.held:
        own, from_ = usage(), time.monotonic()
        for order in orders:
            order.put("go")
        while len(ends) < option.processes and not stopped.is_set():
            if option.seconds and time.monotonic() - from_ >= option.seconds:
                break
            try:
                take(told.get(timeout=0.01))
            except queue.Empty:
                pass
        for order in orders:
            order.put("stop")
    while len(ends) < option.processes:
        take(hear(told, children))
    for child in children:
        child.join()
    now, after = time.monotonic(), usage()
    ordered = [ends[i] for i in range(option.processes)]
    failed = next((end["failed"] for end in ordered if end["failed"]), None)
    if failed:
        sys.exit(f"parallel.py: a thread failed: {failed}.")
    rate(ordered, now - from_, tuple(a - b for a, b in zip(after, own)))
    if not option.held:
        published(ordered, now - begin)
    print(f"SUM {sum(line[2] for end in ordered for line in end['lines']) & 0xffffffff:08x}", flush=True)


def main():
    option = options()
    scratch = None if option.db_path else tempfile.mkdtemp(prefix="rowprof-parallel-")
    option.path = option.db_path or os.path.join(scratch, "parallel.db")
    try:
        run(option)
    finally:
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
