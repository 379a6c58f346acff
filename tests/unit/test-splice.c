/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* splice: lines in, lines out, on a file system made up for each case. */
#include "splice.h"

#include "macros.h"
#include "paths.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/*
 * The host: directories end in "/", executables in "*", sockets and devices in "=",
 * "A>B" is a link, "!A" cannot be looked at; parents are implied.
 */
static const char usual[] =
	"/bin/sh* /dev/null= /etc/passwd /home/u/ws/ /home/u/.ssh/ /proc/ /dev/ "
	"/run/user/9/nest/ /run/user/9/bus= /var/tmp/ /srv/rootfs/tmp/ "
	"/srv/bare/usr/ /srv/links/private/tmp/ /srv/links/tmp>private/tmp "
	"/srv/out/tmp>/home /srv/rootfs/out>/etc /tmp/ws/.git/ /tmp/ws/src/ /tmp/scratch/ "
	"/tmp/http.sock= /tmp/socks.sock= /tmp/tool* /tmp/script.sh /tmp/claude/ "
	"/tmp/empty-1/ /tmp/ca.pem /var/lib/nest/ "
	"/tmp/srt/vendor/seccomp/x64/apply-seccomp* /tmp/srt/agent.jar "
	"/tmp/my~dir/vendor/seccomp/x64/apply-seccomp* !/secret/x "
	"/var/run>/run /home/u/to-tmp>/tmp/scratch /tmp/agent=";

typedef struct Host {
	const char *const *files;
	size_t n;
} Host;

static const char *find(const Host *host, const char *path, char *ret_mark)
{
	size_t length = strlen(path);

	for (size_t i = 0; i < host->n; i++) {
		const char *file = host->files[i];
		bool blind = file[0] == '!';

		file += blind;
		if (strncmp(file, path, length) != 0)
			continue;
		*ret_mark = blind && file[length] != '/' ? '!' : file[length];
		/* a parent is a directory, and so is "dir/" */
		if (strchr("*=>/", file[length]))
			return file + length;
	}
	return NULL;
}

static TnFileKind look(const Host *host, const char *path, char real[PATH_MAX], int depth)
{
	char rest[PATH_MAX], *at = rest;
	char mark = '/';

	assert_true(depth < 10);
	assert_true(tn_path_normalize(path, rest, sizeof(rest)));
	snprintf(real, PATH_MAX, "%s", "");
	while (*at == '/' && at[1]) {
		size_t length = 1 + strcspn(at + 1, "/");
		const char *end;

		if (mark != '/')
			return TN_FILE_UNREACHABLE; /* ENOTDIR */
		strncat(real, at, length);
		at += length;
		end = find(host, real, &mark);
		if (!end)
			return TN_FILE_MISSING;
		if (mark == '!')
			return TN_FILE_UNREACHABLE;
		if (mark == '>') {
			char next[PATH_MAX * 2];

			*strrchr(real, '/') = '\0';
			snprintf(next, sizeof(next), "%s/%s%s", end[1] == '/' ? "" : real, end + 1,
				 at);
			return look(host, next, real, depth + 1);
		}
	}
	if (!*real)
		strcpy(real, "/");
	return mark == '/'   ? TN_FILE_DIR
	       : mark == '*' ? TN_FILE_EXECUTABLE
	       : mark == '=' ? TN_FILE_OTHER
			     : TN_FILE_REGULAR;
}

static TnFileKind resolve(void *data, const char *path, char real[PATH_MAX])
{
	char absolute[PATH_MAX * 2];

	if (strcmp(path, "/proc/self/fd/5") == 0)
		path = "/tmp/ws";
	if (strcmp(path, "/proc/self/fd/6") == 0)
		path = "/";
	snprintf(absolute, sizeof(absolute), "%s%s", path[0] == '/' ? "" : "/home/u/", path);
	return look(data, absolute, real, 0);
}

static int load(void *data, int fd, const char **ret_block, size_t *ret_size)
{
	return -EBADF;
}

static size_t split(char *text, const char **words, size_t max)
{
	size_t n = 0;

	for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
		assert_true(n < max);
		/* "~" stands for a blank inside a word */
		for (char *c = word; *c; c++)
			if (*c == '~')
				*c = ' ';
		words[n++] = word;
	}
	return n;
}

#define PLACE "/run/user/9/nest/view"
#define EMPTY "/run/user/9/nest/empty"
#define VIEW "--bind " PLACE "/tmp /tmp"

typedef struct Case {
	const char *name;
	const char *line;
	const char *expected; /* words of the block, or NULL: refused */
	const char *points;   /* "d:/tmp/x f:/tmp/y", NULL: none */
	const char *notes;    /* numbers of TnSpliceNoteKind, in order; NULL: none */
	const char *cwd;      /* default /home/u */
	const char *host;     /* more files, before the usual ones */
	const char *host_tmp; /* default /tmp */
	const char *tmpdir;
	const char *states; /* 'p' or 'd' or 'r' per point; default all pinned */
	bool var_tmp;
	bool no_view;
	const char *in_view; /* a path that the view has already */
} Case;

