/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "message.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES (2 * PATH_MAX)
#define PREFIX "tmpnest: "

/* Copies text as printable as a terminal needs it. UTF-8 stays; C0 controls and DEL do not. */
static size_t escape(const char *text, char *ret, size_t size)
{
	static const char hex[] = "0123456789abcdef";
	size_t used = 0;

	for (; *text && used + 4 < size; text++) {
		unsigned char c = (unsigned char)*text;

		if (c >= 0x20 && c != 0x7f) {
			ret[used++] = (char)c;
		} else {
			ret[used++] = '\\';
			ret[used++] = 'x';
			ret[used++] = hex[c >> 4];
			ret[used++] = hex[c & 15];
		}
	}
	return used;
}

static void say(const char *format, va_list arguments)
{
	char text[LINE_MAX_BYTES];
	char line[LINE_MAX_BYTES + sizeof(PREFIX)];
	size_t used = sizeof(PREFIX) - 1;

	vsnprintf(text, sizeof(text), format, arguments);
	memcpy(line, PREFIX, used);
	used += escape(text, line + used, sizeof(line) - used - 1);
	line[used++] = '\n';
	/* there is nobody left to tell when this fails */
	if (write(STDERR_FILENO, line, used) < 0)
		return;
}

void tn_say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
}

int tn_fail(int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
	return error;
}

void tn_out_of_memory(void)
{
	tn_say("memory: out of memory");
	_exit(TN_EXIT_FAILED);
}
