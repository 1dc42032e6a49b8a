/* SPDX-License-Identifier: MIT */
/* A profile that has some of everything a view tells apart, small enough to be counted by hand, and the rules for it. Whoever changes a number here
 * counts anew in every test that uses it. */
#ifndef TESTS_VIEW_MIXED_H
#define TESTS_VIEW_MIXED_H

/* YAML: the categories work, names, lock (with payers) and kern. */
extern const char view_rules[];

/* For fake_view: 117 samples of main (1234) and worker (99), none of sleeper (77). */
extern const char view_mixed[];

#endif