static const Case anchors[] = {
	{"root bind", "--ro-bind / / --proc /proc -- sh",
	 "--ro-bind / / " VIEW " --proc /proc "
	 "--ro-bind " EMPTY " /run/user/9/nest"},
	{"no mount at / or /tmp: before the first operation on files",
	 "--unshare-pid --dir /etc --ro-bind /bin /bin sh",
	 "--unshare-pid " VIEW " --dir /etc --ro-bind /bin /bin"},
	{"no operation on files at all", "--unshare-pid sh", "--unshare-pid " VIEW},
	{"the last of several", "--tmpfs / --ro-bind /bin / --tmpfs /etc sh",
	 "--tmpfs / --ro-bind /bin / --tmpfs /etc", NULL, "6", .no_view = true},
	{"a tmpfs root", "--tmpfs / --ro-bind /bin /bin sh",
	 "--tmpfs / " VIEW " --ro-bind /bin /bin"},
	{"tmpfs at /tmp is replaced", "--ro-bind /bin /bin --tmpfs /tmp --dir /tmp/x sh",
	 "--ro-bind /bin /bin " VIEW " --dir /tmp/x"},
	{"... with its modifiers",
	 "--ro-bind /bin /bin --perms 1777 --size 4096 --tmpfs /tmp --dir /x sh",
	 "--ro-bind /bin /bin " VIEW " --dir /x"},
	{"modifiers stay with their operation", "--perms 0700 --dir /a --ro-bind /bin /bin sh",
	 VIEW " --perms 0700 --dir /a --ro-bind /bin /bin"},
	{"tmpfs at /tmp below a root bind", "--ro-bind /bin /bin --tmpfs //tmp/ --proc /proc sh",
	 "--ro-bind /bin /bin " VIEW " --proc /proc"},
	{"an earlier tmpfs at /tmp that the root hides", "--tmpfs /tmp --tmpfs / --proc /proc sh",
	 "--tmpfs /tmp --tmpfs / " VIEW " --proc /proc"},
	{"a bind at /tmp is the caller's", "--ro-bind /bin /bin --bind /home/u/ws /tmp sh",
	 "--ro-bind /bin /bin --bind /home/u/ws /tmp", NULL, "5", .no_view = true},
	{"a missing -try at /tmp is none", "--ro-bind /bin /bin --bind-try /nope /tmp sh",
	 VIEW " --ro-bind /bin /bin"},
	{"a file at /tmp", "--ro-bind /bin /bin --file 3 /tmp sh",
	 "--ro-bind /bin /bin --file 3 /tmp", NULL, "5", .no_view = true},
	{"a link at /tmp", "--ro-bind /bin /bin --symlink var/tmp /tmp sh",
	 "--ro-bind /bin /bin --symlink var/tmp /tmp", NULL, "5", .no_view = true},
	{"a link at /tmp that the root hides", "--symlink x /tmp --tmpfs / sh",
	 "--symlink x /tmp --tmpfs / " VIEW},
	{"overlay at /tmp", "--overlay-src /home/u/ws --tmp-overlay /tmp sh",
	 "--overlay-src /home/u/ws --tmp-overlay /tmp", NULL, "5", .no_view = true},
	{"destination with no slash in front", "--ro-bind /bin bin --tmpfs tmp sh",
	 "--ro-bind /bin bin " VIEW},
	{"another root with a /tmp", "--ro-bind /srv/rootfs / --proc /proc sh",
	 "--ro-bind /srv/rootfs / " VIEW " --proc /proc"},
	{"another root without one, read-only", "--ro-bind /srv/bare / sh", "--ro-bind /srv/bare /",
	 NULL, "6", .no_view = true},
	{"another root without one, writable", "--bind /srv/bare / sh", "--bind /srv/bare / " VIEW},
	{"another root with a relative link", "--ro-bind /srv/links / --ro-bind /bin /tmp/b sh",
	 "--ro-bind /srv/links / --bind " PLACE "/tmp /private/tmp --ro-bind /bin /private/tmp/b",
	 "d:/tmp/b"},
	{"another root whose /tmp leads out", "--ro-bind /srv/out / sh", "--ro-bind /srv/out /",
	 NULL, "6", .no_view = true},
	{"/tmp as relative link", "--ro-bind /bin /bin --ro-bind / / --bind /tmp/ws /tmp/ws sh",
	 "--ro-bind /bin /bin --ro-bind / / --bind " PLACE "/tmp /private/tmp "
	 "--bind /tmp/ws /private/tmp/ws --ro-bind " EMPTY " /run/user/9/nest",
	 "d:/tmp/ws", .host = "/tmp>private/tmp /private/tmp/ws/", .host_tmp = "/private/tmp"},
	{"/tmp as absolute link", "--ro-bind / / --dir /tmp/d --tmpfs /tmp/a/../b sh",
	 "--ro-bind / / --bind " PLACE "/tmp /private/tmp --dir /private/tmp/d --tmpfs "
	 "/private/tmp/b --ro-bind " EMPTY " /run/user/9/nest",
	 "d:/tmp/b", .host = "/tmp>/private/tmp /private/tmp/ws/", .host_tmp = "/private/tmp"},
	{"a mount above a linked /tmp", "--bind / / --tmpfs /private sh",
	 "--bind / / --tmpfs /private --bind " PLACE "/tmp /private/tmp "
	 "--ro-bind " EMPTY " /run/user/9/nest",
	 .host = "/tmp>/private/tmp /private/tmp/ws/", .host_tmp = "/private/tmp"},
	{"remount of the view is the caller's", "--tmpfs /tmp --remount-ro /tmp sh",
	 VIEW " --remount-ro /tmp"},
	{"var-tmp too", "--ro-bind /srv/rootfs / --tmpfs /var --dir /x sh",
	 "--ro-bind /srv/rootfs / " VIEW " --tmpfs /var --bind " PLACE "/var-tmp /var/tmp --dir /x",
	 .var_tmp = true},
	{"var-tmp's own tmpfs", "--tmpfs /tmp --tmpfs /var/tmp --bind /bin /var/tmp/b sh",
	 VIEW " --bind " PLACE "/var-tmp /var/tmp --bind /bin /var/tmp/b", "d:/var/tmp/b",
	 .var_tmp = true},
	{"var-tmp in no root's way", "--ro-bind /bin /bin sh",
	 VIEW " --bind " PLACE "/var-tmp /var/tmp --ro-bind /bin /bin", .var_tmp = true},
};

#define COVER " --ro-bind " EMPTY " /run/user/9/nest"

