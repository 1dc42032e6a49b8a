#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Case A13: what rowprof says and does when it is refused. Under seccomp, with capabilities dropped, as an ordinary user, for pids that are not there."""
import os
import shutil
import subprocess

import harness

NOBODY = 65534


def capsh():
    return None if shutil.which("capsh") else "capsh is not here"


def become_nobody():
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


class Permissions(harness.Case):
    def run_under(self, words, *args, seconds=3, **options):
        """rowprof with calls refused by a seccomp filter."""
        # In a build with sanitizers, looking for leaks needs the ptrace that is refused here.
        options["env"] = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
        process = subprocess.run([self.build("no_perf"), *words, "--", harness.ROWPROF, "--seconds", str(seconds), *map(str, args)], stdin=subprocess.DEVNULL,
                                 capture_output=True, text=True, timeout=120, **options)
        return process

    def assert_words(self, text, *words):
        flat = " ".join(text.split())
        for word in words:
            self.assertIn(word, flat)
        self.assertNotIn("sudo", flat)

    @harness.needs(harness.rowprof_there, harness.ptrace)
    def test_a_container_without_perf_events_falls_to_ptrace(self):
        target = self.start_rowload("mix")
        for errno in ("EPERM", "ENOSYS"):
            run = self.run_under([f"perf={errno}"], "--pid", target.pid)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assert_words(run.stdout, "ptrace", "perf_event_open", errno, "seccomp", "rw_mix_a")

    @harness.needs(harness.rowprof_there, harness.ptrace)
    def test_perf_alone_says_what_is_missing(self):
        target = self.start_rowload("mix")
        run = self.run_under(["perf=EPERM"], "--pid", target.pid, "--sampler", "perf")
        self.assertEqual(run.returncode, 3)
        self.assert_words(run.stderr, "perf_event_open", "EPERM", "seccomp", "Seccomp: 2", str(target.pid))

    @harness.needs(harness.rowprof_there)
    def test_without_both_it_says_so(self):
        target = self.start_rowload("mix")
        for other in ("ptrace=EPERM", "vm=EPERM"):
            run = self.run_under(["perf=EPERM", other], "--pid", target.pid)
            self.assertEqual(run.returncode, 3)
            self.assert_words(run.stderr, "perf_event_open", "EPERM", "seccomp", "process_vm_readv")
        self.assertEqual(run.stdout, "")

    @harness.needs(harness.rowprof_there)
    def test_no_such_process(self):
        for sampler in ("auto", "perf", "ptrace"):
            run = harness.rowprof("--pid", 2 ** 22 - 3, "--sampler", sampler)
            self.assertEqual(run.status, 4)
            self.assert_words(run.stderr, "no process", str(2 ** 22 - 3))

    @harness.needs(harness.rowprof_there, harness.root)
    def test_nobody_against_root(self):
        target = self.start_rowload("mix")
        os.chmod(self.scratch, 0o755)
        program = self.public_copy()
        for sampler in ("auto", "perf", "ptrace"):
            run = subprocess.run([program, "--pid", str(target.pid), "--seconds", "1", "--sampler", sampler], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                 timeout=60, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")
            self.assertEqual(run.returncode, 3, run.stderr)
            self.assert_words(run.stderr, "uid 0", str(NOBODY), "refused", "EPERM" if sampler == "ptrace" else "EACCES")
            self.assertLess(len(run.stderr), 300)

    def public_copy(self):
        """rowprof where anybody may run it."""
        program = os.path.join(self.scratch, "rowprof")
        shutil.copy(harness.ROWPROF, program)
        os.chmod(self.scratch, 0o755)
        os.chmod(program, 0o755)
        return program

    @harness.needs(harness.rowprof_there, harness.root, capsh)
    def test_root_without_capabilities_is_not_told_to_become_root(self):
        self.public_copy()
        workload = os.path.join(self.scratch, "rowload")
        shutil.copy(harness.ROWLOAD, workload)
        target = self.start(workload, "mix", cwd="/", preexec=become_nobody)
        for sampler in ("perf", "ptrace", "auto"):
            run = subprocess.run(["capsh", "--drop=cap_sys_ptrace,cap_perfmon,cap_sys_admin", "--", "-c",
                                  f"exec {harness.ROWPROF} --pid {target.pid} --seconds 1 --sampler {sampler}"], stdin=subprocess.DEVNULL, capture_output=True,
                                 text=True, timeout=60)
            self.assertEqual(run.returncode, 3, run.stderr)
            self.assert_words(run.stderr, "refused")
            self.assertNotIn("as root", run.stderr)


class AgreementAcrossPermissions(harness.Case):
    """User-space shares are the same as root, as an ordinary user at paranoid 2, and with perf_event_open refused."""

    @harness.needs(harness.rowprof_there, harness.perf_events, harness.ptrace, harness.root)
    def test_mix(self):
        program = Permissions.public_copy(self)
        workload = os.path.join(self.scratch, "rowload")
        shutil.copy(harness.ROWLOAD, workload)
        os.chmod(workload, 0o755)
        refuse = os.path.join(self.scratch, "no_perf")
        shutil.copy(self.build("no_perf"), refuse)
        target = self.start(workload, "mix", cwd="/", preexec=become_nobody)
        args = ["--pid", str(target.pid), "--seconds", "5", "--no-kernel", "--format", "json"]
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        commands = [([program, *args], {}), ([program, *args], user), ([refuse, "perf=EPERM", "--", program, *args], user)]
        started = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/", **options)
                   for command, options in commands]
        profiles = []
        for process in started:
            out, err = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, err)
            profiles.append(harness.Profile(harness.Run(0, out, err.decode(), harness.resource.getrusage(harness.resource.RUSAGE_CHILDREN))))
        self.assertEqual([profile.data["run"]["clock"].startswith("cpu-clock") for profile in profiles], [True, True, False])
        for name in ("rw_mix_a", "rw_mix_b", "rw_mix_c"):
            shares = [profile.self_share(name) for profile in profiles]
            widths = [3 * 1.96 * (share * (1 - share) / profile.samples) ** 0.5 for share, profile in zip(shares, profiles)]
            self.assertLessEqual(max(shares) - min(shares), max(widths) * 2, f"{name}: {shares}")


if __name__ == "__main__":
    harness.main()
