/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a killed worker has left, with any bytes of it changed: arena (header, nodes, links, names,
 * attachments) and state (nests, a slot with its journal, request and reply). A successor takes
 * it over or gives the nest up; then the nest serves requests and ends as any other.
 *
 * The first byte chooses the request that was in work, the second its slot's state; then come
 * patches: region, offset (2 bytes), length, and that many bytes. Numbers of descriptors stay
 * those of the nest or become ones that are closed: this process shares its table with the fuzzer.
 */
#include "promise.h"
#include "registry-private.h"
#include "scratch.h"
#include "serve.h"
#include "state.h"

#include "dispatch.h"
#include "log.h"
#include "macros.h"
#include "nest-life.h"
#include "ops.h"
#include "sys.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CLOSED_FD 60000 /* and some above */
#define PATCHES_MOST 64

typedef struct Case {
	TnState *state;
	TnServe *serve;
	TnScratch scratch;
	TnRegistry *registry;
	int pipe[2], device; /* the device is a copy of its end: takes replies, gives no request */
	uint64_t unique;
	uint64_t tmp, dir, file;
	int fds[8]; /* what the nest had open, and its arena */
} Case;

/* --- a nest in use --------------------------------------------------------------------------- */

static TnRegistry *new_registry(Case *c)
{
	TnRegistryConfig config = {
		.store_fd = c->scratch.dir,
		.serve = c->serve,
		.default_store = TN_STORE_DIR,
		.default_bytes = 1 << 20,
		.default_inodes = 100,
	};
	TnRegistry *registry = NULL;

	PROMISE(tn_registry_new(&registry, &config) == 0);
	return registry;
}

/* As a serving thread does it, in slot 0. The node id of the entry in the reply, or 0. */
static uint64_t request(Case *c, TnNest *nest, uint32_t opcode, uint64_t node, const void *arg,
			size_t arg_size, const char *names, size_t names_size)
{
	TnSlot *slot = &c->state->slots[0];
	struct fuse_in_header *in = (void *)slot->request;
	TnIdentity identity = {geteuid(), getegid()};
	const struct fuse_out_header *out = (const void *)slot->reply;

	slot->journal.share = 0; /* as a thread's start says it */
	tn_journal_start(&slot->journal);
	*in = (struct fuse_in_header){
		.len = (uint32_t)(sizeof(*in) + arg_size + names_size),
		.opcode = opcode,
		.unique = c->unique += 2,
		.nodeid = node,
		.uid = geteuid(),
		.gid = getegid(),
	};
	if (arg_size)
		memcpy(in + 1, arg, arg_size);
	if (names_size)
		memcpy((uint8_t *)(in + 1) + arg_size, names, names_size);
	slot->nest_id = nest->id;
	slot->device = c->device;
	slot->request_size = in->len;
	atomic_store(&slot->state, TN_SLOT_READ);
	tn_journal_enter(&slot->journal);
	slot->reply_size = tn_dispatch(nest, &identity, slot->request, in->len, slot->reply);
	tn_journal_enter(NULL);
	PROMISE(slot->reply_size <= TN_REPLY_SIZE);
	if (slot->reply_size < sizeof(*out) + sizeof(struct fuse_entry_out) || out->error)
		return 0;
	return ((const struct fuse_entry_out *)(const void *)(out + 1))->nodeid;
}

#define NAME(text) text, sizeof(text)