static const Case replays[] = {
	{"proxy sockets", "--bind /tmp/http.sock /tmp/http.sock --setenv A b --ro-bind / / sh",
	 "--bind /tmp/http.sock /tmp/http.sock --setenv A b --ro-bind / / " VIEW
	 " --ro-bind /tmp/http.sock /tmp/http.sock" COVER,
	 "f:/tmp/http.sock"},
	{"under a writable root as they were",
	 "--bind /tmp/http.sock /tmp/http.sock --ro-bind /tmp/tool /tmp/tool "
	 "--dev-bind /tmp/ws /tmp/ws --bind / / sh",
	 "--bind /tmp/http.sock /tmp/http.sock --ro-bind /tmp/tool /tmp/tool --dev-bind /tmp/ws "
	 "/tmp/ws --bind / / " VIEW " --bind /tmp/http.sock /tmp/http.sock --ro-bind /tmp/tool "
	 "/tmp/tool --dev-bind /tmp/ws /tmp/ws" COVER,
	 "f:/tmp/http.sock f:/tmp/tool d:/tmp/ws"},
	{"a writable root that is made read-only later",
	 "--bind /tmp/ws /tmp/ws --bind / / --remount-ro / sh",
	 "--bind /tmp/ws /tmp/ws --bind / / " VIEW
	 " --ro-bind /tmp/ws /tmp/ws --remount-ro /" COVER,
	 "d:/tmp/ws"},
	{"source is not destination", "--bind /tmp/http.sock /tmp/other --ro-bind / / sh",
	 "--bind /tmp/http.sock /tmp/other --ro-bind / / " VIEW COVER},
	{"not below /tmp", "--bind /etc /etc --ro-bind / / sh",
	 "--bind /etc /etc --ro-bind / / " VIEW COVER},
	{"/tmp itself", "--bind /tmp /tmp --ro-bind / / sh",
	 "--bind /tmp /tmp --ro-bind / / " VIEW COVER},
	{"another root hid it on purpose",
	 "--bind /tmp/http.sock /tmp/http.sock --ro-bind /srv/rootfs / sh",
	 "--bind /tmp/http.sock /tmp/http.sock --ro-bind /srv/rootfs / " VIEW},
	{"a tmpfs hid it on purpose", "--bind /tmp/ws /tmp/ws --tmpfs /tmp sh",
	 "--bind /tmp/ws /tmp/ws " VIEW},
	{"a missing -try", "--bind-try /tmp/nope /tmp/nope --ro-bind / / sh",
	 "--ro-bind / / " VIEW COVER},
	{"bound again after the root",
	 "--bind /tmp/ws /tmp/ws --ro-bind / / --bind /tmp/ws /tmp/ws sh",
	 "--bind /tmp/ws /tmp/ws --ro-bind / / " VIEW " --bind /tmp/ws /tmp/ws" COVER, "d:/tmp/ws"},
	{"twice before the root: once",
	 "--ro-bind /tmp/ws /tmp/ws --bind /tmp/ws /tmp/ws --bind / / sh",
	 "--ro-bind /tmp/ws /tmp/ws --bind /tmp/ws /tmp/ws --bind / / " VIEW
	 " --bind /tmp/ws /tmp/ws" COVER,
	 "d:/tmp/ws"},
	{"by another spelling", "--bind /tmp//http.sock /tmp/./http.sock --ro-bind / / sh",
	 "--bind /tmp//http.sock /tmp/http.sock --ro-bind / / " VIEW
	 " --ro-bind /tmp//http.sock /tmp/http.sock" COVER,
	 "f:/tmp/http.sock"},
	{"in a denied name", "--bind /tmp/claude /tmp/claude --ro-bind / / sh",
	 "--bind /tmp/claude /tmp/claude --ro-bind / / " VIEW COVER, "d:/tmp/claude", "7"},
};

