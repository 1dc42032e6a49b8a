#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""CPython's sqlite3 reading rows, with the protocol of rowload (workloads/README.md).

The trap is the interpreter: the loop's own bytecode is part of what a profile shows, so a batch is one plain function
with nothing in it but the call, and clocks are looked at between batches of about ten milliseconds.
"""
import argparse
import os
import random
import resource
import signal
import sqlite3
import sys
import threading
import time
import uuid

LISTS = {
    "1": "text_column",
    "2": "text_column, integer_column",
    "3": "text_column, integer_column, real_column",
    "4": "text_column, integer_column, real_column, blob_column",
    "*": "*",
    "8kb": "text_8kb_column",
    "const": "1",
}


def options():
    parser = argparse.ArgumentParser(prog="read.py")
    parser.add_argument("--op", choices=("get", "all", "iterate"), default="get")
    parser.add_argument("--columns", choices=tuple(LISTS), default="*")
    parser.add_argument("--limit", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--calls", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=10000)
    parser.add_argument("--progress", action="store_true")
    option = parser.parse_args()
    if option.limit < 1 or option.rows < 1 or option.calls < 0 or option.seconds < 0:
        parser.error("--limit and --rows are at least 1, --calls and --seconds not negative.")
    return option


def seed_database(option):
    database = sqlite3.connect(":memory:", isolation_level=None)
    rand = random.Random(option.seed)
    database.execute("BEGIN")
    if option.columns == "8kb":
        database.execute("CREATE TABLE foo_large(text_8kb_column TEXT)")
        database.executemany("INSERT INTO foo_large VALUES(?)", [("a" * 8192,)] * 200)
    else:
        database.execute("CREATE TABLE foo(text_column TEXT, integer_column INTEGER, real_column REAL, blob_column BLOB)")
        database.executemany(
            "INSERT INTO foo VALUES(?, ?, ?, ?)",
            ((str(uuid.UUID(int=rand.getrandbits(128), version=4)), rand.randrange(100), rand.random(),
              b"example blob data") for _ in range(option.rows)))
    database.execute("COMMIT")
    return database


def select(option):
    if option.columns == "const":
        return "SELECT 1"
    table = "foo_large" if option.columns == "8kb" else "foo"
    return f"SELECT {LISTS[option.columns]} FROM {table} LIMIT {option.limit}"


def batch_get(cursor, sql, calls):
    row = None
    for _ in range(calls):
        row = cursor.execute(sql).fetchone()
    return calls, row


def batch_all(cursor, sql, calls):
    count, rows = 0, []
    for _ in range(calls):
        rows = cursor.execute(sql).fetchall()
        count += len(rows)
    return count, rows[-1]


def batch_iterate(cursor, sql, calls):
    count, row = 0, None
    for _ in range(calls):
        for row in cursor.execute(sql):
            count += 1
    return count, row


BATCHES = {"get": batch_get, "all": batch_all, "iterate": batch_iterate}


class Mark:
    def __init__(self, calls, rows):
        usage = resource.getrusage(resource.RUSAGE_SELF)
        self.wall, self.cpu, self.calls, self.rows = time.monotonic(), time.process_time(), calls, rows
        self.voluntary, self.involuntary = usage.ru_nvcsw, usage.ru_nivcsw


def rate(begin, end, span):
    secs, cpu, calls = end.wall - begin.wall, end.cpu - begin.cpu, end.calls - begin.calls
    print(f"RATE calls={calls} rows={end.rows - begin.rows} secs={secs:.6f} rate={calls / secs if secs else 0:.1f}"
          f" cpu_secs={cpu:.6f} cpu_rate={calls / cpu if cpu else 0:.1f} ns_per_call={cpu * 1e9 / calls if calls else 0:.1f}"
          f" nvcsw={end.voluntary - begin.voluntary} nivcsw={end.involuntary - begin.involuntary} span={span}", flush=True)


def drift_warn(slices):
    window = len(slices) // 10
    if not window:
        return
    def speed(part):
        cpu = sum(slice_cpu for slice_cpu, _ in part)
        return sum(calls for _, calls in part) / cpu if cpu else 0.0
    used = slices[:window * 10]
    off = 100.0 * (speed(used[window * 7:]) - speed(used[:window * 3])) / (speed(used) or 1.0)
    if abs(off) > 2.0:
        print(f"read.py: not stationary: the last three of ten windows ran {off:+.1f} % against the first three.",
              file=sys.stderr)


def hold(option, batch, size, stopped):
    calls = rows = 0
    row = None
    begin = second = last = Mark(0, 0)
    slices = []
    while not stopped and not (option.calls and calls >= option.calls):
        todo = min(size, option.calls - calls) if option.calls else size
        got, row = batch(todo)
        calls, rows = calls + todo, rows + got
        now = time.monotonic()
        if now - last.wall >= 0.1 and len(slices) < 100000:
            mark = Mark(calls, rows)
            slices.append((mark.cpu - last.cpu, mark.calls - last.calls))
            last = mark
        if option.progress and now - second.wall >= 1.0:
            mark = Mark(calls, rows)
            rate(second, mark, "second")
            second = mark
        if option.seconds and now - begin.wall >= option.seconds:
            break
    rate(begin, Mark(calls, rows), "run")
    total = rows
    for cell in row or ():
        total = total * 31 + (len(cell) + ord(cell[0]) if isinstance(cell, str) else
                              sum(cell) if isinstance(cell, bytes) else int(cell * 1024))
    print(f"SUM {total & 0xffffffff:08x}", flush=True)
    drift_warn(slices)


def main():
    option = options()
    database = seed_database(option)
    cursor, sql, stopped = database.cursor(), select(option), []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.append(True))

    def batch(calls):
        return BATCHES[option.op](cursor, sql, calls)

    warm, begin = 0, time.monotonic()
    while warm < (20000 if option.limit <= 10 else 3000) or time.monotonic() - begin < 0.5:
        batch(100)
        warm += 100
    size = max(1, round(0.01 / ((time.monotonic() - begin) / warm)))
    print(f"READY pid={os.getpid()} tid={threading.get_native_id()} workload=python:sqlite3 op={option.op}"
          f" limit={option.limit} cols={option.columns} rows={option.rows} python={sys.version.split()[0]}"
          f" sqlite={sqlite3.sqlite_version} seed={option.seed}", file=sys.stderr, flush=True)
    hold(option, batch, size, stopped)


if __name__ == "__main__":
    main()