static void use(Case *c, TnNest *nest)
{
	struct fuse_mkdir_in mkdir_in = {.mode = 0755};
	struct fuse_mknod_in mknod_in = {.mode = S_IFREG | 0644};
	struct {
		struct fuse_write_in in;
		char data[64];
	} write_in = {.in.size = 64};
	struct fuse_link_in link_in;
	uint64_t orphan;

	c->tmp = request(c, nest, FUSE_LOOKUP, 1, NULL, 0, NAME("tmp"));
	c->dir = request(c, nest, FUSE_MKDIR, c->tmp, &mkdir_in, sizeof(mkdir_in), NAME("d"));
	c->file = request(c, nest, FUSE_MKNOD, c->dir, &mknod_in, sizeof(mknod_in), NAME("f"));
	request(c, nest, FUSE_WRITE, c->file, &write_in, sizeof(write_in), NULL, 0);
	link_in.oldnodeid = c->file;
	request(c, nest, FUSE_LINK, c->tmp, &link_in, sizeof(link_in), NAME("second"));
	orphan = request(c, nest, FUSE_MKNOD, c->tmp, &mknod_in, sizeof(mknod_in), NAME("o"));
	request(c, nest, FUSE_UNLINK, c->tmp, NULL, 0, NAME("o"));
	PROMISE(c->tmp && c->dir && c->file && orphan);
}

/* The last one, whose outcome the successor has to find out. */
static void last(Case *c, TnNest *nest, uint8_t kind)
{
	struct fuse_mkdir_in mkdir_in = {.mode = 0755};
	struct fuse_rename2_in rename_in = {.newdir = c->dir};
	struct fuse_setattr_in setattr_in = {.valid = FATTR_SIZE, .size = 9000};
	struct fuse_forget_in forget_in = {.nlookup = 1};
	struct fuse_read_in read_in = {.size = 4096};
	struct fuse_create_in create_in = {.mode = S_IFREG | 0600};
	struct fuse_setxattr_in xattr_in = {.size = 3};
	struct fuse_fallocate_in allocate_in = {.length = 8192};

	switch (kind % 10) {
	case 0:
		request(c, nest, FUSE_MKDIR, c->tmp, &mkdir_in, sizeof(mkdir_in), NAME("new"));
		break;
	case 1:
		request(c, nest, FUSE_RENAME2, c->tmp, &rename_in, sizeof(rename_in),
			NAME("second\0moved"));
		break;
	case 2:
		request(c, nest, FUSE_UNLINK, c->dir, NULL, 0, NAME("f"));
		break;
	case 3:
		request(c, nest, FUSE_SETATTR, c->file, &setattr_in, sizeof(setattr_in), NULL, 0);
		break;
	case 4:
		request(c, nest, FUSE_FORGET, c->file, &forget_in, sizeof(forget_in), NULL, 0);
		break;
	case 5:
		request(c, nest, FUSE_READDIRPLUS, c->tmp, &read_in, sizeof(read_in), NULL, 0);
		break;
	case 6:
		request(c, nest, FUSE_TMPFILE, c->dir, &create_in, sizeof(create_in), NAME("#"));
		break;
	case 7:
		request(c, nest, FUSE_SETXATTR, c->file, &xattr_in, sizeof(xattr_in),
			NAME("user.a\0xyz"));
		break;
	case 8:
		request(c, nest, FUSE_FALLOCATE, c->file, &allocate_in, sizeof(allocate_in), NULL,
			0);
		break;
	case 9:
		request(c, nest, FUSE_RENAME2, c->tmp, &rename_in, sizeof(rename_in),
			NAME("d\0below-itself"));
		break;
	}
}

/* --- its worker dies, and what it left is changed ------------------------------------------- */

/* The nest's memory goes; what it has open and its arena stay. */
static int leave(TnRegistry *registry)
{
	TnNest *nest = registry->list;
	int arena = nest->arena.fd;

	nest->arena.fd = -1;
	nest->home = nest->device = nest->from.fd = -1;
	nest->store = (TnStore){.data = -1, .orphans = -1, .mount = -1, .image = -1};
	nest->state = NULL;
	tn_registry_list_drop(registry, nest);
	tn_registry_free(registry);
	return arena;
}

typedef struct Region {
	uint8_t *at;
	size_t size;
} Region;

static void patch(const Region *regions, size_t n, const uint8_t *data, size_t size)
{
	for (unsigned i = 0; i < PATCHES_MOST && size > 4; i++) {
		const Region *region = &regions[data[0] % n];
		size_t offset = (size_t)(data[1] | data[2] << 8) % region->size;
		size_t length = data[3];

		length = length < size - 4 ? length : size - 4;
		if (length > region->size - offset)
			length = region->size - offset;
		memcpy(region->at + offset, data + 4, length);
		size -= 4 + length;
		data += 4 + length;
	}
}