static const Case mounts[] = {
	{"kinds of mount points",
	 "--tmpfs /tmp --bind /tmp/ws /tmp/a --bind /tmp/http.sock /tmp/b --ro-bind /dev/null "
	 "/tmp/c/d --tmpfs /tmp/e --dev /tmp/f --proc /tmp/g --mqueue /tmp/h --bind-data 3 /tmp/i "
	 "--ro-bind-data 3 /tmp/j --dir /tmp/k --file 3 /tmp/l --symlink x /tmp/m --chmod 0700 "
	 "/tmp/k --bind-fd 5 /tmp/n sh",
	 VIEW
	 " --bind /tmp/ws /tmp/a --bind /tmp/http.sock /tmp/b --ro-bind /dev/null /tmp/c/d "
	 "--tmpfs /tmp/e --dev /tmp/f --proc /tmp/g --mqueue /tmp/h --bind-data 3 /tmp/i "
	 "--ro-bind-data 3 /tmp/j --dir /tmp/k --file 3 /tmp/l --symlink x /tmp/m --chmod 0700 "
	 "/tmp/k --bind-fd 5 /tmp/n",
	 "d:/tmp/a f:/tmp/b f:/tmp/c/d d:/tmp/e d:/tmp/f d:/tmp/g d:/tmp/h f:/tmp/i f:/tmp/j "
	 "d:/tmp/n"},
	{"inside another mount: not the view's",
	 "--ro-bind / / --bind /tmp/ws /tmp/ws --ro-bind /tmp/ws/.git /tmp/ws/.git sh",
	 "--ro-bind / / " VIEW " --bind /tmp/ws /tmp/ws --ro-bind /tmp/ws/.git /tmp/ws/.git" COVER,
	 "d:/tmp/ws"},
	{"a link of the root that leads into /tmp",
	 "--ro-bind / / --bind /home/u/ws /home/u/to-tmp sh",
	 "--ro-bind / / " VIEW " --bind /home/u/ws /tmp/scratch" COVER, "d:/tmp/scratch"},
	{"denied, by the rule's path",
	 "--ro-bind / / --bind /tmp/claude /tmp/claude --tmpfs /tmp/claude --ro-bind /dev/null "
	 "/tmp/claude/x --ro-bind /dev/null /tmp/claudette sh",
	 "--ro-bind / / " VIEW " --ro-bind /dev/null /tmp/claudette" COVER,
	 "d:/tmp/claude d:/tmp/claude f:/tmp/claudette", "7 7 7"},
	{"denied and gone since it was planned",
	 "--ro-bind / / --bind /tmp/gone /tmp/claude --ro-bind /tmp/gone /tmp/claude/x sh",
	 "--ro-bind / / " VIEW COVER, "f:/tmp/claude", "7 7"},
	{"denied by patterns",
	 "--tmpfs /tmp --tmpfs /tmp/other/a.d --tmpfs /tmp/other/a.e --dir /tmp/other/b.d/x/y "
	 "--tmpfs /tmp/third sh",
	 VIEW " --tmpfs /tmp/other/a.e", "d:/tmp/other/a.d d:/tmp/other/a.e d:/tmp/third", "7 7 7"},
	{"denied in var-tmp only there",
	 "--tmpfs /tmp --tmpfs /var/tmp --dir /var/tmp/claude --dir /var/tmp/third sh",
	 VIEW " --bind " PLACE "/var-tmp /var/tmp --dir /var/tmp/third", NULL, "7",
	 .var_tmp = true},
	{"denied entries", "--ro-bind / / --dir /tmp/claude/x --file 3 /tmp/claude/y sh",
	 "--ro-bind / / " VIEW COVER, NULL, "7 7"},
	{"denied, by the daemon's word, with what lies below",
	 "--tmpfs /tmp --bind /tmp/ws /tmp/a --ro-bind /tmp/ws/.git /tmp/a/b --bind /tmp/ws "
	 "/tmp/ab sh",
	 VIEW " --bind /tmp/ws /tmp/ab", "d:/tmp/a d:/tmp/ab", "7 7", .states = "dp"},
	{"denied under /private/tmp, where the host has it",
	 "--ro-bind / / --bind /private/tmp/claude /private/tmp/claude --tmpfs "
	 "/private/tmp/claude --bind /private/tmp/claude /private/tmp/claude sh",
	 "--ro-bind / / " VIEW " --bind /private/tmp/claude /private/tmp/claude --tmpfs "
	 "/private/tmp/claude --bind /private/tmp/claude /private/tmp/claude" COVER
	 " --ro-bind " EMPTY " /private/tmp/claude",
	 NULL, "7", .host = "/private/tmp/claude/x"},
	{"... as a file, also by the rule of another spelling", "--ro-bind / / sh",
	 "--ro-bind / / " VIEW COVER " --ro-bind /dev/null /private/tmp/third", NULL, "7",
	 .host = "/private/tmp/third"},
	{"... mounted by the line under another root",
	 "--tmpfs / --ro-bind /home/u/ws /private/tmp/claude sh",
	 "--tmpfs / " VIEW " --ro-bind /home/u/ws /private/tmp/claude --ro-bind " EMPTY
	 " /private/tmp/claude",
	 NULL, "7"},
	{"... not where a later mount hides it", "--ro-bind / / --tmpfs /private sh",
	 "--ro-bind / / " VIEW " --tmpfs /private" COVER, .host = "/private/tmp/claude/x"},
	{"... not where it is the view", "--ro-bind / / sh",
	 "--ro-bind / / --bind " PLACE "/tmp /private/tmp" COVER,
	 .host = "/tmp>private/tmp /private/tmp/claude/x", .host_tmp = "/private/tmp"},
	{"... not where it leads into the view", "--ro-bind / / sh", "--ro-bind / / " VIEW COVER,
	 .host = "/private/tmp>/tmp"},
	{"... not without the rule", "--ro-bind / / sh", "--ro-bind / / " VIEW COVER,
	 .host = "/private/tmp/free/x"},
	{"read-only is no denial", "--tmpfs /tmp --bind /tmp/ws /tmp/a sh",
	 VIEW " --bind /tmp/ws /tmp/a", "d:/tmp/a", .states = "r"},
	{"a denied name before the anchor is hidden anyway", "--dir /tmp/claude --ro-bind / / sh",
	 "--dir /tmp/claude --ro-bind / / " VIEW COVER},
	{"the rule's path elsewhere", "--ro-bind / / --tmpfs /home/u/claude sh",
	 "--ro-bind / / " VIEW " --tmpfs /home/u/claude" COVER},
	{"a source that is missing", "--ro-bind / / --bind /nope /mnt sh", NULL, NULL, "0"},
	{"one that cannot be reached", "--ro-bind / / --ro-bind-try /secret/x /mnt sh", NULL, NULL,
	 "0"},
	{"one that vanished, bound onto itself: perhaps a stub",
	 "--ro-bind / / --ro-bind /home/u/ws/.gone /home/u/ws/.gone sh",
	 "--ro-bind / / " VIEW " --ro-bind /home/u/ws/.gone /home/u/ws/.gone" COVER},
	{"... not below /tmp", "--ro-bind / / --ro-bind /tmp/gone /tmp/gone sh", NULL,
	 "f:/tmp/gone", "0"},
	{"... not writable", "--ro-bind / / --bind /home/u/gone /home/u/gone sh", NULL, NULL, "0"},
	{"below a file", "--ro-bind / / --ro-bind /etc/passwd/x /mnt sh", NULL, NULL, "0"},
	{"relative sources", "--ro-bind / / --bind ws /tmp/ws sh",
	 "--ro-bind / / " VIEW " --bind ws /tmp/ws" COVER, "d:/tmp/ws"},
};

