# SPDX-License-Identifier: MIT
"""What the end-to-end tests share: starting targets, running rowprof, reading its JSON, and knowing what this machine can do.

    class CaseA04(harness.Case):
        @harness.needs(harness.perf_events)
        def test_every_stack_reaches_main(self):
            target = self.start(self.build("a04"))
            profile = self.profile(target.pid)
            self.assertGreaterEqual(profile.total("main"), 0.99)

Figures are compared with what the target knows of itself, never with a clock: the machine may be busy. Every target is
ended by the test, dies with it when it is killed, and has its stderr read to the end, so that it cannot block on a pipe.

Environment (set by CTest): ROWPROF and ROWLOAD, the programs; ROWPROF_SOURCE, the source tree.
"""
import ctypes
import functools
import json
import os
import queue
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SOURCE = os.environ.get("ROWPROF_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROWPROF = os.environ.get("ROWPROF", "")
ROWLOAD = os.environ.get("ROWLOAD", "")
READ_MJS = os.path.join(SOURCE, "workloads", "node", "read.mjs")
READ_PY = os.path.join(SOURCE, "workloads", "python", "read.py")

sys.path.insert(0, os.path.join(SOURCE, "tests", "fixtures", "targets"))
import build  # noqa: E402

READY_SECONDS = 120
LEAST_SAMPLES = 500
PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


# ---- what this machine can do: each probe returns None, or the reason why not ----

class _PerfAttr(ctypes.Structure):
    _fields_ = [("type", ctypes.c_uint32), ("size", ctypes.c_uint32), ("config", ctypes.c_uint64),
                ("period", ctypes.c_uint64), ("rest", ctypes.c_uint8 * 104)]


@functools.lru_cache(maxsize=None)
def perf_events():
    """perf_event_open for a software clock on one's own thread, user space only."""
    attr = _PerfAttr(type=1, size=ctypes.sizeof(_PerfAttr), config=0, period=1000000)
    attr.rest[16] = 0x60  # exclude_kernel, exclude_hv
    fd = _libc.syscall(298, ctypes.byref(attr), 0, -1, -1, 0)
    if fd < 0:
        return f"perf_event_open is refused: {os.strerror(ctypes.get_errno())}"
    os.close(fd)
    return None


def ptrace():
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") as file:
            scope = int(file.read())
    except OSError:
        return None  # without Yama there is no such file and no such limit
    return None if scope < 2 or os.geteuid() == 0 else f"ptrace_scope is {scope}"


def root():
    return None if os.geteuid() == 0 else "needs root"


@functools.lru_cache(maxsize=None)
def mount_namespaces():
    done = subprocess.run(["unshare", "-m", "true"], capture_output=True, text=True)
    return None if done.returncode == 0 else f"no mount namespace: {done.stderr.strip()}"


@functools.lru_cache(maxsize=None)
def node24_path():
    done = subprocess.run([os.path.join(SOURCE, "scripts", "runtimes"), "--print", "node24"], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def node24():
    return None if node24_path() else "Node 24 is not here (npm could not fetch it)"


def rowprof_there():
    return None if os.access(ROWPROF, os.X_OK) else "ROWPROF names no program"


def needs(*probes):
    """Skips the test, with the first probe's reason, where the machine lacks something. Evaluated when the test runs."""
    def decorate(test):
        @functools.wraps(test)
        def wrapped(self, *args, **kwargs):
            for probe in probes:
                reason = probe()
                if reason:
                    self.skipTest(reason)
            return test(self, *args, **kwargs)
        return wrapped
    return decorate


# ---- targets ----

class Target:
    """A running process that has said READY. `ready` holds the words of that line, `pid` the pid in it."""

    def __init__(self, argv, env=None, cwd=None, preexec=None):
        def before():
            die_with_parent()
            if preexec:
                preexec()
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, errors="replace", env={**os.environ, **(env or {})}, cwd=cwd,
                                        preexec_fn=before)
        self.out, self.err = [], []
        lines = queue.Queue()
        self._readers = [threading.Thread(target=self._read, args=(stream, kept, lines), daemon=True)
                         for stream, kept in ((self.process.stdout, self.out), (self.process.stderr, self.err))]
        for reader in self._readers:
            reader.start()
        self.ready = self._await_ready(argv, lines)
        self.pid = int(self.ready["pid"])

    @staticmethod
    def _read(stream, kept, lines):
        for line in stream:
            kept.append(line.rstrip("\n"))
            lines.put(kept[-1])
        lines.put(None)

    def _await_ready(self, argv, lines):
        deadline = time.monotonic() + READY_SECONDS
        ended = 0
        while ended < 2:
            try:
                line = lines.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                break
            ended += line is None
            if line and line.startswith("READY "):
                return dict(word.split("=", 1) for word in line.split()[1:] if "=" in word)
        self.process.kill()
        self.process.wait()
        raise AssertionError(f"{argv} did not say READY: {self.err[-5:]}")

    def states(self):
        """The state letter of every thread, R, S, D, T, t..."""
        found = []
        for task in os.listdir(f"/proc/{self.pid}/task"):
            try:
                with open(f"/proc/{self.pid}/task/{task}/stat", encoding="utf-8", errors="replace") as file:
                    found.append(file.read().rpartition(")")[2].split()[0])
            except OSError:
                continue  # that thread is gone
        return found

    def alive(self):
        return self.process.poll() is None

    def stop(self, number=signal.SIGTERM):
        """Ends the target and returns the lines of its stdout."""
        if self.process.poll() is None:
            for pid in {self.pid, self.process.pid}:
                try:
                    os.kill(pid, number)
                except OSError:
                    pass
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for reader, stream in zip(self._readers, (self.process.stdout, self.process.stderr)):
            reader.join(timeout=10)
            if not reader.is_alive():
                stream.close()
        return self.out

    def words(self, kind):
        """The key=value words of the last stdout line that begins with `kind`, numbers where they are numbers."""
        for line in reversed(self.out):
            if line.startswith(kind + " "):
                pairs = (word.split("=", 1) for word in line.split()[1:] if "=" in word)
                return {key: float(value) if re.fullmatch(r"-?[0-9.]+", value) else value for key, value in pairs}
        raise AssertionError(f"no {kind} line in {self.out[-5:]}")


# ---- rowprof ----

class Run:
    """One finished run of rowprof."""

    def __init__(self, status, stdout, stderr, rusage):
        self.status, self.stdout_bytes, self.stderr = status, stdout, stderr
        self.max_rss_mb = rusage.ru_maxrss / 1024.0
        self.cpu_seconds = rusage.ru_utime + rusage.ru_stime

    @property
    def stdout(self):
        return self.stdout_bytes.decode("utf-8", "replace")


def rowprof_start(*args, **options):
    """Starts rowprof; the caller ends it. Its output goes where `options` (of Popen) say, to pipes when they say nothing."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "preexec_fn": die_with_parent, **options}
    return subprocess.Popen([ROWPROF, *map(str, args)], stdin=subprocess.DEVNULL, **options)


def rowprof_wait(process, timeout=120):
    """Waits for a started rowprof whose output goes to pipes, and returns the Run."""
    parts = {process.stdout: [], process.stderr: []}
    open_streams, deadline = set(parts), time.monotonic() + timeout
    while open_streams:
        readable, _, _ = select.select(list(open_streams), [], [], max(0.0, deadline - time.monotonic()))
        if not readable:
            process.kill()
            process.wait()
            raise AssertionError(f"rowprof did not end within {timeout} s: {process.args}")
        for stream in readable:
            data = os.read(stream.fileno(), 1 << 16)
            parts[stream].append(data)
            if not data:
                open_streams.discard(stream)
    _, status, rusage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    process.stderr.close()
    return Run(process.returncode, b"".join(parts[process.stdout]), b"".join(parts[process.stderr]).decode("utf-8", "replace"),
               rusage)


def rowprof(*args, timeout=120, **options):
    return rowprof_wait(rowprof_start(*args, **options), timeout)


def rowprof_stop(process):
    """Ends a started rowprof as Ctrl-C does, so that it reports, and returns the Run."""
    process.send_signal(signal.SIGINT)
    return rowprof_wait(process)


def until(condition, what, process=None):
    """Polls until the condition holds, however busy the machine is; `process` must run meanwhile."""
    deadline = time.monotonic() + READY_SECONDS
    while not condition():
        if time.monotonic() > deadline or (process and process.poll() is not None):
            raise AssertionError(f"it never came that {what}")
        time.sleep(0.002)


def await_sampling(process):
    """Until a started rowprof samples: it has descriptors of perf, or the thread that ptrace needs (which traces nobody between two samples)."""
    def begun():
        try:
            links = [os.readlink(f"/proc/{process.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{process.pid}/fd")]
            return any("perf_event" in link for link in links) or len(os.listdir(f"/proc/{process.pid}/task")) > 1
        except OSError:
            return False  # one was closed meanwhile
    until(begun, "rowprof samples", process)


def waits_in(pid, call):
    """Whether the process waits in a system call: its number and as many arguments as matter, as /proc/PID/syscall has them."""
    with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
        return file.read().startswith(call + " ")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def let_run(pid, seconds):
    """Until `pid` has had so much more CPU time, so that there is something of it to see."""
    end = cpu_seconds(pid) + seconds
    until(lambda: cpu_seconds(pid) >= end, f"{pid} runs")


class Profile:
    """The JSON report. Shares are fractions of all samples in it."""

    def __init__(self, run):
        self.run = run
        self.data = json.loads(run.stdout_bytes)
        self.quality = self.data["quality"]
        self.samples = self.quality["samples"]
        self.functions = self.data.get("functions", [])
        self.categories = {row["name"]: row for row in self.data.get("categories", [])}
        self.notes = json.dumps(self.data.get("notes", []))

    def rows(self, name):
        """Functions of that name: exact, or a compiled regular expression searched in it."""
        fits = name.search if hasattr(name, "search") else lambda symbol: symbol == name
        return [row for row in self.functions if fits(row["symbol"])]

    def names(self):
        return {row["symbol"] for row in self.functions}

    def self_share(self, name):
        return sum(row["self"] for row in self.rows(name)) / max(1, self.samples)

    def total(self, name):
        """The largest inclusive share among the functions of that name (they may stand in one stack together)."""
        return max((row["total"] for row in self.rows(name)), default=0) / max(1, self.samples)

    def complete_share(self):
        return self.quality["complete"] / max(1, self.samples)

    def share(self, category):
        """The share of a category, by name; 0 when it has no row."""
        return self.categories.get(category, {}).get("share", 0.0)

    def tree(self, category):
        """The nodes of the tree of a category (by id), depth first."""
        return next((tree["nodes"] for tree in self.data["tree"] if tree["category"] == category), [])


class Case(unittest.TestCase):
    """A test with a scratch folder, targets that are ended, and profiles that must succeed."""
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        place = os.path.dirname(os.path.abspath(ROWPROF)) if ROWPROF else tempfile.gettempdir()
        cls._builder = build.Builder(os.path.join(place, "e2e-targets"))

    def setUp(self):
        self.scratch = tempfile.mkdtemp(prefix="rowprof-test-")
        self.addCleanup(shutil.rmtree, self.scratch, ignore_errors=True)

    def build(self, name):
        return self._builder.path(name)

    def start(self, *argv, **options):
        target = Target([str(word) for word in argv], **options)
        self.addCleanup(target.stop, signal.SIGKILL)
        return target

    def start_rowload(self, *args):
        return self.start(ROWLOAD, *args)

    def start_node(self, *args):
        # In the scratch folder: Node leaves log files where it runs when it writes a map of its code.
        return self.start(node24_path(), *args, cwd=self.scratch)

    def rowprof_ok(self, *args, timeout=120, **options):
        run = rowprof(*args, timeout=timeout, **options)
        self.assertEqual(run.status, 0, f"rowprof {' '.join(map(str, args))}:\n{run.stderr}\n{run.stdout[-2000:]}")
        return run

    def profile(self, pid, *args, seconds=None, least=None, timeout=120, kernel=False):
        """Profiles `pid` and returns the JSON; the run must succeed and have seen something.

        It takes a second, and where a busy machine gave the target so little of it that there are fewer than `least` samples (500), it is taken again for
        longer; `seconds` alone says how long, whatever comes. Kernel frames are left out (their samples go to the user frame below), unless asked for: on a
        busy machine interrupts take several percent of any program.
        """
        if not kernel:
            args = ("--no-kernel", *args)
        least = least or (1 if seconds else LEAST_SAMPLES)
        for longer in (1, 3, 9):
            run = self.rowprof_ok("--pid", pid, "--seconds", (seconds or 1) * longer, "--format", "json", *args, timeout=timeout)
            profile = Profile(run)
            if profile.samples >= least:
                break
        self.assertGreater(profile.samples, 0)
        return profile

    def write_map(self, pid, text):
        """Writes the JIT map of `pid`, text or bytes, and removes it in the end."""
        path = f"/tmp/perf-{pid}.map"
        self.addCleanup(lambda: os.path.exists(path) and os.remove(path))
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return path


def main():
    """Ends a test file: runs it with names and skip reasons shown; CTest is told 77 when everything was skipped."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    program = unittest.main(module="__main__", verbosity=2, exit=False)
    result = program.result
    if not result.wasSuccessful() or not result.testsRun:
        sys.exit(1)
    sys.exit(77 if len(result.skipped) == result.testsRun else 0)
