/* SPDX-License-Identifier: MIT */
/* Profiles out of text, so that tests of views, trees, reports, files and rules need no process.
 *
 *     fake_profile(&p, "sqlite3VdbeExec;sqlite3_step;main 30 block=2 thread=A\n"
 *                      "[kernel]!copy_page;libc.so.6!read+0x14;main 5\n"
 *                      "libc.so.6!?+0x9a1c0;main 2\n"                          // unnamed: libc.so.6+0x9a1c0
 *                      "^columnName{stmt.cc:42};Get(int, char const*);main 7\n"  // ^: inlined into the next frame
 *                      "memcpy;[truncated: no unwind row] 1\n");
 *
 * A stack is leaf first, then the number of samples, then keys: block=N or ms=N (time), thread=NAME or NAME/TID, pid=N, state=blocked, tag=N,
 * weight=NS (of one sample), guess=1 (its callers were found by frame pointers). With wait=DURATION (250ns, 10us, 2.5ms, 1s) it is that many waits
 * of that length, with syscall=N and tag=LOCK (1 is the first); with holds=LOCK besides, what the lock's holder did during that many waits, which
 * were those of waiter=NAME/TID (else it is not known whose); with free=LOCK nobody held it any more, and the stack is of no matter.
 * A frame is [^][MODULE!]NAME[+0xOFFSET][{FILE:LINE}]. Modules: "app" unless said; [kernel] and [jit] are what they look like. The
 * offset is that of the call or, in the leaf, of the sample. In names \; \n \t \\ \{ \+ \! \^ and \xHH stand for the characters.
 * Directives, one a line, values quoted where they hold blanks, before the stacks that need them:
 *     .symbol NAME raw=_Z… alias=… alias=… file=… [module=…]     how a function is described
 *     .module NAME kind=elf|vdso|jit|other path=… build-id=… note=… remedy=…
 *     .process PID comm=… command=… [generation=N, last: another program of that pid, which later lines mean]
 *     .thread NAME[/TID] pid=… wall=SECONDS cpu=SECONDS     (threads may have no sample)
 *     .thread also takes preempted= waiting= delay= (seconds).      .waits NAME[/TID] pid=… n=… each=DURATION     (waits without a stack)
 *     .lock 0xADDRESS symbol=… module=… database=… pid=…
 *     .run seconds=… hz=… lost=… throttled=… vanished=… source=… host=… note=… stack=… waits=… cpus=… kernel=… sampler=…     .blocks N     (blocks used, empty ones too)
 *     .fact NAME=VALUE …     .rate end=SECONDS wall=SECONDS cpu=SECONDS calls=N rows=N     (what the target said)
 * Lines that start with # are comments. */
#ifndef TESTS_FAKE_PROFILE_H
#define TESTS_FAKE_PROFILE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/status.h"
#include "model/profile.h"

/* `p` is initialised here. RP_FORMAT names the line; RP_NOMEM. On failure `p` is released. */
enum rp_status fake_profile_parse(struct rp_profile *p, const char *text, struct rp_err *err);

/* The same; fails the running test when the text is wrong. */
void fake_profile(struct rp_profile *p, const char *text);

/* Full comparison, element by element, strings by their text; the first difference is told in `why`. */
bool fake_profile_same(const struct rp_profile *a, const struct rp_profile *b, struct rp_buf *why);

#endif