/* What it was, or one that is not open. */
static int32_t harmless(int32_t changed, int32_t before)
{
	return changed == before || changed == -1 ? changed : CLOSED_FD + (changed & 15);
}

static void keep_descriptors(TnArena *arena, const TnArenaDescriptors *before, int32_t held)
{
	TnArenaDescriptors *now = &arena->header->descriptors;

	now->home = harmless(now->home, before->home);
	now->data = harmless(now->data, before->data);
	now->orphans = harmless(now->orphans, before->orphans);
	now->mount = harmless(now->mount, before->mount);
	now->from = harmless(now->from, before->from);
	now->image = harmless(now->image, before->image);
	atomic_store(&now->device, harmless(atomic_load(&now->device), before->device));
	for (size_t i = 0; i < 64; i++)
		arena->nodes[i].held_fd = harmless(arena->nodes[i].held_fd, held);
}

/* The descriptor of the orphan. */
static int32_t find_held(const TnArena *arena)
{
	for (uint32_t i = 1; i < arena->header->nodes_end; i++)
		if (arena->nodes[i].held_fd >= 0)
			return arena->nodes[i].held_fd;
	return -1;
}

/* The leases that the attachments name would be closed at their end. */
static void no_lease(int fd, void *data)
{
	int *bad = data;

	if (fd >= 0 && fd < CLOSED_FD)
		*bad = 1;
}

static bool change(Case *c, int arena_fd, uint64_t id, const uint8_t *data, size_t size)
{
	TnArenaDescriptors before;
	int32_t held;
	int bad = 0;
	TnSlot *slot = &c->state->slots[0];
	TnArena arena;

	PROMISE(tn_arena_open(&arena, arena_fd, id) == 0);
	before = arena.header->descriptors;
	held = find_held(&arena);
	memcpy(c->fds,
	       (const int[]){before.home, before.data, before.orphans, before.mount, before.from,
			     c->device, held, arena_fd},
	       sizeof(c->fds));
	patch(
		(const Region[]){
			{(uint8_t *)arena.header, sizeof(*arena.header)},
			{(uint8_t *)arena.nodes, 16 * sizeof(TnNode)},
			{(uint8_t *)arena.links, 16 * sizeof(TnLink)},
			{(uint8_t *)arena.names, 512},
			{(uint8_t *)arena.life, 512},
			{(uint8_t *)&c->state->beat,
			 offsetof(TnState, resume) - offsetof(TnState, beat)},
			{(uint8_t *)c->state->nests, 2 * sizeof(TnStateNest)},
			{(uint8_t *)slot,
			 offsetof(TnSlot, journal) + offsetof(TnJournal, given_nodes) + 64},
			{slot->request, 512},
			{slot->reply, 512},
			{(uint8_t *)&c->state->slots[TN_SHARE_WORK],
			 offsetof(TnSlot, journal) + offsetof(TnJournal, given_nodes)},
		},
		11, data, size);
	keep_descriptors(&arena, &before, held);
	tn_life_each_lease(&arena, no_lease, &bad);
	slot->device = harmless(slot->device, c->device);
	c->state->nests[0].arena = harmless(c->state->nests[0].arena, arena_fd);
	c->state->nests[1].arena = harmless(c->state->nests[1].arena, CLOSED_FD);
	arena.fd = -1; /* stays open */
	tn_arena_clear(&arena);
	return !bad;
}

/* --- the successor ------------------------------------------------------------------------- */

