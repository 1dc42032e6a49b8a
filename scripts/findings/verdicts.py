# SPDX-License-Identifier: MIT
"""The published A/B: Node 26.8 against 26.7 over the configurations of Node's own benchmarks, judged by `rowprof bench`.

One run of the benchmark serves all findings here. The short mode takes only get() of one to three columns, since a round of all 20 configurations takes a minute.
"""
import functools
import json
import os
import subprocess

from .judging import near, outcome
from .measuring import ROOT, Tools, runtime

SUITE = ROOT / "workloads" / "suites" / "node-sqlite-read.suite"
PUBLISHED_SIGNIFICANT, PUBLISHED_GEOMEAN, PUBLISHED_FLOOR = 14 / 20, 0.0825, 0.02
FULL_ROUNDS, SHORT_ROUNDS, TIMEOUT = 10, 4, 7200


@functools.lru_cache(maxsize=None)
def bench():
    command = [str(Tools.rowprof), "bench", "--old", runtime("node26.7"), "--new", runtime("node26.8"), "--suite", str(SUITE), "--format", "json",
               "--cpus", str(max(os.sched_getaffinity(0)))]
    few = ["-n", str(SHORT_ROUNDS), "--repeats", "0", "--filter", "get SELECT text_column", "--exclude", "blob_column"]
    command += ["-n", str(FULL_ROUNDS), "--repeats", "1"] if Tools.scale > 1 else few
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode:
        raise RuntimeError(f"rowprof bench failed: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)


def details(found):
    lines = [f"{row['improvement']:+.2%}, p {row['p']:.2g}, Holm {row['holm']:.2g}, floor {row['floor']:.2%}, {row['verdict']}: {row['name']}"
             for row in found["configs"]]
    return [*lines, f"{found['runs']} runs, {found['contended']} contended; rates by {found['rate']} CPU time"]


def convicted():
    """Rows of one call and one row over foo are faster; none of a hundred rows is."""
    found = bench()
    one = [row for row in found["configs"] if row["name"].endswith("FROM foo LIMIT 1")]
    faster = [row for row in one if row["verdict"] == "faster"]
    hundred = [row for row in found["configs"] if row["name"].endswith("LIMIT 100") and row["verdict"] in ("faster", "slower")]
    size = near(found["significant"] / len(found["configs"]), PUBLISHED_SIGNIFICANT)
    return outcome(f"{found['significant']} of {len(found['configs'])} significant; of one row {len(faster)} of {len(one)} convicted",
                   len(faster) * 2 > len(one) and not hundred, size, "fewer than half of the configurations of one row are convicted",
                   "other configurations are significant", details(found))


def geomean():
    change = bench()["geomean"]
    return outcome(f"{change['change']:+.2%} ({change['low']:+.2%}..{change['high']:+.2%})", change["low"] > 0, near(change["change"], PUBLISHED_GEOMEAN),
                   "its interval holds none", "two releases differ by more than the patch, and the short mode measures get() of one to three columns alone")


def floor():
    found = bench()
    return outcome(f"90 % of configs below {found['floor_90']:.1%}, {found['again']['convicted']} convicted", found["again"]["convicted"] == 0,
                   near(found["floor_90"], PUBLISHED_FLOOR), "a program differs from its own copy", "another machine, other runs")
