/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The launcher stays lean: it needs libc and nothing else, and calls nothing that starts
 * a thread. A second thread would make its unshare(CLONE_NEWUSER) fail, and each library
 * costs time at every start of a sandbox. Reads the program itself; argv[1] names it.
 */
#include "macros.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

static const char *program;

typedef struct Image {
	const uint8_t *bytes;
	size_t size;
	const ElfW(Shdr) * sections;
	size_t n_sections;
} Image;

static int setup(void **state)
{
	static Image image;
	int fd = open(program, O_RDONLY | O_CLOEXEC);
	struct stat st;
	const ElfW(Ehdr) * head;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	image.size = (size_t)st.st_size;
	image.bytes = mmap(NULL, image.size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (image.bytes == MAP_FAILED || memcmp(image.bytes, ELFMAG, SELFMAG) != 0)
		return -1;
	head = (const void *)image.bytes;
	image.sections = (const void *)(image.bytes + head->e_shoff);
	image.n_sections = head->e_shnum;
	*state = &image;
	return 0;
}

/* The only section of that type; ends the test when there is none. */
static const ElfW(Shdr) * section(const Image *image, uint32_t type)
{
	size_t i = 0;

	while (i < image->n_sections && image->sections[i].sh_type != type)
		i++;
	assert_true(i < image->n_sections);
	return &image->sections[i];
}

static const char *text(const Image *image, const ElfW(Shdr) * owner, size_t offset)
{
	return (const char *)image->bytes + image->sections[owner->sh_link].sh_offset + offset;
}

static void needs_libc_only(void **state)
{
	const Image *image = *state;
	const ElfW(Shdr) *dynamic = section(image, SHT_DYNAMIC);
	const ElfW(Dyn) *entry = (const void *)(image->bytes + dynamic->sh_offset);
	size_t n = 0;

	for (; entry->d_tag != DT_NULL; entry++) {
		const char *name;

		if (entry->d_tag != DT_NEEDED)
			continue;
		name = text(image, dynamic, entry->d_un.d_val);
		n++;
		/* a sanitizer brings its own library and libm */
		if (strncmp(name, "libc.so", 7) != 0 && strncmp(name, "ld-linux", 8) != 0 &&
		    strncmp(name, "libasan", 7) != 0 && strncmp(name, "libubsan", 8) != 0 &&
		    !(strncmp(name, "libm.so", 7) == 0 && TN_SANITIZED))
			fail_msg("%s needs %s", program, name);
	}
	assert_true(n > 0);
}

static void starts_no_thread(void **state)
{
	static const char *const forbidden[] = {"pthread_create", "thrd_create", "clone",
						"timer_create",   "aio_read",    "aio_write",
						"getaddrinfo",    "lio_listio",  "mq_notify"};
	const Image *image = *state;
	const ElfW(Shdr) *symbols = section(image, SHT_DYNSYM);
	const ElfW(Sym) *symbol = (const void *)(image->bytes + symbols->sh_offset);
	size_t n = symbols->sh_size / sizeof(*symbol);
	bool sees_fork = false;

	for (size_t i = 0; i < n; i++) {
		const char *name = text(image, symbols, symbol[i].st_name);

		sees_fork |= strcmp(name, "fork") == 0;
		for (size_t j = 0; j < TN_ARRAY_LEN(forbidden); j++)
			if (strcmp(name, forbidden[j]) == 0)
				fail_msg("%s calls %s", program, name);
	}
	/* the table was really read: starting the daemon forks */
	assert_true(sees_fork);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(needs_libc_only),
		cmocka_unit_test(starts_no_thread),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: test-launcher-lean PROGRAM\n");
		return 2;
	}
	program = argv[1];
	return cmocka_run_group_tests_name("launcher-lean", tests, setup, NULL);
}
