/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program that `tmpnest stubs` executes: the words after it are passed as they are. */
#include "stubs.h"

int main(int argc, char **argv)
{
	return tn_stubs_main(argc, argv);
}