static const Case covers[] = {
	{"host root elsewhere", "--ro-bind /bin /bin --bind / /mnt sh",
	 VIEW " --ro-bind /bin /bin --bind / /mnt --ro-bind " EMPTY " /mnt/run/user/9/nest"},
	{"a directory on the way", "--tmpfs / --bind /run/user /r sh",
	 "--tmpfs / " VIEW " --bind /run/user /r --ro-bind " EMPTY " /r/9/nest"},
	{"the runtime directory itself", "--tmpfs / --bind /run/user/9/nest /r sh",
	 "--tmpfs / " VIEW " --bind /run/user/9/nest /r --ro-bind " EMPTY " /r"},
	{"by a link", "--tmpfs / --bind /var/run /r sh",
	 "--tmpfs / " VIEW " --bind /var/run /r --ro-bind " EMPTY " /r/user/9/nest"},
	{"by a descriptor", "--tmpfs / --ro-bind-fd 6 /r sh",
	 "--tmpfs / " VIEW " --ro-bind-fd 6 /r --ro-bind " EMPTY " /r/run/user/9/nest"},
	{"at a destination that leads out of the root", "--ro-bind /srv/rootfs / --bind / /out sh",
	 "--ro-bind /srv/rootfs / " VIEW " --bind / /out --ro-bind " EMPTY " /out/run/user/9/nest"},
	{"at a destination that is a link of the root", "--ro-bind / / --bind /run /var/run sh",
	 "--ro-bind / / " VIEW " --bind /run /var/run" COVER},
	{"hidden later", "--ro-bind / / --tmpfs /run sh", "--ro-bind / / " VIEW " --tmpfs /run"},
	{"hidden later by a link", "--ro-bind / / --tmpfs /var/run sh",
	 "--ro-bind / / " VIEW " --tmpfs /var/run"},
	{"hidden and shown again", "--ro-bind / / --tmpfs /run --bind /run/user /run/user sh",
	 "--ro-bind / / " VIEW " --tmpfs /run --bind /run/user /run/user" COVER},
	{"twice", "--ro-bind / / --bind / /mnt sh",
	 "--ro-bind / / " VIEW " --bind / /mnt" COVER " --ro-bind " EMPTY " /mnt/run/user/9/nest"},
	{"shown nowhere", "--ro-bind /etc /etc --ro-bind /home /home sh",
	 VIEW " --ro-bind /etc /etc --ro-bind /home /home"},
	{"under a root that is not the host's", "--ro-bind /srv/rootfs / --ro-bind /etc /etc sh",
	 "--ro-bind /srv/rootfs / " VIEW " --ro-bind /etc /etc"},
	{"bound onto itself", "--ro-bind / / --bind /run/user/9/nest /run/user/9/nest sh",
	 "--ro-bind / / " VIEW " --bind /run/user/9/nest /run/user/9/nest" COVER},
	{"the caller's own tmpfs over it", "--ro-bind / / --tmpfs /run/user/9/nest sh",
	 "--ro-bind / / " VIEW " --tmpfs /run/user/9/nest"},
	{"mounts below it would be hidden",
	 "--ro-bind / / --tmpfs /run/user/9/nest/x --ro-bind /dev/null /run/user/9/nest/y sh",
	 "--ro-bind / / " VIEW COVER, NULL, "8 8"},
	{"... not when something else hides it",
	 "--ro-bind / / --tmpfs /run --dir /run/user/9/nest/x sh",
	 "--ro-bind / / " VIEW " --tmpfs /run --dir /run/user/9/nest/x"},
	{"a bind below /tmp", "--ro-bind / / --bind / /tmp/host sh",
	 "--ro-bind / / " VIEW " --bind / /tmp/host" COVER " --ro-bind " EMPTY
	 " /tmp/host/run/user/9/nest",
	 "d:/tmp/host"},
	{"a bind below /tmp that the view hides", "--bind / /tmp/host --tmpfs /tmp sh",
	 "--bind / /tmp/host " VIEW},
	{"a source in the runtime directory", "--ro-bind / / --bind /run/user/9/nest/view /mnt sh",
	 NULL, NULL, "1"},
	{"... also as -try, which then does nothing",
	 "--ro-bind / / --bind-try /run/user/9/nest/view/tmp /mnt sh", "--ro-bind / / " VIEW COVER},
	{"... by a link", "--ro-bind / / --bind /var/run/user/9/nest/view /mnt sh", NULL, NULL,
	 "1"},
	{"a source in the store", "--ro-bind / / --bind /var/lib/nest/n1 /mnt sh", NULL, NULL, "1"},
	{"an overlay of what holds the store", "--overlay-src /var --tmp-overlay /v sh", NULL, NULL,
	 "2"},
	{"... as its upper layer", "--overlay-src /etc --overlay / /home/u/ws /v sh", NULL, NULL,
	 "2"},
	{"an overlay of something else",
	 "--tmpfs / --overlay-src /etc --overlay /home/u /home/u/ws /v sh",
	 "--tmpfs / " VIEW " --overlay-src /etc --overlay /home/u /home/u/ws /v"},
};

