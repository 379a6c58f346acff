/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Any text as a configuration file: by its first byte the daemon's, the front's as root's or as a
 * user's file, or a nest's description in the store. What is taken is within its bounds.
 */
#include "capacity-config.h"
#include "describe.h"
#include "front-options.h"
#include "log.h"
#include "names.h"
#include "promise.h"

#include <errno.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_capacity(const char *text)
{
	TnCapacity capacity = tn_capacity_default();

	tn_capacity_parse(text, "fuzz", &capacity);
	PROMISE(capacity.reserve != TN_UNLIMITED);
}

static void read_front(const char *text, bool trusted)
{
	TnFrontOptions options = {0};
	int r = tn_front_options_parse(&options, text, "fuzz", trusted);

	PROMISE(r == 0 || r == -EINVAL);
	PROMISE(!options.nest || tn_name_is_valid(options.nest));
	PROMISE(trusted || (!options.program && options.view == TN_FRONT_VIEW_ALWAYS));
	PROMISE(!options.program || options.program[0] == '/');
	tn_front_options_clear(&options);
}

static void read_description(char *text)
{
	TnDescription description = {0};
	int r = tn_describe_parse(text, &description);

	PROMISE(r == 0 || r == -EBADMSG || r == -ENOMEM);
	if (r == 0) {
		PROMISE(tn_name_is_valid(description.name));
		PROMISE(description.policy && description.bytes > 0);
		PROMISE(description.store == TN_STORE_DIR || description.store == TN_STORE_MEMORY ||
			description.store == TN_STORE_IMAGE);
	}
	tn_description_clear(&description);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (size == 0)
		return 0;
	tn_log_init((TnLogLevel)0); /* it would say too much */
	/* exactly this long, and ended */
	text = malloc(size);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0]) {
	case 'c':
		read_capacity(text);
		break;
	case 'n':
		read_description(text);
		break;
	default:
		read_front(text, data[0] == 't');
	}
	free(text);
	return 0;
}
