#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A C library without debug symbols, as on every machine where nobody installed them: pthread_mutex_unlock is a stub that jumps to an unnamed
function, and malloc's insides are unnamed. A quarter of a Node profile hangs on those. The target runs with an empty /usr/lib/debug; one rowprof looks
from inside (no symbols), one from outside at the same time (symbols, where they are installed): both must say the same.
"""
import json
import re
import subprocess

import harness

EMPTY = 'mount -t tmpfs none /usr/lib/debug && exec "$@"'
MUTEX, MALLOC = "pthread.mutex", "libc.malloc"


class NoDebugSymbols(harness.Case):
    def inside(self, pid, *args):
        process = subprocess.Popen(["nsenter", "-t", str(pid), "-m", harness.ROWPROF, "--pid", str(pid), "--seconds", "5", *args],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        return process

    @harness.needs(harness.rowprof_there, harness.perf_events, harness.root, harness.mount_namespaces, harness.node24)
    def test_shares_are_the_same_as_with_symbols(self):
        target = self.start("unshare", "-m", "sh", "-c", EMPTY, "sh", harness.node24_path(), harness.READ_MJS, "--op", "get", "--limit", "1")
        blind = self.inside(target.pid, "-t", "MainThread", "--format", "json")
        seeing = self.profile(target.pid, "-t", "MainThread", seconds=5, kernel=True)
        out, err = blind.communicate(timeout=120)
        self.assertEqual(blind.returncode, 0, err)
        data = json.loads(out)
        shares = {row["id"]: row["share"] for row in data["categories"]}
        others = {row["id"]: row["share"] for row in seeing.data["categories"]}
        functions = {row["symbol"]: row for row in data["functions"]}
        self.assertIn("pthread_mutex_unlock [local]", functions)
        self.assertFalse([name for name in functions if re.match(r"^_int_malloc", name)], "symbols were found after all")
        self.assertLessEqual(shares.get("uncategorized", 0), 0.03)
        for category in (MUTEX, MALLOC, "sqlite.vdbe", "v8.names"):
            self.assertAlmostEqual(shares[category], others[category], delta=0.03, msg=category)
        self.assertTrue(any("libc6-dbg" in note["text"] for note in data["notes"]), data["notes"])


if __name__ == "__main__":
    harness.main()
