/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "charge.h"

#include "journal.h"
#include "resolve.h"

#include <errno.h>
#include <sys/stat.h>

/* Such a store's bytes are in no account: nothing is known of a file, or settled. */
static bool is_uncounted(const TnNest *nest, TnReservation *reservation)
{
	if (nest->store.kernel_counts && reservation)
		tn_reservation_clear(reservation);
	return nest->store.kernel_counts;
}

static uint64_t page_of(uint64_t offset)
{
	return offset / TN_PAGE_SIZE;
}

/* First page after the byte range that ends at `end`. */
static uint64_t page_end(uint64_t end)
{
	return end / TN_PAGE_SIZE + (end % TN_PAGE_SIZE ? 1 : 0);
}

/* The node is charged this much from now on, in the account as well. */
static void set_pages(TnNest *nest, TnNode *node, uint64_t pages, uint8_t charge,
		      TnReservation *reservation)
{
	TnChange change = {
		.bytes = ((int64_t)pages - (int64_t)node->pages) * (int64_t)TN_PAGE_SIZE,
		.node = (uint32_t)(node - nest->arena.nodes),
		.pages = pages,
		.charge = charge,
	};

	if (pages != node->pages || charge != node->charge)
		tn_journal_settle(nest, reservation, &change);
	else if (reservation)
		tn_reservation_clear(reservation);
}

static int64_t count_pages(TnNest *nest, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return nest->store.ops->pages(fd, &st);
}

void tn_charge_note(TnNode *node, uint64_t pages, uint8_t more)
{
	/* In this order for a successor: `pages` counts once the charge is known. */
	*(volatile uint64_t *)&node->pages = pages;
	*(volatile uint8_t *)&node->charge = node->charge | TN_CHARGE_KNOWN | more;
}

int tn_charge_load(TnNest *nest, TnNode *node, int fd)
{
	int64_t pages;

	if ((node->charge & TN_CHARGE_KNOWN) || is_uncounted(nest, NULL))
		return 0;
	pages = count_pages(nest, fd);
	if (pages < 0)
		return (int)pages;
	/* Whether its pages are the first ones is not known, so it counts as sparse. */
	tn_charge_note(node, (uint64_t)pages, pages > 0 ? TN_CHARGE_SPARSE : 0);
	return 0;
}

int tn_charge_missing(TnNest *nest, TnNode *node, int fd, uint64_t offset, uint64_t size,
		      uint64_t *ret_pages, bool *ret_exact)
{
	uint64_t first = page_of(offset), end = page_end(offset + size);
	int64_t present;

	*ret_exact = true;
	if (size == 0 || is_uncounted(nest, NULL)) {
		*ret_pages = 0;
		return 0;
	}
	if (!(node->charge & TN_CHARGE_SPARSE)) {
		uint64_t from = first > node->pages ? first : node->pages;

		*ret_pages = end > from ? end - from : 0;
		return 0;
	}
	present = nest->store.ops->pages_in(fd, first, end - first);
	if (present == -EOPNOTSUPP) {
		*ret_exact = false;
		*ret_pages = end - first;
		return 0;
	}
	if (present < 0)
		return (int)present;
	*ret_pages = end - first - (uint64_t)present;
	return 0;
}

int tn_charge_grown(TnNest *nest, TnNode *node, int fd, uint64_t offset, uint64_t done,
		    uint64_t missing, bool exact, TnReservation *reservation)
{
	uint64_t first = page_of(offset), end = page_end(offset + done), pages = node->pages;
	uint8_t charge = node->charge;

	if (is_uncounted(nest, reservation))
		return 0;
	if (done == 0) {
		/* A failed call may have left storage behind all the same. */
		return tn_charge_recount(nest, node, fd, reservation);
	}
	if (!exact || reservation->bytes < missing * TN_PAGE_SIZE)
		return tn_charge_recount(nest, node, fd, reservation);
	if (!(charge & TN_CHARGE_SPARSE) && first > node->pages)
		charge |= TN_CHARGE_SPARSE;
	if (charge & TN_CHARGE_SPARSE)
		pages += missing;
	else if (end > pages)
		pages = end;
	set_pages(nest, node, pages, charge, reservation);
	return 0;
}

int tn_charge_truncated(TnNest *nest, TnNode *node, int fd, uint64_t size)
{
	uint64_t end = page_end(size), now = node->pages;
	uint8_t charge = node->charge;

	if (is_uncounted(nest, NULL))
		return 0;
	if (charge & TN_CHARGE_SPARSE) {
		int64_t pages = count_pages(nest, fd);

		if (pages < 0)
			return (int)pages;
		now = (uint64_t)pages;
		if (now == 0)
			charge &= (uint8_t)~TN_CHARGE_SPARSE;
	} else if (end < now) {
		now = end;
	}
	set_pages(nest, node, now, charge, NULL);
	return 0;
}

int tn_charge_recount(TnNest *nest, TnNode *node, int fd, TnReservation *reservation)
{
	uint8_t charge = node->charge & (uint8_t)~TN_CHARGE_SPARSE;
	int64_t pages;

	if (is_uncounted(nest, reservation))
		return 0;
	pages = count_pages(nest, fd);
	if (pages < 0)
		return (int)pages;
	set_pages(nest, node, (uint64_t)pages, pages > 0 ? charge | TN_CHARGE_SPARSE : charge,
		  reservation);
	return 0;
}

void tn_charge_after_death(TnNest *nest, uint32_t index, uint64_t offset, bool sparse)
{
	TnNode *node = tn_node_at(nest->table, index);
	TN_FD file = TN_FD_NONE;
	int64_t pages;
	uint8_t charge;

	if (is_uncounted(nest, NULL) || !(node->charge & TN_CHARGE_KNOWN) ||
	    tn_resolve_file(nest, index, &file) < 0)
		return;
	pages = count_pages(nest, file.fd);
	if (pages < 0)
		return;
	charge = node->charge;
	/* What begins within the first pages leaves the file without holes. */
	if (pages > 0 && (sparse || page_of(offset) > node->pages))
		charge |= TN_CHARGE_SPARSE;
	set_pages(nest, node, (uint64_t)pages, charge, NULL);
}

int tn_charge_directory_load(TnNest *nest, TnNode *node, int fd)
{
	struct stat st;

	if ((node->charge & TN_CHARGE_KNOWN) || !nest->store.ops->directories_grow)
		return 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	tn_charge_note(node, nest->store.ops->directory_pages(&st), 0);
	return 0;
}

int tn_charge_directory(TnNest *nest, TnNode *node, int fd)
{
	TN_RESERVATION reservation = {0};
	struct stat st;
	uint64_t now;
	int r = 0;

	if (!nest->store.ops->directories_grow || !(node->charge & TN_CHARGE_KNOWN))
		return 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	now = nest->store.ops->directory_pages(&st);
	if (now > node->pages) {
		uint64_t bytes = (now - node->pages) * TN_PAGE_SIZE;

		/* Refused, it is charged all the same. */
		r = tn_nest_reserve(nest, bytes, 0, &reservation);
	}
	set_pages(nest, node, now, node->charge, &reservation);
	return r;
}