static const Case needs[] = {
	{"the program", "--ro-bind / / -- /tmp/tool x",
	 "--ro-bind / / " VIEW " --ro-bind /tmp/tool /tmp/tool" COVER, "f:/tmp/tool", "10"},
	{"... bound by the caller", "--ro-bind / / --ro-bind /tmp/tool /tmp/tool -- /tmp/tool x",
	 "--ro-bind / / " VIEW " --ro-bind /tmp/tool /tmp/tool" COVER, "f:/tmp/tool"},
	{"... not one that cannot be executed", "--ro-bind / / -- /tmp/script.sh",
	 "--ro-bind / / " VIEW COVER},
	{"... not below another root", "--ro-bind /srv/rootfs / -- /tmp/tool",
	 "--ro-bind /srv/rootfs / " VIEW},
	{"not after a language's program text", "--ro-bind / / -- perl -e /tmp/script.sh",
	 "--ro-bind / / " VIEW COVER},
	{"not after a shell's", "--ro-bind / / -- sh -lc /tmp/script.sh",
	 "--ro-bind / / " VIEW COVER},
	{"an interpreter's script", "--ro-bind / / -- /bin/sh -ex /tmp/script.sh /tmp/ca.pem",
	 "--ro-bind / / " VIEW " --ro-bind /tmp/script.sh /tmp/script.sh" COVER, "f:/tmp/script.sh",
	 "10"},
	{"not what a command's text names", "--ro-bind / / -- sh -c cat~/tmp/script.sh~/tmp/tool",
	 "--ro-bind / / " VIEW COVER},
	{"not another program's words", "--ro-bind / / -- cat /tmp/script.sh /tmp/tool",
	 "--ro-bind / / " VIEW COVER},
	{"never a socket", "--setenv SSH_AUTH_SOCK /tmp/agent --ro-bind / / -- sh /tmp/agent",
	 "--setenv SSH_AUTH_SOCK /tmp/agent --ro-bind / / " VIEW COVER},
	{"the runtime's seccomp helper",
	 "--ro-bind / / -- sh -c /tmp/srt/vendor/seccomp/x64/apply-seccomp~sh~-c~x",
	 "--ro-bind / / " VIEW " --ro-bind /tmp/srt/vendor/seccomp/x64/apply-seccomp "
	 "/tmp/srt/vendor/seccomp/x64/apply-seccomp" COVER,
	 "f:/tmp/srt/vendor/seccomp/x64/apply-seccomp", "10"},
	{"... in quotes with a blank",
	 "--ro-bind / / -- sh -c x;~'/tmp/my~dir/vendor/seccomp/x64/apply-seccomp'~sh",
	 "--ro-bind / / " VIEW " --ro-bind /tmp/my~dir/vendor/seccomp/x64/apply-seccomp "
	 "/tmp/my~dir/vendor/seccomp/x64/apply-seccomp" COVER,
	 "f:/tmp/my~dir/vendor/seccomp/x64/apply-seccomp", "10"},
	{"files that --setenv names",
	 "--setenv NODE_EXTRA_CA_CERTS /tmp/ca.pem --setenv X /tmp/ws --ro-bind / / -- sh",
	 "--setenv NODE_EXTRA_CA_CERTS /tmp/ca.pem --setenv X /tmp/ws --ro-bind / / " VIEW
	 " --ro-bind /tmp/ca.pem /tmp/ca.pem" COVER,
	 "f:/tmp/ca.pem", "10"},
	{"java's agent",
	 "--setenv JAVA_TOOL_OPTIONS -Xmx1g~-javaagent:/tmp/srt/agent.jar=a,b~-Dx "
	 "--ro-bind / / -- sh",
	 "--setenv JAVA_TOOL_OPTIONS -Xmx1g~-javaagent:/tmp/srt/agent.jar=a,b~-Dx --ro-bind / "
	 "/ " VIEW " --ro-bind /tmp/srt/agent.jar /tmp/srt/agent.jar" COVER,
	 "f:/tmp/srt/agent.jar", "10"},
	{"cwd in the host's /tmp", "--ro-bind / / sh", NULL, NULL, "3", "/tmp/ws/src"},
	{"... bound", "--ro-bind / / --bind /tmp/ws /tmp/ws sh",
	 "--ro-bind / / " VIEW " --bind /tmp/ws /tmp/ws" COVER, "d:/tmp/ws", NULL, "/tmp/ws/src"},
	{"... bound from elsewhere, without it", "--ro-bind / / --bind /home/u /tmp/ws sh", NULL,
	 "d:/tmp/ws", "3", "/tmp/ws/src"},
	{"... with --chdir", "--ro-bind / / --chdir / sh", "--ro-bind / / " VIEW " --chdir /" COVER,
	 NULL, NULL, "/tmp/ws/src"},
	{"... made by the line", "--ro-bind / / --dir /tmp/ws/src sh",
	 "--ro-bind / / " VIEW " --dir /tmp/ws/src" COVER, NULL, NULL, "/tmp/ws/src"},
	{"... made on the way to something else", "--ro-bind / / --tmpfs /tmp/ws/src/deep sh",
	 "--ro-bind / / " VIEW " --tmpfs /tmp/ws/src/deep" COVER, "d:/tmp/ws/src/deep", NULL,
	 "/tmp/ws/src"},
	{"... in /tmp itself", "--ro-bind / / sh", "--ro-bind / / " VIEW COVER, NULL, NULL, "/tmp"},
	{"... where bwrap alone would not show it either", "--ro-bind / / --tmpfs /tmp sh",
	 "--ro-bind / / " VIEW COVER, NULL, NULL, "/tmp/ws"},
	{"... where the caller's own /tmp is used", "--ro-bind / / --bind /tmp /tmp sh",
	 "--ro-bind / / --bind /tmp /tmp" COVER, NULL, "5", "/tmp/ws", .no_view = true},
	{"cwd in /var/tmp", "--ro-bind / / sh", NULL, NULL, "3", "/var/tmp/x", "/var/tmp/x/",
	 .var_tmp = true},
	{"cwd in /var/tmp without its view", "--ro-bind / / sh", "--ro-bind / / " VIEW COVER, NULL,
	 NULL, "/var/tmp/x", "/var/tmp/x/"},
};

#define SET_TMPDIR " --setenv TMPDIR /tmp"

