/* SPDX-License-Identifier: MIT */
/*
 * A scratch folder for a workload's database, under $TMPDIR (or /tmp), gone when the workload ends.
 */
#ifndef RL_SCRATCH_H
#define RL_SCRATCH_H

#include "rl_run.h"

enum { RL_PATH_BYTES = 4096 };

struct rl_scratch {
    char folder[RL_PATH_BYTES]; /* empty: none */
    char file[RL_PATH_BYTES + 16]; /* of the database */
};

/* False: run->error holds the sentence. */
bool rl_scratch_make(struct rl_run *run, struct rl_scratch *scratch);

/* Removes the folder and the files in it. Safe on an empty one, and twice. */
void rl_scratch_remove(struct rl_scratch *scratch);

#endif
