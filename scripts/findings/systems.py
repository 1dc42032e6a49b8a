# SPDX-License-Identifier: MIT
"""Findings about whole systems: the parallelism benchmark, the event loop beside a thread pool, the version check of a cache."""
import functools
import tempfile

from .judging import BUSY_CORES, near, outcome, percent, rank_correlation
from .measuring import Others, Tools, Windows, median, mono, node, profile, python_parallel, ratio, rounds, rowload, run

# ---- the parallelism benchmark: QPS as a share of Python's ----

PUBLISHED_CLIS = {"cli-2": 0.699, "cli-5": 0.668, "cli-6": 0.655, "cli-4": 0.627, "cli-3": 0.563}
# Processes, threads; 0 is none. Each program does the same number of queries in all.
SHAPES = {"cli": (2, 16), "cli-2": (2, 3), "cli-3": (2, 3), "cli-4": (2, 0), "cli-5": (2, 0), "cli-6": (0, 32)}
SHORT_QUERIES, LONG_QUERIES = 5600, 40000
CLI_POINTS = 0.15  # a program within so many points of its published share of Python's rate has the same size


def parallel(name, queries):
    if name == "python":
        return python_parallel("--pin-cpus", "--queries", max(1, queries // 32))
    processes, threads = SHAPES[name]
    return node("parallel.mjs", "--cli", name, "--pin-cpus", "--queries", max(1, queries // (max(1, processes) * max(1, threads))),
                *library_word(name))


def library_word(name):
    """Named, so that a binding that is not here is missed before anything starts."""
    return ("--library", "sqlite3" if name in ("cli-3", "cli-4") else "better-sqlite3")


@functools.lru_cache(maxsize=None)
def clis(queries, count):
    """Rates of all programs, and their CPU time per query: {name: [(qps, cpu ns per query)]} and the cores that others used."""
    def measure(name):
        output = run(parallel(name, queries))
        return output.effective_qps(), output.words("RATE")["ns_per_call"]
    others = Others()
    found = rounds(("python", *SHAPES), measure, count)
    return found, others.cores()


class Ranking:
    """Every program's rate as a share of Python's, by wall time as published and by CPU time, which other programs do not change.

    The programs are bound by the processor, so on an idle machine the two agree but for the time in which a start uses one core only.
    """

    def __init__(self, queries, count):
        found, self.busy = clis(queries, count)
        self.queries = queries
        self.qps = {name: [value[0] for value in values] for name, values in found.items()}
        self.cost = {name: [value[1] for value in values] for name, values in found.items()}
        self.wall = {name: ratio(self.qps, name, "python")[0] for name in SHAPES}
        self.cpu = {name: ratio(self.cost, "python", name)[0] for name in SHAPES}
        self.crowded = self.busy > BUSY_CORES
        self.relative = self.cpu if self.crowded else self.wall

    def figures(self):
        return ", ".join(f"{name} {100 * self.relative[name]:.0f} %" for name in PUBLISHED_CLIS) + (" (by CPU time)" if self.crowded else "")

    def details(self):
        lines = [f"python: {median(self.qps['python']):.0f} queries/s, CPU {median(self.cost['python']) / 1000:.0f} us per query"]
        for name in SHAPES:
            published = percent(PUBLISHED_CLIS[name]) if name in PUBLISHED_CLIS else "-"
            lines.append(f"{name}: {median(self.qps[name]):.0f} queries/s, CPU {median(self.cost[name]) / 1000:.0f} us per query; of Python's rate "
                         f"{percent(self.wall[name])} by wall time, {percent(self.cpu[name])} by CPU time, published {published}")
        return [*lines, f"{self.queries} queries in all; others used {self.busy:.1f} cores"]

    def behind(self):
        return [name for name in PUBLISHED_CLIS if self.relative[name] < 1]

    def off(self):
        return [name for name, share in PUBLISHED_CLIS.items() if abs(self.relative[name] - share) > CLI_POINTS]


def crowd_reason(ranking):
    return f"; others used {ranking.busy:.1f} cores, so CPU time is compared instead of wall time" if ranking.crowded else ""


def ranking_short():
    here = Ranking(SHORT_QUERIES, Tools.rounds)
    agreement = rank_correlation(PUBLISHED_CLIS, {name: here.relative[name] for name in PUBLISHED_CLIS})
    ahead = [name for name in PUBLISHED_CLIS if name not in here.behind()]
    return outcome(here.figures(), not ahead, not here.off() and agreement > 0, f"{', '.join(ahead)} ahead of Python{crowd_reason(here)}",
                   f"Python is ahead of all, at other distances ({', '.join(here.off())}; rank correlation of the rest {agreement:.2f}): so short a run is "
                   f"mostly the start of processes and threads{crowd_reason(here)}", here.details())


def ranking_long():
    """The claim behind the ranking is that the language costs the difference; a longer run tells start-up and language apart."""
    short = Ranking(SHORT_QUERIES, Tools.rounds)
    here = Ranking(LONG_QUERIES * (4 if Tools.scale > 1 else 1), max(2, Tools.rounds - 1))
    closer = [name for name in PUBLISHED_CLIS if here.cpu[name] > short.cpu[name]]
    reason = (f"{', '.join(closer) or 'none'} come closer to Python than in the short run: the published gap is partly start-up; all of them spend "
              f"most of their time scanning, for want of an index{crowd_reason(here)}")
    ahead = [name for name in PUBLISHED_CLIS if name not in here.behind()]
    return outcome(here.figures(), not ahead, not here.off(), f"{', '.join(ahead)} not behind Python; {reason}", reason,
                   here.details() + [f"CPU time compared, short -> long: " + ", ".join(
                       f"{name} {percent(short.cpu[name])} -> {percent(here.cpu[name])}" for name in PUBLISHED_CLIS)])


def scan_is_sqlite():
    """What the benchmark measures: the engine reading every row, whatever the language."""
    seen = profile(python_parallel("--threads", 2, "--steady", 0), 3 * Tools.scale)
    inside = seen.share("sqlite.vdbe", "sqlite.capi", "pthread.mutex")
    indexed = profile(python_parallel("--threads", 2, "--steady", 0, "--index"), 3 * Tools.scale)
    return outcome(f"{percent(inside)} in SQLite (VDBE and btree {percent(seen.share('sqlite.vdbe'))})", inside > 0.75, near(inside, 0.895, share=True),
                   "most of the time is spent elsewhere", "", [f"with an index on x: {percent(indexed.share('sqlite.vdbe'))} in VDBE and btree"])


# ---- the event loop ----

EAGER_SPEED_UP = 1488 / 856
LEAST_GAIN = 1.02  # below it the best windows of two equal programs may differ


def loop_once(command):
    """One run of an event loop: its rate and overlap at its quietest, and its loop's use over all."""
    with tempfile.TemporaryDirectory(prefix="rowprof-reproduce-") as folder:
        windows = Windows(command, folder)
    words = windows.output.words("LOOP")
    rate = windows.output.words("RATE")
    loop = rate["ns_per_call"] * words["loop_cpu_per_wall"] / words["cpu_per_wall"]
    return {"rate": windows.rate, "cpu_per_wall": windows.cpu_per_wall, "elu": words["elu"], "mean": words["queries"] / rate["secs"],
            "loop_ns": loop, "pool_ns": rate["ns_per_call"] - loop}


def loops(commands, count):
    """All variants in turn: {variant: {figure: [values]}}, and the cores that others used."""
    others = Others()
    found = rounds(tuple(commands), lambda name: loop_once(commands[name]), count)
    return {name: {key: [one[key] for one in runs] for key in runs[0]} for name, runs in found.items()}, others.cores()


def loop_details(found, busy):
    return [f"{name}: {max(one['rate']):.0f} queries/s at its quietest, {median(one['mean']):.0f} in the median run; process CPU per wall "
            f"{median(one['cpu_per_wall']):.2f} at its quietest; loop in use {median(one['elu']):.2f}" for name, one in found.items()] + [
                f"others used {busy:.1f} cores"]


def eager(commands, count):
    """Judges eager start by the quietest windows of each variant: overlap needs a second core, which others may be using."""
    found, busy = loops(commands, count)
    late, early = found.values()
    speed = max(early["rate"]) / max(late["rate"])
    overlap, more, total = ratio({"late": late["cpu_per_wall"], "early": early["cpu_per_wall"]}, "early", "late")
    elu = [median(one["elu"]) for one in (late, early)]
    here = f"{speed:.2f}x faster at its quietest (median run {median(early['mean']) / median(late['mean']):.2f}x), loop in use {elu[0]:.2f} -> {elu[1]:.2f}"
    crowd = f"; others used {busy:.1f} of {Tools.cores} cores, and without a second core nothing overlaps" if busy > BUSY_CORES else ""
    loop_ns, pool_ns = median(late["loop_ns"]), median(late["pool_ns"])
    model = (f"by CPU time a result takes the loop {loop_ns / 1000:.0f} us and a query the pool {pool_ns / 1000:.0f} us, which could overlap to "
             f"{(loop_ns + pool_ns) / max(loop_ns, pool_ns):.2f}x")
    return outcome(here, speed > LEAST_GAIN and more * 2 > total, near(speed, EAGER_SPEED_UP) and elu[1] > elu[0],
                   f"no faster in the quietest moments, or more CPU per wall time only in {more} of {total} rounds; {model}{crowd}", model + crowd,
                   [*loop_details(found, busy), f"CPU per wall time {overlap:.2f}x, more in {more} of {total} rounds"])


def eager_c():
    return eager({f"eager {e}": rowload("evloop", "--eager", e, "--secs", 1.5 * Tools.scale) for e in (0, 1)}, Tools.rounds + 2)


def eager_npm():
    return eager({name: node("loop.mjs", "--library", name, "--seconds", 1.5 * Tools.scale) for name in ("sqlite3", "sqlite3-eager")}, Tools.rounds + 2)


def statements_npm():
    """Without the patch, more statements overlap too, until the pool's threads wait for the connection's mutex."""
    found, busy = loops({n: node("loop.mjs", "--statements", n, "--seconds", Tools.scale) for n in (1, 2, 4)}, Tools.rounds + 1)
    speed = {n: max(found[n]["rate"]) / max(found[1]["rate"]) for n in (2, 4)}
    elu = {n: median(found[n]["elu"]) for n in found}
    crowd = f"; others used {busy:.1f} of {Tools.cores} cores" if busy > BUSY_CORES else ""
    return outcome(f"2 statements {speed[2]:.2f}x, 4 statements {speed[4]:.2f}x at their quietest; loop in use {elu[1]:.2f}, {elu[2]:.2f}, {elu[4]:.2f}",
                   max(speed.values()) > LEAST_GAIN, near(max(speed.values()), EAGER_SPEED_UP) and elu[4] > elu[1], f"more statements are no faster{crowd}",
                   f"less than eager start was published to give{crowd}", loop_details(found, busy))


# ---- the version check ----

PUBLISHED_CHECK_NS = {"prepared": 3500, "header": 70}
PUBLISHED_CHECK_SHARE = (9856 / 28000, 1666 / 28000)
REQUEST_WORK_NS = 14000  # so that five pragma checks are about the published third of a request


def check_ns(command):
    words = run(command).words("CHECKS")
    if words["changes"] != words["commits"]:
        raise RuntimeError(f"{' '.join(command)} saw {words['changes']:.0f} changes of {words['commits']:.0f} commits")
    return words["cpu_ns_per_check"]


@functools.lru_cache(maxsize=None)
def ladder_c():
    modes = ("reprepare", "prepared", "header", "header-nolock")
    found = rounds(modes, lambda mode: check_ns(rowload("verchk", "--mode", mode, "--secs", 0.5 * Tools.scale)))
    four = rounds(("prepared", "pool"), lambda mode: check_ns(rowload("verchk", "--mode", mode, "--threads", 4, "--secs", 0.5 * Tools.scale)))
    return {mode: median(values) for mode, values in found.items()}, {mode: median(values) for mode, values in four.items()}


def ladder():
    one, four = ladder_c()
    steps = [one[mode] for mode in ("reprepare", "prepared", "header")]
    ordered = steps[0] > steps[1] > steps[2] and four["pool"] < four["prepared"]
    return outcome(f"{steps[0]:.0f} > {steps[1]:.0f} > {steps[2]:.0f} ns; four threads {four['prepared']:.0f} > pool {four['pool']:.0f} ns", ordered, None,
                   "the order differs", "rates of a whole server were published, not costs of a check",
                   [f"{mode}, one thread: {ns:.0f} ns" for mode, ns in one.items()] + [f"{mode}, four threads: {ns:.0f} ns" for mode, ns in four.items()])


def ladder_mono():
    modes = ("reprepare", "prepared", "header")
    found = rounds(modes, lambda mode: check_ns(mono("--mode", mode, "--threads", 4, "--seconds", Tools.scale)))
    ns = {mode: median(values) for mode, values in found.items()}
    return outcome(" > ".join(f"{ns[mode]:.0f}" for mode in modes) + " ns", ns["reprepare"] > ns["prepared"] > ns["header"], None, "the order differs",
                   "rates of a whole server were published, not costs of a check")


def header_against_pragma():
    one, _ = ladder_c()
    here, published = one["prepared"] / one["header"], PUBLISHED_CHECK_NS["prepared"] / PUBLISHED_CHECK_NS["header"]
    return outcome(f"{one['prepared']:.0f} -> {one['header']:.0f} ns, {here:.0f}x", here > 3, near(here, published), "the header is not cheaper",
                   "both are cheaper in C than in the published demo", [f"without the lock: {one['header-nolock']:.0f} ns"])


def check_share():
    """The share of on-CPU samples in the check, with work beside it so that the pragma takes about what it took in the server."""
    shares = []
    for mode in ("prepared", "header"):
        seen = profile(rowload("verchk", "--mode", mode, "--work-ns", REQUEST_WORK_NS), 3 * Tools.scale)
        shares.append(1 - seen.total("rw_request_work"))
    return outcome(f"{percent(shares[0])} -> {percent(shares[1])}", shares[1] < shares[0] / 3,
                   near(shares[0], PUBLISHED_CHECK_SHARE[0]) and near(shares[1], PUBLISHED_CHECK_SHARE[1], share=True), "the check does not vanish",
                   "the first share is set by the work put beside it, the second follows", [f"work beside the checks: {REQUEST_WORK_NS} ns per request of five checks"])

