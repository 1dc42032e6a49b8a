# SPDX-License-Identifier: MIT
"""Findings about waiting: a cache whose threads check for changes under one lock, as rowprof sees it from outside.

Published were contentions, which are locks found taken. rowprof counts waits, which are locks slept for; the rules say why the two differ. The
workload's own count of locks found taken is printed beside them.
"""
import functools

from .judging import BUSY_CORES, GONE, near, outcome
from .measuring import Others, Tools, profile, rowload

LADDER = ("reprepare", "prepared", "pool", "header", "header-nolock")
UNDER_LOCK, LOCK_FREE = ("reprepare", "prepared", "header"), "header-nolock"
PUBLISHED_CONTENTIONS, PUBLISHED_WAITED_S, PUBLISHED_CORES = 32700, 4.5, 2 / 4
PUBLISHED_S = 10
FEWER_CORES = 0.9  # of what the threads use without a lock, to be "held back by it"


class Step:
    """One mode of the check with four threads, in ten seconds."""

    def __init__(self, mode):
        others = Others()
        seen = profile(rowload("verchk", "--mode", mode, "--threads", 4), 4 * Tools.scale, "--locks")
        self.busy = others.cores()
        time = seen.data["time"]
        scale = PUBLISHED_S / (time["wall_s"] / len(seen.data["threads"]))
        rows = {row["id"]: row for row in seen.data["waiting"]}
        lock = rows.get("wait.lock", {"waits": 0, "seconds": 0.0})
        self.waits, self.waited_s = lock["waits"] * scale, lock["seconds"] * scale
        self.first = max(rows, key=lambda name: rows[name]["seconds"], default="nothing")
        self.for_cpu_s = sum(thread["waiting_for_cpu_s"] for thread in seen.data["threads"]) * scale
        self.locks = [(row["name"], row["waits"] * scale, row["seconds"] * scale) for row in seen.data["locks"][:3]]
        self.cores, self.cpus = time["cores_used"], time["cpus_allowed"] or Tools.cores
        own = seen.output.words("CHECKS")
        own_scale = PUBLISHED_S / seen.output.words("RATE")["secs"]
        self.contended, self.own_s = own["contended"] * own_scale, own["wait_secs"] * own_scale

    def details(self, mode):
        return [f"{mode}: {self.waits:.0f} waits for locks, {self.waited_s:.2f} s, of all waiting up to {self.for_cpu_s:.2f} s for a CPU; by the program's "
                f"own count found taken {self.contended:.0f} times, {self.own_s:.2f} s; {self.cores:.2f} of {self.cpus} cores; others used {self.busy:.1f}",
                *(f"{mode}, {name}: {waits:.0f} waits, {seconds:.2f} s" for name, waits, seconds in self.locks)]


@functools.lru_cache(maxsize=None)
def step(mode):
    return Step(mode)


def crowd(here):
    return f"; others used {here.busy:.1f} of {Tools.cores} cores, which makes holds longer" if here.busy > BUSY_CORES else ""


def waits():
    here, free = step("reprepare"), step(LOCK_FREE)
    return outcome(f"{here.waits:.0f} waits; found taken {here.contended:.0f} times", here.first == "wait.lock" and here.waits > free.waits,
                   near(here.waits, PUBLISHED_CONTENTIONS), f"most waiting is {here.first}",
                   f"waits are counted, not contentions; {here.cpus} cores against 4{crowd(here)}", here.details("reprepare"))


def waited():
    here, free = step("reprepare"), step(LOCK_FREE)
    return outcome(f"{here.waited_s:.2f} s waiting; {here.own_s:.2f} s by the program's own clock", here.first == "wait.lock" and here.waited_s > free.waited_s,
                   near(here.waited_s, PUBLISHED_WAITED_S), f"most waiting is {here.first}",
                   f"all four threads want the lock all the time, on {here.cpus} cores, and up to {here.for_cpu_s:.2f} s were spent waiting for a CPU; the "
                   f"published ones had requests to serve{crowd(here)}")


def ladder():
    """The lock-free step waits for none; the steps under the lock for as long as they hold it."""
    steps = {mode: step(mode) for mode in LADDER}
    most = max(steps[mode].waited_s for mode in UNDER_LOCK)
    free = steps[LOCK_FREE].waited_s
    return outcome(", ".join(f"{mode} {one.waited_s:.2f} s ({one.waits:.0f})" for mode, one in steps.items()), most > 0 and free < GONE * most, free == 0,
                   f"without the lock {free:.2f} s are waited", f"{free:.4f} s of other locks", [line for mode in LADDER for line in steps[mode].details(mode)])


def cores():
    """Held back by the lock: against the same threads without one, in the same minute."""
    here, free = step("reprepare"), step(LOCK_FREE)
    return outcome(f"{here.cores:.2f} of {here.cpus} cores used; without the lock {free.cores:.2f}", here.cores < FEWER_CORES * free.cores,
                   near(here.cores / here.cpus, PUBLISHED_CORES, share=True), "the lock does not hold the threads back",
                   f"one thread at a time holds the lock, of {here.cpus} cores against 4{crowd(here)}")