static void use_again(Case *c, TnNest *nest)
{
	struct fuse_mkdir_in mkdir_in = {.mode = 0755};
	struct fuse_read_in read_in = {.size = 65536};
	struct fuse_getattr_in getattr_in = {0};
	struct fuse_rename2_in rename_in;
	uint64_t tmp = request(c, nest, FUSE_LOOKUP, 1, NULL, 0, NAME("tmp"));
	uint64_t dir = request(c, nest, FUSE_MKDIR, tmp, &mkdir_in, sizeof(mkdir_in), NAME("x"));

	for (uint64_t node = 1; node < 16; node++) {
		request(c, nest, FUSE_GETATTR, node, &getattr_in, sizeof(getattr_in), NULL, 0);
		request(c, nest, FUSE_READDIRPLUS, node, &read_in, sizeof(read_in), NULL, 0);
		rename_in.newdir = node;
		request(c, nest, FUSE_RENAME2, dir, &rename_in, sizeof(rename_in), NAME("a\0b"));
	}
	request(c, nest, FUSE_RMDIR, tmp, NULL, 0, NAME("x"));
}

static void take_over(Case *c)
{
	TnRegistry *registry = new_registry(c);
	size_t n = 0;
	TnNest **nests = tn_registry_list(registry, (uid_t)-1, &n);

	for (size_t i = 0; i < n; i++) {
		TnNestInfo info;

		tn_nest_info(nests[i], &info);
		use_again(c, nests[i]);
		tn_nest_unref(nests[i]);
	}
	free(nests);
	tn_registry_free(registry);
}

/* --- the store is closed to all but root ------------------------------------------------------ */

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	PROMISE(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* In a namespace of one's own everybody is. */
static void become_root(void)
{
	char uids[32], gids[32];

	if (geteuid() == 0)
		return;
	snprintf(uids, sizeof(uids), "0 %u 1", geteuid());
	snprintf(gids, sizeof(gids), "0 %u 1", getegid());
	PROMISE(unshare(CLONE_NEWUSER) == 0);
	write_text("/proc/self/setgroups", "deny");
	write_text("/proc/self/uid_map", uids);
	write_text("/proc/self/gid_map", gids);
}

/* --- one case ------------------------------------------------------------------------------- */

static void begin(Case *c)
{
	PROMISE(tn_scratch_new(&c->scratch, tn_scratch_tmpfs()));
	PROMISE(tn_state_new(&c->state) == 0);
	/* Its threads are not started: slot 0 is ours. */
	PROMISE(tn_serve_new(&c->serve, c->state) == 0);
	atomic_store(&c->state->slots_end, 1);
	PROMISE(pipe2(c->pipe, O_CLOEXEC | O_NONBLOCK) == 0);
	c->device = fcntl(c->pipe[1], F_DUPFD_CLOEXEC, 3);
	c->registry = new_registry(c);
}

/* Those whose numbers were changed are nobody's now. */
static void close_lost(const Case *c)
{
	for (size_t i = 0; i < TN_ARRAY_LEN(c->fds); i++)
		if (c->fds[i] >= 0 && fcntl(c->fds[i], F_GETFD) >= 0)
			close(c->fds[i]);
}

static void end(Case *c)
{
	tn_serve_free(c->serve);
	tn_state_free(c->state);
	tn_close(&c->pipe[0]);
	tn_close(&c->pipe[1]);
	close_lost(c);
	tn_scratch_remove(&c->scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	TnNestSpec spec = {
		.name = "fuzz", .uid = geteuid(), .gid = getegid(), .keep = true, .from_fd = -1};
	Case c = {.unique = 0};
	char why[256];
	TnNest *nest;
	uint64_t id;
	int arena;

	if (size < 2)
		return 0;
	tn_log_init((TnLogLevel)0); /* it would say too much */
	become_root();
	begin(&c);
	PROMISE(tn_registry_create(c.registry, &spec, &nest, why, sizeof(why)) == 0);
	id = tn_nest_id(nest);
	use(&c, nest);
	last(&c, nest, data[0]);
	atomic_store(&nest->arena.header->descriptors.device, c.device);
	atomic_store(&c.state->slots[0].state, data[1] % 5);
	tn_nest_unref(nest);
	arena = leave(c.registry);
	if (change(&c, arena, id, data + 2, size - 2))
		take_over(&c);
	end(&c);
	return 0;
}
