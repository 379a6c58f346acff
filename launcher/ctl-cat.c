/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * `cat`: one file of a nest on standard output. On a terminal control characters are
 * escaped: a sandbox wrote them.
 */
#include "ctl-tree.h"

#include "macros.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHUNK (128 * 1024)

/* Writes what a terminal may get; *c2 remembers a lead byte of the C1 controls. */
static void put_escaped(const guchar *data, gsize size, gboolean *c2)
{
	for (gsize i = 0; i < size; i++) {
		guchar c = data[i];

		if (*c2) {
			*c2 = FALSE;
			if (c >= 0x80 && c < 0xa0) {
				printf("\\xc2\\x%02x", c);
				continue;
			}
			putchar(0xc2);
		}
		if (c == 0xc2)
			*c2 = TRUE;
		else if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
			printf("\\x%02x", c);
		else
			putchar(c);
	}
}

static gboolean copy_out(int fd, gboolean raw, GError **error)
{
	g_autofree guchar *chunk = g_malloc(CHUNK);
	gboolean c2 = FALSE;

	for (;;) {
		ssize_t n = read(fd, chunk, CHUNK);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			g_set_error(error, TN_CLIENT_ERROR, TN_CTL_FAILED, "file: cannot read: %s",
				    g_strerror(errno));
			return FALSE;
		}
		if (n == 0)
			return TRUE;
		if (!raw)
			put_escaped(chunk, (gsize)n, &c2);
		else if (fwrite(chunk, 1, (gsize)n, stdout) < (gsize)n)
			return TRUE; /* main says so */
		if (ferror(stdout))
			return TRUE;
	}
}

int tn_verb_cat(const TnVerb *verb, int argc, char **argv)
{
	char *owner_text = NULL;
	gboolean raw = FALSE;
	const GOptionEntry entries[] = {
		{"raw", 0, 0, G_OPTION_ARG_NONE, &raw, "Also on a terminal every byte as it is",
		 NULL},
		TN_CTL_OWNER_ENTRY(owner_text),
		{NULL},
	};
	g_auto(TnCtlPlace) place = {NULL};
	g_autoptr(TnClient) client = NULL;
	TN_AUTOFD fd = -1;
	TnCtlOptions options;
	GError *error = NULL;
	guint64 size;
	int status;

	if (!tn_ctl_parse(verb, argc, argv, entries, 1, 2, &options, &status))
		return status;
	if (options.n_arguments < 2 && strchr(options.arguments[0], ':') == NULL)
		return tn_ctl_usage(verb, "PATH", "missing");
	if (!tn_ctl_place(verb, &options, owner_text, &place))
		return TN_CTL_USAGE;
	client = tn_client_open(&options.choice, &error);
	if (client != NULL)
		fd = tn_ctl_open_file(client, &place, place.path, &size, &error);
	if (fd < 0 || !copy_out(fd, raw || !isatty(STDOUT_FILENO), &error))
		return tn_ctl_fail(verb, error);
	return TN_CTL_OK;
}
