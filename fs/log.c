/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool to_journal;
static TnLogLevel lowest_level = TN_LOG_INFO;

void tn_log_init(TnLogLevel lowest)
{
	to_journal = getenv("JOURNAL_STREAM") != NULL;
	lowest_level = lowest;
}

void tn_log(TnLogLevel level, const char *format, ...)
{
	char line[1024];
	size_t used;
	va_list args;
	int n;

	if (level > lowest_level)
		return;
	n = to_journal ? snprintf(line, sizeof(line), "<%d>tmpnestd: ", (int)level)
		       : snprintf(line, sizeof(line), "tmpnestd: ");
	used = (size_t)n;
	va_start(args, format);
	n = vsnprintf(line + used, sizeof(line) - used - 1, format, args);
	va_end(args);
	if (n > 0)
		used += (size_t)n < sizeof(line) - used - 1 ? (size_t)n : sizeof(line) - used - 2;
	line[used++] = '\n';
	/* A log that cannot be written must not stop the service. */
	if (write(STDERR_FILENO, line, used) < 0)
		return;
}

char *tn_log_escape(const char *text, char *buffer, size_t size)
{
	size_t used = 0;

	for (const unsigned char *c = (const unsigned char *)text; *c && used + 5 <= size; c++) {
		if (*c >= 0x20 && *c < 0x7f && *c != '\\')
			buffer[used++] = (char)*c;
		else
			used += (size_t)snprintf(buffer + used, size - used, "\\x%02x", *c);
	}
	buffer[used < size ? used : size - 1] = '\0';
	return buffer;
}