static const Case tmpdirs[] = {
	{"denied", "--setenv TMPDIR /tmp/claude --tmpfs / sh",
	 "--setenv TMPDIR /tmp/claude --tmpfs / " VIEW SET_TMPDIR, NULL, "9",
	 .in_view = "/tmp/claude"},
	{"missing in the view", "--setenv TMPDIR /tmp/x --tmpfs / sh",
	 "--setenv TMPDIR /tmp/x --tmpfs / " VIEW SET_TMPDIR, NULL, "9"},
	{"there in the view", "--setenv TMPDIR /tmp/x --tmpfs / sh",
	 "--setenv TMPDIR /tmp/x --tmpfs / " VIEW, .in_view = "/tmp/x"},
	{"inherited", "--tmpfs / sh", "--tmpfs / " VIEW SET_TMPDIR, NULL, "9", .tmpdir = "/tmp/x"},
	{"unset by the line", "--unsetenv TMPDIR --tmpfs / sh", "--unsetenv TMPDIR --tmpfs / " VIEW,
	 .tmpdir = "/tmp/x"},
	{"bound", "--ro-bind / / --bind /tmp/scratch /tmp/scratch sh",
	 "--ro-bind / / " VIEW " --bind /tmp/scratch /tmp/scratch" COVER, "d:/tmp/scratch",
	 .tmpdir = "/tmp/scratch"},
	{"/tmp itself", "--setenv TMPDIR /tmp/ --tmpfs / sh",
	 "--setenv TMPDIR /tmp/ --tmpfs / " VIEW},
	{"elsewhere, there", "--ro-bind / / sh", "--ro-bind / / " VIEW COVER, .tmpdir = "/home/u"},
	{"elsewhere, missing", "--ro-bind / / sh", "--ro-bind / / " VIEW COVER SET_TMPDIR, NULL,
	 "9", .tmpdir = "/private/tmp/claude"},
	{"elsewhere, made by the line", "--ro-bind / / --tmpfs /scratch sh",
	 "--ro-bind / / " VIEW " --tmpfs /scratch" COVER, .tmpdir = "/scratch"},
	{"elsewhere under a root unknown to us", "--tmpfs / sh", "--tmpfs / " VIEW,
	 .tmpdir = "/nope"},
	{"without a view", "--bind /tmp /tmp sh", "--bind /tmp /tmp", NULL, "5", .no_view = true,
	 .tmpdir = "/tmp/x"},
};

/* A line of sandbox-runtime, shortened, as the worker makes it. */
static const Case runtimes[] = {
	{"sandbox-runtime",
	 "--new-session --die-with-parent --unshare-net --bind /tmp/http.sock /tmp/http.sock "
	 "--bind /tmp/socks.sock /tmp/socks.sock --setenv TMPDIR /tmp/claude --ro-bind / / "
	 "--bind /home/u/ws /home/u/ws --bind /tmp/scratch /tmp/scratch --bind /tmp/claude "
	 "/tmp/claude --tmpfs /tmp/claude --bind /tmp/claude /tmp/claude --ro-bind /dev/null "
	 "/home/u/ws/.bashrc --ro-bind /tmp/empty-1 /home/u/ws/.claude --ro-bind /tmp/empty-1 "
	 "/tmp/empty-1 --dev /dev --unshare-pid --unshare-user --proc /proc -- /bin/sh -c x",
	 "--new-session --die-with-parent --unshare-net --bind /tmp/http.sock /tmp/http.sock "
	 "--bind /tmp/socks.sock /tmp/socks.sock --setenv TMPDIR /tmp/claude --ro-bind / / " VIEW
	 " --ro-bind /tmp/http.sock /tmp/http.sock --ro-bind /tmp/socks.sock /tmp/socks.sock "
	 "--bind /home/u/ws /home/u/ws --bind /tmp/scratch /tmp/scratch --ro-bind /dev/null "
	 "/home/u/ws/.bashrc --ro-bind /tmp/empty-1 /home/u/ws/.claude --ro-bind /tmp/empty-1 "
	 "/tmp/empty-1 --dev /dev --unshare-pid --unshare-user --proc /proc" COVER SET_TMPDIR,
	 "f:/tmp/http.sock f:/tmp/socks.sock d:/tmp/scratch d:/tmp/claude d:/tmp/claude "
	 "d:/tmp/claude d:/tmp/empty-1",
	 "7 7 7 9"},
};

static bool exists(void *data, const char *path)
{
	const char *there = data;

	return there && strcmp(path, there) == 0;
}

typedef struct Run {
	char text[4096], host_text[4096];
	const char *words[256];
	const char *files[256];
	Host host;
	TnBwrapLine line;
	TnSpliceFacts facts;
	TnSplice splice;
} Run;

static const char *const covered[] = {"/run/user/9/nest", "/var/lib/nest", NULL};

static int plan(Run *run, const Case *row)
{
	char why[TN_BWRAP_WHY_MAX];
	size_t n;

	*run = (Run){0};
	snprintf(run->text, sizeof(run->text), "%s", row->line);
	n = split(run->text, run->words, TN_ARRAY_LEN(run->words));
	if (tn_bwrap_parse(&run->line, run->words, n, load, NULL, why) != 0)
		fail_msg("%s: %s", row->name, why);
	snprintf(run->host_text, sizeof(run->host_text), "%s %s", row->host ? row->host : "",
		 usual);
	run->host.files = run->files;
	run->host.n = split(run->host_text, run->files, TN_ARRAY_LEN(run->files));
	run->facts = (TnSpliceFacts){
		.resolve = resolve,
		.data = &run->host,
		.host_tmp = row->host_tmp ? row->host_tmp : "/tmp",
		.host_var_tmp = row->var_tmp ? "/var/tmp" : NULL,
		.cwd = row->cwd ? row->cwd : "/home/u",
		.tmpdir = row->tmpdir,
		.covered = covered,
	};
	return tn_splice_plan(&run->splice, &run->line, &run->facts);
}

static void check_points(const Case *row, const TnSplice *splice)
{
	char text[2048] = "";

	for (size_t i = 0; i < splice->n_points; i++) {
		const TnSplicePoint *point = &splice->points[i];
		size_t used = strlen(text);

		snprintf(text + used, sizeof(text) - used, "%s%c:%s", i ? " " : "",
			 point->kind == TN_MOUNT_POINT_DIR ? 'd' : 'f', point->path);
	}
	for (char *c = text; *c; c++)
		if (strncmp(c, "my dir", 6) == 0)
			c[2] = '~';
	if (strcmp(text, row->points ? row->points : "") != 0)
		fail_msg("%s: points \"%s\"", row->name, text);
}

