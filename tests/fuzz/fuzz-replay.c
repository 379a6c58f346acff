/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Runs a fuzz target over the files of a directory: its corpus as a test. */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
	static uint8_t bytes[1 << 20];
	FILE *file = fopen(path, "re");
	size_t size;

	if (!file) {
		perror(path);
		return 1;
	}
	size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	LLVMFuzzerTestOneInput(bytes, size);
	return 0;
}

int main(int argc, char **argv)
{
	DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;
	struct dirent *entry;
	unsigned n = 0;

	if (!dir) {
		fprintf(stderr, "usage: %s CORPUS\n", argv[0]);
		return 2;
	}
	while ((entry = readdir(dir))) {
		char path[PATH_MAX];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
		if (replay(path) != 0)
			return 1;
		n++;
	}
	closedir(dir);
	printf("%u inputs\n", n);
	return n > 0 ? 0 : 1;
}
