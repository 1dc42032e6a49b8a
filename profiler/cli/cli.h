/* SPDX-License-Identifier: MIT */
/* The command line: the only part that prints, and the only one that ends the program. */
#ifndef RP_CLI_CLI_H
#define RP_CLI_CLI_H

/* Runs `rowprof ARGS…`; returns the exit status (see base/status.h). */
int rp_cli_main(int argc, char **argv);

#endif
