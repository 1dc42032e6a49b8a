#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Field cases about the command itself: permission explained (A13), runs that end when they should (A14); launching, interrupting, keeping.

The trap is time: nothing here says how long a thing took beyond what a deadline means, and a busy machine makes everything late.
"""
import json
import os
import pty
import re
import resource
import signal
import stat
import subprocess
import time

import harness

NOBODY = 65534
BUSY = "import sys,os\nprint('READY pid=%d' % os.getpid(), file=sys.stderr, flush=True)\nwhile True: sum(range(1000))\n"


def state(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def as_nobody(argv):
    os.chmod(harness.ROWPROF, os.stat(harness.ROWPROF).st_mode | stat.S_IROTH | stat.S_IXOTH)
    return subprocess.run(["/usr/bin/setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *map(str, argv)], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=100, check=False)


def reachable_by_nobody():
    """The build folder may stand below one that only root enters."""
    return None if as_nobody([harness.ROWPROF, "--version"]).returncode == 0 else "the program cannot be reached by an ordinary user"


class CaseA13Permission(harness.Case):
    def start_busy(self):
        return self.start("/usr/bin/python3", "-c", BUSY)

    @harness.needs(harness.root, reachable_by_nobody)
    def test_foreign_process_names_call_errno_and_remedy(self):
        run = as_nobody([harness.ROWPROF, "--pid", self.start_busy().pid, "-d", "0.2"])
        self.assertEqual(run.returncode, 3, run.stderr)
        self.assertEqual(run.stdout, "")
        self.assertRegex(run.stderr, r"perf_event_open|map_files|/proc/\d+")
        self.assertRegex(run.stderr, r"Operation not permitted|Permission denied|EPERM|EACCES")

    @harness.needs(harness.root, reachable_by_nobody, harness.perf_events)
    def test_own_process_works_without_kernel(self):
        script = f"python3 -c 'while True: sum(range(1000))' & pid=$!; {harness.ROWPROF} --pid $pid -d 1 --format json; status=$?; kill $pid; exit $status"
        run = as_nobody(["/bin/sh", "-c", script])
        if run.returncode == 3 and re.search(r"perf_event_paranoid (is|=) ?[34]", run.stderr):
            self.skipTest("perf_event_paranoid keeps ordinary users out altogether")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertGreater(json.loads(run.stdout)["quality"]["samples"], 0)

    @harness.needs(harness.root)
    def test_root_is_never_told_to_use_sudo(self):
        caps = "-sys_ptrace,-perfmon,-sys_admin"
        run = subprocess.run(["/usr/bin/setpriv", f"--bounding-set={caps}", f"--inh-caps={caps}", harness.ROWPROF, "--pid", str(self.start_busy().pid), "-d", "0.3"],
                             capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=100, check=False)
        self.assertIn(run.returncode, (0, 3), run.stderr)
        self.assertNotIn("sudo", run.stderr)

    def test_no_such_process_is_another_matter(self):
        run = harness.rowprof("--pid", 4194305, "-d", 1)
        self.assertEqual(run.status, 4)
        self.assertIn("no process 4194305", run.stderr)

    @harness.needs(harness.root, reachable_by_nobody)
    def test_a_file_that_may_not_be_read_is_another_matter(self):
        os.chmod(self.scratch, 0o755)
        path = os.path.join(self.scratch, "mine.yaml")
        with open(path, "w", encoding="ascii"):
            os.chmod(path, 0)
        for words in (["rules", "check", path], ["report", path], ["bench", "--read", path]):
            run = as_nobody([harness.ROWPROF, *words])
            self.assertEqual(run.returncode, 1, run.stderr)
            self.assertIn("Permission denied", run.stderr)

    def test_no_descriptors_left_is_another_matter_too(self):
        target = self.start_busy()
        for limit in range(5, 15):
            run = subprocess.run([harness.ROWPROF, "-p", str(target.pid), "-d", "0.1"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=100,
                                 check=False, preexec_fn=lambda n=limit: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
            if run.returncode not in (0, 5):
                self.assertEqual(run.returncode, 1, (limit, run.stderr))
                self.assertIn("ulimit -n", run.stderr)


class Threads(harness.Case):
    @harness.needs(harness.perf_events)
    def test_a_name_that_no_thread_has_yet_is_told_at_the_start(self):
        target = self.start("/usr/bin/python3", "-c", BUSY)
        process = harness.rowprof_start("-p", target.pid, "-d", "30", "-t", "pythn3")
        self.addCleanup(process.kill)
        self.assertEqual(process.stderr.readline().decode(), f"rowprof: no thread of process {target.pid} is called pythn3 now; there is only python3 ({target.pid}); "
                                                    "recording all the same, as one may come yet\n")
        harness.await_sampling(process)
        run = harness.rowprof_stop(process)
        self.assertEqual(run.status, 1)
        self.assertIn("no thread has the name or tid pythn3", run.stderr)
        self.assertIn("on-CPU samples", run.stdout)


class CaseA14Deadline(harness.Case):
    @harness.needs(harness.perf_events)
    def test_the_deadline_ends_the_run_and_not_the_target(self):
        target = self.start("/usr/bin/python3", "-c", BUSY)
        for seconds, command in (("0.5", ["locks"]), ("1", [])):
            out = os.path.join(self.scratch, f"p{seconds}.rowprof")
            shown = self.rowprof_ok(*command, "-p", target.pid, "-d", seconds, "-o", out).stdout
            self.assertTrue(shown, "only `record` keeps and does not show")
            self.rowprof_ok("report", out)
            self.assertIn(state(target.pid), "RS")

    @harness.needs(harness.perf_events)
    def test_a_target_that_waits_gives_a_file_and_status_5(self):
        target = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.addCleanup(target.kill)
        out = os.path.join(self.scratch, "idle.rowprof")
        run = harness.rowprof("-p", target.pid, "-d", "0.5", "-o", out)
        self.assertEqual(run.status, 5, run.stderr)
        self.assertIn("no thread of the target ran", run.stderr)
        self.assertNotRegex(run.stdout, r"(?i)\bnan\b|inf %")
        self.assertEqual(harness.rowprof("report", out).status, 5)
        self.assertEqual(state(target.pid), "S")
        target.stdin.close()
        target.wait()

    @harness.needs(harness.perf_events)
    def test_a_stopped_target_stays_stopped(self):
        target = self.start("/usr/bin/python3", "-c", BUSY)
        os.kill(target.pid, signal.SIGSTOP)
        for _ in range(1000):
            if state(target.pid) == "T":
                break
            time.sleep(0.01)
        run = harness.rowprof("-p", target.pid, "-d", "0.5")
        self.assertIn(run.status, (0, 5), run.stderr)
        self.assertEqual(state(target.pid), "T")
        os.kill(target.pid, signal.SIGCONT)


class Interrupting(harness.Case):
    def begin(self, **options):
        """A rowprof that has seen something, and where it will keep its profile."""
        target = self.start("/usr/bin/python3", "-c", BUSY)
        out = os.path.join(self.scratch, f"p{target.pid}.rowprof")
        process = harness.rowprof_start("-p", target.pid, "-d", "100", "-o", out, "--format", "json", **options)
        harness.await_sampling(process)
        harness.let_run(target.pid, 0.2)
        return process, out

    @harness.needs(harness.perf_events)
    def test_the_first_signal_reports(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process, out = self.begin()
            process.send_signal(number)
            run = harness.rowprof_wait(process)
            self.assertEqual(run.status, 0, run.stderr)
            self.assertGreater(json.loads(run.stdout)["quality"]["samples"], 0)
            self.assertTrue(os.path.exists(out))

    @harness.needs(harness.perf_events)
    def test_the_second_signal_ends_it_at_once(self):
        """While it cannot go on: nobody reads what it prints, and the pipe is full."""
        read, write = os.pipe()
        self.addCleanup(os.close, read)
        os.set_blocking(write, False)
        try:
            while True:
                os.write(write, bytes(65536))
        except BlockingIOError:
            os.set_blocking(write, True)
        process, out = self.begin(stdout=write, stderr=subprocess.DEVNULL)
        os.close(write)
        process.send_signal(signal.SIGINT)
        harness.until(lambda: harness.waits_in(process.pid, "1 0x1"), "rowprof prints", process)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), -signal.SIGINT)
        self.rowprof_ok("report", out)  # which the first one had it keep

    @harness.needs(harness.perf_events)
    def test_an_unknown_thread_costs_no_recording(self):
        target = self.start("/usr/bin/python3", "-c", BUSY)
        run = harness.rowprof("-p", target.pid, "-d", "0.5", "-t", "nosuch")
        self.assertEqual(run.status, 1)
        self.assertIn("nosuch", run.stderr)
        self.assertIn("on-CPU sample", run.stdout)


class Terminal(harness.Case):
    """Colours and progress are for eyes only."""

    def shown(self, stream, *args, **environment):
        """What comes out of rowprof at `stream`, which is a terminal."""
        master, slave = pty.openpty()
        other = {"stdout": "stderr", "stderr": "stdout"}[stream]
        env = {**{key: value for key, value in os.environ.items() if key != "NO_COLOR"}, "TERM": "xterm", **environment}
        process = harness.rowprof_start(*args, env=env, **{stream: slave, other: subprocess.DEVNULL})
        os.close(slave)
        pieces = []
        with open(master, "rb", buffering=0) as file:
            try:
                while piece := file.read(65536):
                    pieces.append(piece)
            except OSError:
                pass  # so a terminal says that nobody has it open any more
        self.assertEqual(process.wait(timeout=60), 0)
        return b"".join(pieces).decode().replace("\r\n", "\n")

    @harness.needs(harness.perf_events)
    def test_progress_and_colours(self):
        pid = self.start("/usr/bin/python3", "-c", BUSY).pid
        out = os.path.join(self.scratch, "p.rowprof")
        record = ("record", "--force", "-p", pid, "-d", "0.3", "-o", out)
        said = self.shown("stderr", *record)
        self.assertRegex(said, r"\r\x1b\[K[\d.]+ of 0\.3 s +\d+ samples?  Ctrl-C ends early and reports\r\x1b\[K")
        self.assertRegex(said, r"\r\x1b\[Krowprof: the profile is kept in [^\n]+\n\Z")
        self.assertEqual(self.shown("stderr", *record, "-q"), "")
        self.assertNotRegex(self.rowprof_ok(*record).stderr, r"[\r\x1b]")
        plain = self.rowprof_ok("report", out).stdout
        self.assertNotIn("\x1b", plain)
        for wanted, args, environment in ((True, (), {}), (False, (), {"NO_COLOR": "1"}), (True, (), {"NO_COLOR": ""}), (False, (), {"TERM": "dumb"}),
                                          (False, ("--color", "never"), {}), (True, ("--color", "always"), {"NO_COLOR": "1"})):
            with self.subTest(args=args, environment=environment):
                seen = self.shown("stdout", "report", out, *args, **environment)
                self.assertEqual("\x1b[" in seen, wanted)
                self.assertEqual(re.sub(r"\x1b\[[\d;]*m", "", seen), plain)
        self.assertIn("\x1b[", self.rowprof_ok("report", out, "--color", "always").stdout)


class Launching(harness.Case):
    @harness.needs(harness.perf_events)
    def test_the_result_is_clean_and_the_child_runs_on(self):
        script = "import os,sys,time\nprint('child says', os.getpid(), flush=True)\nend = time.monotonic() + 60\nwhile time.monotonic() < end: sum(range(1000))\n"
        errors = open(os.path.join(self.scratch, "err"), "w+b")
        process = harness.rowprof_start("-d", "1", "--format", "json", "--", "/usr/bin/python3", "-c", script, stderr=errors)
        stdout = process.stdout.read()
        process.wait()
        process.stdout.close()
        errors.seek(0)
        said = errors.read().decode()
        errors.close()
        self.assertEqual(process.returncode, 0, said)
        report = json.loads(stdout)
        child = int(re.search(r"child says (\d+)", said).group(1))
        self.addCleanup(os.kill, child, signal.SIGKILL)
        self.assertEqual(report["targets"][0]["pid"], child)
        self.assertGreater(report["quality"]["samples"], 0)
        self.assertIn("python", report["targets"][0]["command"])
        self.assertNotEqual(state(child), "Z")

    @harness.needs(harness.perf_events)
    def test_ready_watches_the_process_it_names(self):
        script = "sleep 0.3; echo noise >&2; exec /usr/bin/python3 -c \"$1\""
        run = harness.rowprof("--ready", "--end-child", "-d", "1", "--format", "json", "--", "/bin/sh", "-c", script, "sh", BUSY)
        self.assertEqual(run.status, 0, run.stderr)
        self.assertIn("noise\n", run.stderr)
        pid = int(re.search(r"READY pid=(\d+)", run.stderr).group(1))
        report = json.loads(run.stdout)
        self.assertEqual(report["targets"][0]["pid"], pid)
        self.assertGreater(report["quality"]["samples"], 0)
        self.assertFalse(os.path.exists(f"/proc/{pid}") and state(pid) not in "ZX")

    @harness.needs(harness.perf_events)
    def test_a_child_outlives_us_and_may_still_speak(self):
        """And whoever reads our standard output sees its end while the child still runs."""
        survived, go, errors = (os.path.join(self.scratch, name) for name in ("survived", "go", "err"))
        script = ("import os,sys,time\nprint('READY pid=%d' % os.getpid(), file=sys.stderr, flush=True)\n"
                  f"while not os.path.exists({go!r}): sum(range(1000))\nfor i in range(3):\n  print('late word', file=sys.stderr, flush=True)\n"
                  f"  time.sleep(0.05)\nopen({survived!r}, 'w').close()\n")
        with open(errors, "w+b") as file:
            process = harness.rowprof_start("--ready", "-d", "0.5", "--no-tree", "--", "/usr/bin/python3", "-c", script, stderr=file)
            try:
                process.communicate(timeout=60)
            finally:
                open(go, "wb").close()
            self.assertEqual(process.returncode, 0)
            for _ in range(1000):
                if os.path.exists(survived):
                    break
                time.sleep(0.02)
            self.assertTrue(os.path.exists(survived), "the child died when rowprof ended")
            file.seek(0)
            self.assertEqual(file.read().count(b"late word"), 3)

    def test_a_child_that_ends_early_is_an_error(self):
        run = harness.rowprof("--ready", "-d", "1", "--", "/bin/sh", "-c", "echo no >&2; exit 3")
        self.assertEqual(run.status, 1)
        self.assertIn("ended with status 3 before", run.stderr)
        self.assertEqual(run.stdout, "")

    @harness.needs(harness.perf_events)
    def test_a_child_that_ends_in_mid_run_is_reported(self):
        run = harness.rowprof("-d", "100", "--format", "json", "--", "/usr/bin/python3", "-c", "for i in range(30000): sum(range(1000))")
        self.assertEqual(run.status, 0, run.stderr)
        report = json.loads(run.stdout)
        self.assertGreater(report["quality"]["samples"], 0)
        self.assertLess(report["run"]["seconds"], 90)


class Keeping(harness.Case):
    @harness.needs(harness.perf_events)
    def test_nothing_is_overwritten_and_nothing_lost(self):
        target = self.start("/usr/bin/python3", "-c", BUSY)
        there = os.path.join(self.scratch, "there.rowprof")
        with open(there, "w", encoding="ascii") as file:
            file.write("mine")
        run = harness.rowprof("record", "-p", target.pid, "-d", "100", "-o", there)
        self.assertEqual(run.status, 1)
        self.assertIn("--force", run.stderr)
        with open(there, encoding="ascii") as file:
            self.assertEqual(file.read(), "mine")
        self.rowprof_ok("record", "-p", target.pid, "-d", "0.3", "-o", there, "--force")
        self.rowprof_ok("report", there)

    @harness.needs(harness.perf_events)
    def test_a_limit_on_file_sizes_costs_no_recording(self):
        """The profile cannot be kept anywhere, but the run is reported; the command is launched as if there were no rowprof."""
        out = os.path.join(self.scratch, "limited.rowprof")
        work = "sed -n 's/^SigIgn:[^0-9a-f]*//p' /proc/self/status; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
        run = subprocess.run([harness.ROWPROF, "-d", "20", "-o", out, "--", "/bin/sh", "-c", work],
                             capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=100, check=False,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10240, 10240)))
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertRegex(run.stderr, "cannot write the profile .*limited.rowprof")
        self.assertIn("on-CPU samples", run.stdout)
        self.assertEqual(os.listdir(self.scratch), [])
        ignored = int(re.search("^[0-9a-f]{16}$", run.stderr, re.M).group(), 16)
        self.assertFalse(ignored & 1 << (signal.SIGXFSZ - 1))

    @harness.needs(harness.perf_events)
    def test_a_folder_that_vanishes_costs_no_recording(self):
        target = self.start("/usr/bin/python3", "-c", BUSY)
        folder = os.path.join(self.scratch, "gone")
        os.mkdir(folder)
        environment = {**os.environ, "TMPDIR": self.scratch}
        process = harness.rowprof_start("-p", target.pid, "-d", "100", "-o", os.path.join(folder, "p.rowprof"), env=environment)
        harness.await_sampling(process)
        os.rmdir(folder)
        harness.let_run(target.pid, 0.2)
        run = harness.rowprof_stop(process)
        self.assertEqual(run.status, 1)
        self.assertIn("on-CPU samples", run.stdout)
        kept = re.search(r"the profile was kept in (\S+) instead", run.stderr)
        self.assertTrue(kept, run.stderr)
        self.rowprof_ok("report", kept.group(1))

    @harness.needs(harness.perf_events)
    def test_a_saved_profile_gives_the_same_report(self):
        target = self.start("/usr/bin/python3", "-c", BUSY)
        out = os.path.join(self.scratch, "p.rowprof")
        first = self.rowprof_ok("-p", target.pid, "-d", "1", "-o", out, "--format", "json")
        self.assertEqual(json.loads(self.rowprof_ok("report", out, "--format", "json").stdout), json.loads(first.stdout))


if __name__ == "__main__":
    harness.main()
