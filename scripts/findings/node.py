# SPDX-License-Identifier: MIT
"""Findings about node:sqlite: what a row costs by category, and the release that keeps column names."""
import functools
import os

from .judging import GONE, near, outcome, percent, rank_correlation
from .measuring import Tools, median, node, profile, ratio, rounds, run

# The published table of get() with LIMIT 1: shares of the samples that are not idle.
PUBLISHED_ONE = {
    "pthread.mutex": 0.204, "sqlite.vdbe": 0.189, "v8.objects": 0.151, "libc.malloc": 0.117, "v8.names": 0.081, "v8.buffers": 0.059,
    "sqlite.capi": 0.045, "node.sqlite": 0.017,
}
PUBLISHED_OBJECTS_HUNDRED = 0.225
VALUE_READERS = ("sqlite3_column_type", "sqlite3_column_bytes", "sqlite3_column_double", "sqlite3_column_int64", "sqlite3_column_int",
                 "sqlite3_column_text", "sqlite3_column_blob", "sqlite3_column_value")
RANKS_AGREE = 0.7        # Spearman's coefficient from which two orders count as the same
PER_VALUE_SHARE = 0.8    # of the mutex, paid by functions that read values, to be "paid per value"
PUBLISHED_SPEED_UP = 1.10  # of a single row, by keeping names


@functools.lru_cache(maxsize=None)
def shape(op, limit, release="node24", library="node:sqlite"):
    """The main thread's profile of one shape; taken once, several findings read it. On one CPU: where V8's helper frees blobs on another, malloc takes
    a fifth of the time in some minutes and half of it in others."""
    return profile(["taskset", "-c", str(max(os.sched_getaffinity(0))),
                    *node("read.mjs", "--library", library, "--op", op, "--limit", limit, release=release)], 5 * Tools.scale, "-t",
                   "MainThread" if release == "node24" else "node-MainThread", "--category", "pthread.mutex")


def table(shares, published):
    return [f"{name}: published {percent(published[name]) if name in published else '-'}, here {percent(share)}" for name, share in shares.items()]


def table_one():
    one = shape("get", 1)
    shares = {name: one.share(name) for name in PUBLISHED_ONE}
    agreement = rank_correlation(PUBLISHED_ONE, shares)
    off = {name for name in shares if not near(shares[name], PUBLISHED_ONE[name], share=True)}
    why = f"{', '.join(sorted(off))} differ"
    if off <= {"libc.malloc", "v8.buffers"}:
        why += ": the published table is from another C library; this one spends more on freeing buffers"
    return outcome(
        f"mutex {percent(shares['pthread.mutex'])}, VDBE {percent(shares['sqlite.vdbe'])}, objects {percent(shares['v8.objects'])}, "
        f"malloc {percent(shares['libc.malloc'])}",
        agreement >= RANKS_AGREE, not off,
        f"the order of the categories differs (rank correlation {agreement:.2f})",
        why,
        [*table(shares, PUBLISHED_ONE), f"rank correlation {agreement:.2f}, {one.samples} samples"])


def table_hundred():
    one, hundred = shape("get", 1), shape("all", 100)
    objects, vdbe = hundred.share("v8.objects"), hundred.share("sqlite.vdbe")
    return outcome(
        f"objects {percent(one.share('v8.objects'))} -> {percent(objects)}, VDBE {percent(one.share('sqlite.vdbe'))} -> {percent(vdbe)}",
        objects > one.share("v8.objects") and vdbe < one.share("sqlite.vdbe"), near(objects, PUBLISHED_OBJECTS_HUNDRED),
        "objects do not grow against the engine", "objects grow less",
        [*table({name: hundred.share(name) for name in PUBLISHED_ONE}, {"v8.objects": PUBLISHED_OBJECTS_HUNDRED}), f"{hundred.samples} samples"])


