/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "charge.h"

#include <errno.h>
#include <sys/stat.h>

static uint64_t page_of(uint64_t offset)
{
	return offset / TN_PAGE_SIZE;
}

/* First page after the byte range that ends at `end`. */
static uint64_t page_end(uint64_t end)
{
	return end / TN_PAGE_SIZE + (end % TN_PAGE_SIZE ? 1 : 0);
}

static int64_t count_pages(TnNest *nest, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return nest->store.ops->pages(fd, &st);
}

int tn_charge_load(TnNest *nest, TnNode *node, int fd)
{
	int64_t pages;

	if (node->charge & TN_CHARGE_KNOWN)
		return 0;
	pages = count_pages(nest, fd);
	if (pages < 0)
		return (int)pages;
	node->pages = (uint64_t)pages;
	node->charge |= TN_CHARGE_KNOWN;
	/* Whether its pages are the first ones is not known, so it counts as sparse. */
	if (pages > 0)
		node->charge |= TN_CHARGE_SPARSE;
	return 0;
}

int tn_charge_missing(TnNest *nest, TnNode *node, int fd, uint64_t offset, uint64_t size,
		      uint64_t *ret_pages, bool *ret_exact)
{
	uint64_t first = page_of(offset), end = page_end(offset + size);
	int64_t present;

	*ret_exact = true;
	if (size == 0) {
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
	uint64_t first = page_of(offset), end = page_end(offset + done);

	if (done == 0) {
		/* A failed call may have left storage behind all the same. */
		return tn_charge_recount(nest, node, fd, reservation);
	}
	if (!exact || reservation->bytes < missing * TN_PAGE_SIZE)
		return tn_charge_recount(nest, node, fd, reservation);
	if (!(node->charge & TN_CHARGE_SPARSE) && first > node->pages)
		node->charge |= TN_CHARGE_SPARSE;
	if (!(node->charge & TN_CHARGE_SPARSE)) {
		uint64_t grown = end > node->pages ? end - node->pages : 0;

		node->pages += grown;
		tn_quota_settle(reservation, grown * TN_PAGE_SIZE, 0);
		return 0;
	}
	node->pages += missing;
	tn_quota_settle(reservation, missing * TN_PAGE_SIZE, 0);
	return 0;
}

int tn_charge_truncated(TnNest *nest, TnNode *node, int fd, uint64_t size)
{
	uint64_t end = page_end(size), now = node->pages;

	if (node->charge & TN_CHARGE_SPARSE) {
		int64_t pages = count_pages(nest, fd);

		if (pages < 0)
			return (int)pages;
		now = (uint64_t)pages;
		if (now == 0)
			node->charge &= (uint8_t)~TN_CHARGE_SPARSE;
	} else if (end < now) {
		now = end;
	}
	if (now < node->pages)
		tn_nest_refund(nest, (node->pages - now) * TN_PAGE_SIZE, 0);
	else
		tn_quota_charge(nest->account, (now - node->pages) * TN_PAGE_SIZE, 0);
	node->pages = now;
	return 0;
}

int tn_charge_recount(TnNest *nest, TnNode *node, int fd, TnReservation *reservation)
{
	int64_t pages = count_pages(nest, fd);
	uint64_t now;

	if (pages < 0)
		return (int)pages;
	now = (uint64_t)pages;
	if (now >= node->pages && reservation->account) {
		tn_quota_settle(reservation, (now - node->pages) * TN_PAGE_SIZE, 0);
	} else if (now >= node->pages) {
		tn_quota_charge(nest->account, (now - node->pages) * TN_PAGE_SIZE, 0);
	} else {
		tn_reservation_clear(reservation);
		tn_nest_refund(nest, (node->pages - now) * TN_PAGE_SIZE, 0);
	}
	node->pages = now;
	if (now == 0)
		node->charge &= (uint8_t)~TN_CHARGE_SPARSE;
	else
		node->charge |= TN_CHARGE_SPARSE;
	return 0;
}

int tn_charge_directory_load(TnNest *nest, TnNode *node, int fd)
{
	struct stat st;

	if ((node->charge & TN_CHARGE_KNOWN) || !nest->store.ops->directories_grow)
		return 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	node->pages = nest->store.ops->directory_pages(&st);
	node->charge |= TN_CHARGE_KNOWN;
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

		r = tn_nest_reserve(nest, bytes, 0, &reservation);
		if (r == 0)
			tn_quota_settle(&reservation, bytes, 0);
		else
			tn_quota_charge(nest->account, bytes, 0);
	} else if (now < node->pages) {
		tn_nest_refund(nest, (node->pages - now) * TN_PAGE_SIZE, 0);
	}
	node->pages = now;
	return r;
}
