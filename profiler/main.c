/* SPDX-License-Identifier: MIT */
/* The program: all of it is in cli/, so that tests can link it. */
#include "cli/cli.h"

int main(int argc, char **argv)
{
    return rp_cli_main(argc, argv);
}
