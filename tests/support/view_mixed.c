/* SPDX-License-Identifier: MIT */
/* See view_mixed.h. */
#include "support/view_mixed.h"

const char view_rules[] = "categories:\n"
                          "  - {id: work, name: Work, kind: cost}\n"
                          "  - {id: names, name: Names, kind: cost}\n"
                          "  - {id: lock, name: Lock, kind: cost, payers: true}\n"
                          "  - {id: kern, name: Kernel, kind: cost}\n"
                          "rules:\n"
                          "  - {id: r-lock, category: lock, symbol: [mutex_lock, mutex_unlock]}\n"
                          "  - {id: r-names, category: names, symbol: \"name_*\"}\n"
                          "  - {id: r-work, category: work, symbol: [step, rec_a, rec_b]}\n"
                          "  - {id: r-kern, category: kern, symbol: \"*\", space: kernel}\n"
                          "through: [memcpy]\n";

const char view_mixed[] = ".run seconds=1 hz=997 lost=3 throttled=1 vanished=2\n"
                          ".thread sleeper/77 wall=2 cpu=0.5\n"
                          ".thread main/1234 wall=1 cpu=0.75\n"
                          "step;main 50\n"
                          "mutex_lock;step;main 20 block=1\n"
                          "mutex_unlock;name_get;main 7 block=2\n"
                          "mutex_unlock;main 3 block=2\n"
                          "memcpy;name_get;step;main 10 block=3\n"
                          "memcpy;main 4 block=3\n"
                          "memcpy;[truncated: no unwind row] 1 block=4\n"
                          "helper;step;main 5 block=5 thread=worker/99 guess=1\n"
                          "[kernel]!page_fault;step;main 6 block=6\n"
                          "libc.so.6!?+0x9a1c0;main 9 block=7\n"
                          "[jit]!?+0x10;[jit]!?+0x20;main 2 block=8\n";
