/* SPDX-License-Identifier: MIT */
/* A library needs one source file even while no builder is there. */
extern int rp_support_anchor;
int rp_support_anchor;
