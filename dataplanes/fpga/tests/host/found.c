/* SPDX-License-Identifier: Apache-2.0 */
/* What the plane in the kernel finds in a frame, and what it puts before a packet, for tests of
 * gates: qw_find, qw_is_to_us, qw_sender_of and qw_address, compiled for this machine. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "in_xdp.h"
#include "frame.h"

/* A frame's addresses have 32 bits there. */
#define FRAME_BYTES_MAX 65536

/* Of the planes: one for all groups, then each group's. */
struct place {
	__u32 vlan;
	__u8 multicast[4];
	struct qw_endpoint at[QW_GROUPS_MAX];
};

struct found {
	__u32 at;
	__u32 bytes;
	__u32 group;
	__u32 to_group;
	struct qw_endpoint sender;
};

int qw_found(const struct place *place, const void *frame, __u32 bytes, struct found *found);
int qw_sent(const struct place *place, __u32 group, const struct qw_endpoint *to, const void *packet, __u32 bytes,
	    void *frame);

/* The constants of a loaded program are written once, before it runs. */
static int place_planes(const struct place *place)
{
	struct qw_config config = { .ring_slots = 64, .groups = QW_GROUPS_MAX, .vlan = place->vlan };
	__u64 page = (__u64)&qw_config & ~4095ULL;
	int group;

	memcpy(&config.multicast, place->multicast, sizeof(config.multicast));
	if (mprotect((void *)page, 8192, PROT_READ | PROT_WRITE))
		return -1;
	memcpy((void *)&qw_config, &config, sizeof(config));
	for (group = 0; group < QW_GROUPS_MAX; group++)
		memcpy((void *)&qw_own[group].at, &place->at[group], sizeof(struct qw_endpoint));
	return 0;
}

static __u8 *low_memory(void)
{
	static __u8 *low;

	if (!low)
		low = mmap(NULL, FRAME_BYTES_MAX, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	return low == MAP_FAILED ? NULL : low;
}

/* 1: it is to one of the planes; 0: it is not; negative: this could not be found out. */
int qw_found(const struct place *place, const void *frame, __u32 bytes, struct found *found)
{
	__u8 *low = low_memory();
	struct qw_frame in;
	struct xdp_md ctx;

	if (!low || bytes > FRAME_BYTES_MAX || place_planes(place))
		return -1;
	memcpy(low, frame, bytes);
	ctx.data = (__u32)(__u64)low;
	ctx.data_end = ctx.data + bytes;
	if (!qw_find(&ctx, &in) || !qw_is_to_us(&ctx, &in))
		return 0;
	found->at = in.at;
	found->bytes = in.bytes;
	found->group = in.group_slot;
	found->to_group = in.to_group;
	return qw_sender_of(&ctx, &in, &found->sender);
}

/* Bytes of the frame that is made, at most 66 more than the packet; negative: it could not be. */
int qw_sent(const struct place *place, __u32 group, const struct qw_endpoint *to, const void *packet, __u32 bytes,
	    void *frame)
{
	static const __u8 mapped[12] = { [10] = 0xff, [11] = 0xff };
	const struct qw_endpoint *own = &place->at[group];
	__u8 *low = low_memory();
	struct qw_frame out = { .group_slot = group, .bytes = bytes, .own_port = own->port };
	struct xdp_md ctx;

	if (!low || place_planes(place))
		return -1;
	out.is_ipv6 = memcmp(own->address, mapped, sizeof(mapped)) != 0;
	out.ip = QW_ETHERNET_BYTES + (place->vlan ? QW_VLAN_BYTES : 0);
	out.at = out.ip + (out.is_ipv6 ? QW_IPV6_BYTES : QW_IPV4_BYTES) + QW_UDP_BYTES;
	memcpy(low + out.at, packet, bytes);
	ctx.data = (__u32)(__u64)low;
	ctx.data_end = ctx.data + out.at + bytes;
	if (!qw_address(&ctx, &out, to, bytes))
		return -1;
	memcpy(frame, low, out.at + bytes);
	return (int)(out.at + bytes);
}