static void check_notes(const Case *row, const TnSplice *splice)
{
	char text[256] = "";

	for (size_t i = 0; i < splice->n_notes; i++) {
		size_t used = strlen(text);

		snprintf(text + used, sizeof(text) - used, "%s%d", i ? " " : "",
			 (int)splice->notes[i].kind);
		assert_true(strlen(splice->notes[i].text) > 10);
	}
	if (strcmp(text, row->notes ? row->notes : "") != 0)
		fail_msg("%s: notes \"%s\" (%s)", row->name, text,
			 splice->n_notes ? splice->notes[0].text : "");
}

static void check_block(const Case *row, char *block, size_t size)
{
	char expected[4096];

	for (size_t i = 0; i < size; i++)
		block[i] = block[i] == ' ' ? '~' : block[i] ? block[i] : ' ';
	if (size > 0)
		block[size - 1] = '\0';
	snprintf(expected, sizeof(expected), "%s", row->expected);
	if (strcmp(block, expected) != 0)
		fail_msg("%s:\n got %s\nwant %s", row->name, block, expected);
}

static void run_case(const Case *row)
{
	static const char *const denied[] = {"/claude", "/tmp/other/*.d", "/private/tmp/third",
					     "/var/tmp/claude"};
	TnMountPointState states[32];
	TnSpliceReply reply = {
		.runtime_dir = "/run/user/9/nest",
		.place = PLACE,
		.empty = EMPTY,
		.denied = denied,
		.n_denied = TN_ARRAY_LEN(denied),
		.exists = exists,
		.data = (void *)row->in_view,
		.sync_fd = -1,
	};
	Run run;
	char *block = NULL;
	size_t size;
	int r = plan(&run, row);

	check_points(row, &run.splice);
	if (!row->expected) {
		/* a missing source below the view is refused with the reply only */
		if (r == 0)
			r = tn_splice_emit(&run.splice, &reply, &block, &size);
		if (r != -EINVAL)
			fail_msg("%s: %d", row->name, r);
		check_notes(row, &run.splice);
		assert_true(tn_splice_note_refuses(run.splice.notes[0].kind));
	} else {
		if (r != 0)
			fail_msg("%s: %d %s", row->name, r, run.splice.notes[0].text);
		assert_int_equal(run.splice.views[TN_SPLICE_TMP].wanted, !row->no_view);
		for (size_t i = 0; i < run.splice.n_points; i++)
			states[i] = !row->states            ? TN_POINT_PINNED
				    : row->states[i] == 'd' ? TN_POINT_DENIED
				    : row->states[i] == 'r' ? TN_POINT_READ_ONLY
							    : TN_POINT_PINNED;
		reply.states = states;
		assert_int_equal(tn_splice_emit(&run.splice, &reply, &block, &size), 0);
		check_notes(row, &run.splice);
		check_block(row, block, size);
	}
	free(block);
	tn_splice_clear(&run.splice);
	tn_bwrap_clear(&run.line);
}

#define TEST_TABLE(table) \
	static void test_##table(void **state) \
	{ \
		for (size_t i = 0; i < TN_ARRAY_LEN(table); i++) \
			run_case(&table[i]); \
	}

TEST_TABLE(anchors)
TEST_TABLE(replays)
TEST_TABLE(mounts)
TEST_TABLE(covers)
TEST_TABLE(needs)
TEST_TABLE(tmpdirs)
TEST_TABLE(runtimes)

/* Masks as "f:PATH", "d:PATH" and "v:PATH". */
static void test_masks(void **state)
{
	static const struct {
		const char *line, *expected;
	} rows[] = {
		{"--ro-bind / / --bind /home/u/ws /home/u/ws --ro-bind /dev/null /home/u/ws/.a "
		 "--ro-bind /tmp/empty-1 /home/u/ws/.b --ro-bind /home/u/ws/.c /home/u/ws/.c "
		 "--ro-bind /home/u/.ssh /home/u/.ssh sh",
		 "f:/home/u/ws/.a d:/home/u/ws/.b v:/home/u/ws/.c d:/home/u/.ssh"},
		{"--ro-bind / / --bind /dev/null /home/u/x sh", ""},
		{"--ro-bind / / --ro-bind-try /dev/null /home/u/x sh", "f:/home/u/x"},
		{"--ro-bind / / --ro-bind-try /home/u/x /home/u/x sh", ""},
		{"--ro-bind / / --ro-bind /dev/null /tmp/x sh", ""},
		{"--ro-bind / / --bind /etc /home/u/ws --ro-bind /dev/null /home/u/ws/x sh", ""},
		{"--ro-bind / / --tmpfs /home/u --ro-bind /dev/null /home/u/x sh", ""},
		{"--ro-bind / / --tmpfs /home/u --bind /home/u/ws /home/u/ws --ro-bind /dev/null "
		 "/home/u/ws/x sh",
		 "f:/home/u/ws/x"},
		{"--ro-bind /srv/rootfs / --ro-bind /dev/null /x sh", ""},
		{"--tmpfs / --ro-bind /dev/null /x sh", ""},
	};

	for (size_t i = 0; i < TN_ARRAY_LEN(rows); i++) {
		const Case row = {.name = rows[i].line, .line = rows[i].line};
		TnSpliceMask *masks;
		char text[512] = "";
		Run run;
		size_t n;

		assert_int_equal(plan(&run, &row), 0);
		assert_int_equal(tn_splice_masks(&run.splice, &masks, &n), 0);
		for (size_t j = 0; j < n; j++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%c:%s",
				 j ? " " : "",
				 masks[j].vanished ? 'v'
				 : masks[j].as_dir ? 'd'
						   : 'f',
				 masks[j].path);
		if (strcmp(text, rows[i].expected) != 0)
			fail_msg("%s: %s", row.name, text);
		free(masks);
		tn_splice_clear(&run.splice);
		tn_bwrap_clear(&run.line);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_anchors),  cmocka_unit_test(test_replays),
		cmocka_unit_test(test_mounts),   cmocka_unit_test(test_covers),
		cmocka_unit_test(test_needs),    cmocka_unit_test(test_tmpdirs),
		cmocka_unit_test(test_runtimes), cmocka_unit_test(test_masks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
