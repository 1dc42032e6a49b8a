# SPDX-License-Identifier: MIT
"""What the findings are measured with: workloads started and ended, rowprof's JSON, pairs that alternate, and how busy the machine was.

Machines drift and are shared, so two variants always alternate, a figure is the median over rounds, and rates go by CPU time where
the finding allows it. Where it does not (waiting, overlap, start-up), others_cores() says how much of the machine was someone else's.
"""
import functools
import json
import os
import pathlib
import re
import resource
import signal
import statistics
import struct
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NODE_FOLDER = ROOT / "workloads" / "node"
PARALLEL_PY = ROOT / "workloads" / "python" / "parallel.py"
MONO_VERCHK = ROOT / "workloads" / "mono" / "verchk"
READY_SECONDS = 120


class Missing(Exception):
    """Something a finding needs is not here; says what, and how to get it."""


class Tools:
    """The programs under measurement, and how long to take: `scale` is 1 in the short mode."""
    rowprof = None
    rowload = None
    scale = 1.0
    rounds = 3
    cores = os.cpu_count()


@functools.lru_cache(maxsize=None)
def runtime(name):
    done = subprocess.run([ROOT / "scripts" / "runtimes", "--print", name], capture_output=True, text=True)
    if done.returncode:
        raise Missing(done.stderr.strip().removeprefix("runtimes: ") or f"{name} is not here.")
    return done.stdout.strip()


def node(script, *args, release="node24"):
    """The command of a script in workloads/node/; without a library it needs only that release of Node."""
    for library in ("better-sqlite3", "sqlite3", "sqlite3-eager"):
        if library in args:
            runtime(library)
    return [runtime(release), str(NODE_FOLDER / script), *map(str, args)]


def rowload(*args):
    return [str(Tools.rowload), *map(str, args)]


def python_parallel(*args):
    return ["/usr/bin/python3", str(PARALLEL_PY), *map(str, args)]


def mono(*args):
    runtime("mono")
    return [str(MONO_VERCHK), *map(str, args)]


# ---- running ----

class Output:
    """What a finished workload printed: lines of a kind as dictionaries, and the published report's global rate."""

    def __init__(self, text, command):
        self.text, self.command = text, command

    def words(self, kind):
        for line in reversed(self.text.splitlines()):
            if line.startswith(kind + " "):
                pairs = (word.split("=", 1) for word in line.split()[1:] if "=" in word)
                return {key: float(value) if re.fullmatch(r"-?[0-9.]+", value) else value for key, value in pairs}
        raise RuntimeError(f"no {kind} line from {' '.join(self.command)}")

    def effective_qps(self):
        return float(re.search(r"^Global effective QPS: ([0-9.]+)$", self.text, re.M).group(1))


def run(command, timeout=600):
    """Runs a workload to its end."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=timeout)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed ({done.returncode}): {' '.join(done.stderr.split()[-40:])}")
    return Output(done.stdout, command)


class Running:
    """A workload that has said READY and holds, for the time of a `with`; then `output` is what it printed."""

    def __init__(self, command):
        self.command = command

    def __enter__(self):
        self.out = tempfile.TemporaryFile("w+", errors="replace")
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.out, stderr=subprocess.PIPE, text=True, errors="replace")
        said = []
        for line in self.process.stderr:
            said.append(line.strip())
            if line.startswith("READY "):
                words = dict(word.split("=", 1) for word in line.split()[1:] if "=" in word)
                self.pid = int(words["pid"])
                self.pids = [int(pid) for pid in words.get("pids", words["pid"]).split(",")]
                return self
        self.process.wait()
        self.process.stderr.close()
        self.out.close()
        raise RuntimeError(f"{' '.join(self.command)} ended before it was ready: {' '.join(said[-3:])}")

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.kill(self.pid, signal.SIGTERM)
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stderr.close()
        self.out.seek(0)
        self.output = Output(self.out.read(), self.command)
        self.out.close()


class Profile:
    """rowprof's JSON. Shares are of all samples in it, self shares, and sum to 1. `output`: what the workload printed when it was ended."""

    def __init__(self, data, output):
        self.data, self.output = data, output
        self.samples = data["quality"]["samples"]
        self.categories = {row["id"]: row for row in data["categories"]}

    def share(self, *ids):
        return sum(self.categories.get(i, {}).get("share", 0.0) for i in ids)

    def total(self, *symbols):
        """The largest share of the samples that have a function of one of these names in their stack."""
        return max((row["total"] for row in self.data["functions"] if row["symbol"] in symbols), default=0) / max(1, self.samples)

    def heads(self, category):
        """Who calls the category: samples by the function at the head of its tree."""
        found = {}
        for tree in self.data["tree"]:
            if tree["category"] == category:
                for row in tree["nodes"]:
                    if row["depth"] == 0:
                        found[row["symbol"]] = found.get(row["symbol"], 0) + row["samples"]
        return found