def names_gone():
    one, hundred = shape("get", 1).share("v8.names"), shape("all", 100).share("v8.names")
    return outcome(f"{percent(one)} -> {percent(hundred)}", hundred < GONE < one, near(one, PUBLISHED_ONE["v8.names"], share=True),
                   "names do not vanish", "it begins from another share")


def mutex_per_value():
    one, hundred = shape("get", 1), shape("all", 100)
    heads = hundred.heads("pthread.mutex")
    readers = sum(heads.get(name, 0) for name in VALUE_READERS) / max(1, sum(heads.values()))
    payers = hundred.categories["pthread.mutex"]["paid_by"]
    api = sum(row["samples"] for row in payers if row["id"] == "sqlite.capi") / max(1, sum(row["samples"] for row in payers))
    share = hundred.share("pthread.mutex")
    return outcome(
        f"{percent(readers)} of the mutex under functions that read a value; {percent(share)} of all at LIMIT 100",
        readers >= PER_VALUE_SHARE and near(share, one.share("pthread.mutex"), share=True), None,
        "the mutex is mostly taken by something else, or shrinks with the rows", "nothing with a size was published",
        [f"paid by the C API: {percent(api)} of the mutex at LIMIT 100; share of all {percent(one.share('pthread.mutex'))} at LIMIT 1"] +
        [f"{name}: {count} samples" for name, count in sorted(heads.items(), key=lambda item: -item[1])[:8]])


def mutex_off():
    with_, without = shape("all", 100).share("pthread.mutex"), shape("all", 100, library="better-sqlite3").share("pthread.mutex")
    return outcome(f"{percent(with_)} -> {percent(without)} at LIMIT 100", without < with_ / 3, without < GONE,
                   "the mutex stays", "some of it stays, outside SQLite")


def cpu_rate(release, op, limit):
    """Calls per second of the main thread's CPU time, on one CPU: Node frees blobs on another thread, and what that costs depends on where it runs."""
    command = node("read.mjs", "--op", op, "--limit", limit, "--seconds", 0.8 * Tools.scale, release=release)
    words = run(["taskset", "-c", str(max(os.sched_getaffinity(0))), *command]).words("RATE")
    return words["calls"] / words["thread_cpu_secs"]


def names_kept(op, limit, published):
    """26.8 against 26.7, and 26.7 against itself: what two equal programs differ by here is the least that can be told."""
    variants = ("node26.7", "node26.7 again", "node26.8")
    found = rounds(variants, lambda name: cpu_rate(name.split()[0], op, limit), Tools.rounds + 2)
    gain, above, count = ratio(found, "node26.8", "node26.7")
    floor = max(abs(ratio(found, "node26.7 again", "node26.7")[0] - 1), 0.01)
    here = f"{100 * (gain - 1):+.1f} % in {above} of {count} rounds (noise floor {100 * floor:.1f} %)"
    details = [f"{name}: {median(values):.0f} calls per CPU second" for name, values in found.items()]
    if published == 1.0:
        still = abs(gain - 1) <= max(floor, 0.03)
        return outcome(here, still, still, "a difference larger than the noise floor and 3 %, where none should be: other changes of the release",
                       details=details)
    return outcome(here, gain - 1 > floor and above * 2 > count, near(gain - 1, published - 1), "the gain is not above the noise floor",
                   f"published about {100 * (published - 1):.0f} %; two releases differ by more than the patch", details)


def names_kept_one():
    return names_kept("get", 1, PUBLISHED_SPEED_UP)


def names_kept_hundred():
    return names_kept("all", 100, 1.0)


def names_release():
    old, new = shape("get", 1, "node26.7").share("v8.names"), shape("get", 1, "node26.8").share("v8.names")
    return outcome(f"{percent(old)} -> {percent(new)}", new < old / 2, new < 0.02, "names are not cheaper",
                   "names are cheaper, yet not gone", ["self shares of the main thread in get() of one row"])