def profile(command, seconds, *args):
    """Starts a workload, profiles it once it holds, and ends it. Kernel time goes to the function that asked for it."""
    with Running(command) as target:
        words = [str(Tools.rowprof)]
        for pid in target.pids:
            words += ["--pid", str(pid)]
        words += ["--seconds", f"{seconds:g}", "--no-kernel", "--min-samples", "1", "--format", "json", *args]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=300)
    if done.returncode:
        raise RuntimeError(f"rowprof failed on {' '.join(command)}: {done.stderr.strip()}")
    result = Profile(json.loads(done.stdout), target.output)
    if result.samples < 100:
        raise RuntimeError(f"only {result.samples} samples of {' '.join(command)} in {seconds:g} s: the machine gives it no time.")
    return result


def rounds(variants, measure, count=None):
    """Measures all variants in turn, `count` times, every second time backwards: {variant: [values]} with values in step."""
    found = {variant: [] for variant in variants}
    for i in range(count or Tools.rounds):
        for variant in variants if i % 2 == 0 else reversed(variants):
            found[variant].append(measure(variant))
    return found


def ratio(found, over, under):
    """The median over rounds of the quotient of two variants, with how many rounds it was above 1."""
    quotients = [a / b for a, b in zip(found[over], found[under])]
    return statistics.median(quotients), sum(q > 1 for q in quotients), len(quotients)


def median(values):
    return statistics.median(values)


class Windows:
    """A workload run to its end while its counter file (calls, CPU ns) is looked at: what it did in its quietest moments.

    Other programs can only take time away, so on a shared machine the best of many short windows is the nearest to what the workload
    does alone. A window is long against a query and short against what others do.
    """
    WINDOW_S = 0.1
    BEST = 3

    def __init__(self, command, folder):
        counter = pathlib.Path(folder) / "counter"
        counter.write_bytes(bytes(16))
        process = subprocess.Popen([*command, "--counter", str(counter)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, errors="replace")
        if not any(line.startswith("READY ") for line in process.stderr):
            process.wait()
            raise RuntimeError(f"{' '.join(command)} ended before it was ready.")
        found = [self.look(counter)]
        while process.poll() is None:
            time.sleep(self.WINDOW_S)
            found.append(self.look(counter))
        self.output = Output(process.stdout.read(), command)
        process.stdout.close()
        process.stderr.close()
        pairs = [(b[0] - a[0], b[1] - a[1], b[2] - a[2]) for a, b in zip(found[:-2], found[1:-1])]
        pairs = sorted((calls / wall, cpu / 1e9 / wall) for wall, calls, cpu in pairs if calls > 0)[-self.BEST:]
        if not pairs:
            raise RuntimeError(f"{' '.join(command)} got no time from the machine.")
        self.rate = statistics.fmean(rate for rate, _ in pairs)
        self.cpu_per_wall = statistics.fmean(cpu for _, cpu in pairs)

    @staticmethod
    def look(counter):
        calls, cpu = struct.unpack("<QQ", counter.read_bytes()[:16].ljust(16, b"\0"))
        return time.monotonic(), calls, cpu


# ---- the rest of the machine ----

class Others:
    """How many cores were used by others between its making and busy(). The workloads' own time counts as soon as they have ended."""

    def __init__(self):
        self.wall, self.busy, self.own = time.monotonic(), self._busy(), self._own()

    @staticmethod
    def _busy():
        with open("/proc/stat", encoding="ascii") as file:
            fields = [int(word) for word in file.readline().split()[1:]]
        idle = fields[3] + fields[4]
        return (sum(fields[:8]) - idle) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def _own():
        total = 0.0
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
            used = resource.getrusage(who)
            total += used.ru_utime + used.ru_stime
        return total

    def cores(self):
        wall = time.monotonic() - self.wall
        return max(0.0, (self._busy() - self.busy - (self._own() - self.own)) / wall) if wall > 0 else 0.0
