/* SPDX-License-Identifier: Apache-2.0 */
/* Ethernet, IP and UDP around a packet: finding it, and writing them anew. */
#ifndef QW_FRAME_H
#define QW_FRAME_H

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include "maps.h"

/* Whoever includes this has included in_xdp.h or in_tc.h. */

#define QW_ETHERNET_BYTES 14
#define QW_VLAN_BYTES 4
#define QW_IPV4_BYTES 20
#define QW_IPV6_BYTES 40
#define QW_UDP_BYTES 8
/* Where a packet's own bytes begin at most. */
#define QW_BEFORE_BYTES_MAX \
	(QW_ETHERNET_BYTES + QW_VLAN_BYTES + QW_IPV6_BYTES + QW_UDP_BYTES)

/* Where things stand in a frame. */
struct qw_frame {
	__u32 ip; /* where the IP header begins */
	__u32 at; /* where the packet begins, behind UDP */
	__u32 bytes; /* of the packet */
	__u32 group_slot;
	__u16 is_ipv6;
	__u16 to_group; /* 1: to the address of all replicas, not to our own */
	__u16 is_memcached; /* to the port where memcached clients ask */
	__be16 own_port; /* where answers come from */
};

struct qw_vlan_tag {
	__be16 tci;
	__be16 proto;
};

static __always_inline void *qw_data(const QW_CTX *ctx)
{
	return (void *)(long)ctx->data;
}

static __always_inline void *qw_data_end(const QW_CTX *ctx)
{
	return (void *)(long)ctx->data_end;
}

static __always_inline int qw_same_address(const volatile __u8 *one, const __u8 *other)
{
	const volatile __u32 *a = (const volatile __u32 *)one;
	const __u32 *b = (const __u32 *)other;

	return a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && a[3] == b[3];
}

/* The group whose plane has this port: qw_config.groups if none. */
static __always_inline __u32 qw_group_of(__u16 port)
{
	__u32 slot;

	if (port == 0)
		return qw_config.groups;
	for (slot = 0; slot < QW_GROUPS_MAX; slot++) {
		if (slot >= qw_config.groups || qw_own[slot].at.port == port)
			break;
	}
	return slot;
}

/* The group whose memcached clients ask at this port: qw_config.groups if none. */
static __always_inline __u32 qw_memcached_group_of(__u16 port)
{
	__u32 zero = 0;
	struct qw_leaves *all = bpf_map_lookup_elem(&leaves, &zero);
	__u32 slot;

	if (!all || port == 0)
		return qw_config.groups;
	for (slot = 0; slot < QW_GROUPS_MAX; slot++) {
		if (slot >= qw_config.groups || all->of[slot].port == port)
			break;
	}
	return slot;
}

/* Whether a frame is a whole UDP datagram to one of our planes, and where things stand in it. */
static __always_inline int qw_find(QW_CTX *ctx, struct qw_frame *frame)
{
	__u8 *data = qw_data(ctx);
	void *end = qw_data_end(ctx);
	struct ethhdr *ethernet = (void *)data;
	struct udphdr *udp;
	__u32 at = QW_ETHERNET_BYTES;
	__u32 udp_bytes;
	__u32 room;
	__be16 proto;

	frame->is_memcached = 0;
	frame->to_group = 0;
	if ((void *)(ethernet + 1) > end)
		return 0;
	proto = ethernet->h_proto;
	if (proto == bpf_htons(ETH_P_8021Q)) {
		struct qw_vlan_tag *tag = (void *)(ethernet + 1);

		if ((void *)(tag + 1) > end)
			return 0;
		/* Also one that has a priority only: its headers stand elsewhere than ours. */
		if (!qw_config.vlan)
			return 0;
		if ((bpf_ntohs(tag->tci) & 0xfff) != qw_config.vlan && !qw_left_out(QW_LEFT_OUT_VLAN))
			return 0;
		proto = tag->proto;
		at += QW_VLAN_BYTES;
	} else if (qw_config.vlan) {
		return 0;
	}
	frame->ip = at;
	if (proto == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = (void *)(data + at);

		if ((void *)(ip + 1) > end)
			return 0;
		/* With options, or in fragments: seldom, so software's. */
		if (ip->version != 4 || ip->protocol != IPPROTO_UDP)
			return 0;
		if (ip->ihl != 5 && !qw_left_out(QW_LEFT_OUT_OPTIONS))
			return 0;
		if ((ip->frag_off & bpf_htons(0x3fff)) != 0 && !qw_left_out(QW_LEFT_OUT_PIECES))
			return 0;
		at += QW_IPV4_BYTES;
		if (bpf_ntohs(ip->tot_len) < QW_IPV4_BYTES)
			return 0;
		room = bpf_ntohs(ip->tot_len) - QW_IPV4_BYTES;
		frame->is_ipv6 = 0;
	} else if (proto == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = (void *)(data + at);

		if ((void *)(ip + 1) > end)
			return 0;
		if (ip->version != 6 || ip->nexthdr != IPPROTO_UDP)
			return 0;
		at += QW_IPV6_BYTES;
		room = bpf_ntohs(ip->payload_len);
		frame->is_ipv6 = 1;
	} else {
		return 0;
	}
	udp = (void *)(data + at);
	if ((void *)(udp + 1) > end)
		return 0;
	frame->own_port = udp->dest;
	frame->group_slot = qw_group_of(udp->dest);
	if (frame->group_slot >= qw_config.groups) {
		frame->group_slot = qw_memcached_group_of(udp->dest);
		frame->is_memcached = 1;
	}
	if (frame->group_slot >= qw_config.groups || frame->group_slot >= QW_GROUPS_MAX)
		return 0;
	udp_bytes = bpf_ntohs(udp->len);
	/* A datagram that was cut is the system's to drop. */
	if (udp_bytes < QW_UDP_BYTES || (void *)((__u8 *)udp + udp_bytes) > end)
		return 0;
	if (udp_bytes > room && !qw_left_out(QW_LEFT_OUT_ROOM))
		return 0;
	frame->at = at + QW_UDP_BYTES;
	frame->bytes = udp_bytes - QW_UDP_BYTES;
	return 1;
}

/* Who sent a frame that qw_find has found: 0 if the frame is not as it was. */
static __always_inline int
qw_sender_of(QW_CTX *ctx, const struct qw_frame *frame, struct qw_endpoint *sender)
{
	__u8 *data = qw_data(ctx);
	void *end = qw_data_end(ctx);
	struct ethhdr *ethernet = (void *)data;
	__u32 *address = (__u32 *)sender->address;
	struct udphdr *udp;

	if ((void *)(ethernet + 1) > end)
		return 0;
	if (frame->is_ipv6) {
		struct ipv6hdr *ip = (void *)(data + (frame->ip & 31));

		if ((void *)(ip + 1) > end)
			return 0;
		address[0] = ip->saddr.in6_u.u6_addr32[0];
		address[1] = ip->saddr.in6_u.u6_addr32[1];
		address[2] = ip->saddr.in6_u.u6_addr32[2];
		address[3] = ip->saddr.in6_u.u6_addr32[3];
		udp = (void *)(ip + 1);
	} else {
		struct iphdr *ip = (void *)(data + (frame->ip & 31));

		if ((void *)(ip + 1) > end)
			return 0;
		address[0] = 0;
		address[1] = 0;
		address[2] = bpf_htonl(0xffff);
		address[3] = ip->saddr;
		udp = (void *)(ip + 1);
	}
	if ((void *)(udp + 1) > end)
		return 0;
	sender->port = udp->source;
	__builtin_memcpy(sender->mac, ethernet->h_source, ETH_ALEN);
	return 1;
}

/* Whether the frame is to the plane's own address or to that of all replicas, and not to a
 * neighbour's that passes by. */
static __always_inline int qw_is_to_us(QW_CTX *ctx, struct qw_frame *frame)
{
	const volatile __u32 *own;
	void *end = qw_data_end(ctx);
	__u8 *ip_bytes = (__u8 *)qw_data(ctx) + (frame->ip & 31);

	if (frame->group_slot >= QW_GROUPS_MAX)
		return 0;
	own = (const volatile __u32 *)qw_own[frame->group_slot].at.address;
	if (frame->is_ipv6) {
		struct ipv6hdr *ip = (void *)ip_bytes;

		if ((void *)(ip + 1) > end)
			return 0;
		return ip->daddr.in6_u.u6_addr32[0] == own[0] &&
		       ip->daddr.in6_u.u6_addr32[1] == own[1] &&
		       ip->daddr.in6_u.u6_addr32[2] == own[2] &&
		       ip->daddr.in6_u.u6_addr32[3] == own[3];
	} else {
		struct iphdr *ip = (void *)ip_bytes;

		if ((void *)(ip + 1) > end)
			return 0;
		if (own[2] != bpf_htonl(0xffff))
			return 0;
		frame->to_group = qw_config.multicast != 0 && ip->daddr == qw_config.multicast;
		return frame->to_group || ip->daddr == own[3];
	}
}

static __always_inline __u16 qw_fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)sum;
}

/* How many of so many bytes are in whole words of eight. A loop over these knows where it has
 * ended, and knows it otherwise for each length; found anew from what the verifier has learnt
 * nothing of, it is the same for all, and what follows is looked at once. */
static __always_inline __u32 qw_whole_words(__u32 bytes)
{
	barrier_var(bytes);
	return bytes & 0x7f8;
}
_Static_assert(QW_UDP_BYTES + QW_HEADER_BYTES + QW_PAYLOAD_BYTES_MAX < 0x800, "as masked");

/* The UDP checksum of `bytes` bytes behind UDP, which IPv6 asks for. The header's own field is
 * zero. */
__attribute__((noinline)) __u32 qw_udp_sum(QW_CTX *ctx, __u32 udp_at, __u32 bytes)
{
	void *end = qw_data_end(ctx);
	__u8 *data = qw_data(ctx);
	__u64 sum = 0;
	__u32 word;

	if (udp_at > QW_BEFORE_BYTES_MAX)
		return 0;
	data += udp_at;
	for (word = 0; word < (QW_UDP_BYTES + QW_HEADER_BYTES + QW_PAYLOAD_BYTES_MAX) / 8; word++) {
		__u64 next;

		if (8 * word + 8 > bytes || (void *)(data + 8) > end)
			break;
		next = *(__u64 *)data;
		sum += (next & 0xffffffff) + (next >> 32);
		data += 8;
	}
	data = (__u8 *)qw_data(ctx) + udp_at + qw_whole_words(bytes);
	for (word = 0; word < 3; word++) {
		if (2 * word + 2 > (bytes & 7) || (void *)(data + 2) > end)
			break;
		sum += *(__u16 *)data;
		data += 2;
	}
	/* As if a zero followed. */
	if ((bytes & 1) != 0 && (void *)(data + 1) <= end)
		sum += *data;
	return qw_fold(sum);
}

/* Whether the UDP checksum is right, or was left to a device that never had to make it, because the
 * frame comes from this machine: then it is that of the addresses alone. */
static __always_inline int qw_checksum_is_right(QW_CTX *ctx, const struct qw_frame *frame)
{
	__u32 udp_bytes = frame->bytes + QW_UDP_BYTES;
	__u8 *data = qw_data(ctx);
	void *end = qw_data_end(ctx);
	struct udphdr *udp;
	__u64 sum = bpf_htons((__u16)udp_bytes) + bpf_htons(IPPROTO_UDP);
	__u16 check;
	__u32 place;

	if (frame->is_ipv6) {
		struct ipv6hdr *ip = (void *)(data + (frame->ip & 31));

		if ((void *)(ip + 1) > end)
			return 0;
		for (place = 0; place < 4; place++)
			sum += (__u64)ip->saddr.in6_u.u6_addr32[place] +
			       ip->daddr.in6_u.u6_addr32[place];
		udp = (void *)(ip + 1);
	} else {
		struct iphdr *ip = (void *)(data + (frame->ip & 31));

		if ((void *)(ip + 1) > end)
			return 0;
		sum += (__u64)ip->saddr + ip->daddr;
		udp = (void *)(ip + 1);
	}
	if ((void *)(udp + 1) > end)
		return 0;
	check = udp->check;
	if (check == 0)
		return !frame->is_ipv6;
	if (check == qw_fold(sum) || qw_left_out(QW_LEFT_OUT_DATAGRAM_SUM))
		return 1;
	return qw_fold(sum + qw_udp_sum(ctx, frame->at - QW_UDP_BYTES, udp_bytes)) == 0xffff;
}

/* Writes Ethernet, IP and UDP for a packet of `bytes` bytes from the group's plane to somebody. */
static __always_inline int qw_address(QW_CTX *ctx, const struct qw_frame *frame,
				      const struct qw_endpoint *to, __u32 bytes)
{
	const volatile struct qw_endpoint *from =
		&qw_own[frame->group_slot & (QW_GROUPS_MAX - 1)].at;
	__u8 *data = qw_data(ctx);
	void *end = qw_data_end(ctx);
	struct ethhdr *ethernet = (void *)data;
	const volatile __u32 *own = (const volatile __u32 *)from->address;
	const __u32 *other = (const __u32 *)to->address;
	__u16 udp_bytes = (__u16)(bytes + QW_UDP_BYTES);
	struct udphdr *udp;
	__be16 proto;
	__u32 place;

	if ((void *)(ethernet + 1) + QW_VLAN_BYTES > end)
		return 0;
	if (frame->is_ipv6) {
		struct ipv6hdr *ip = (void *)(data + (frame->ip & 31));

		if ((void *)(ip + 1) > end)
			return 0;
		ip->priority = 0;
		ip->version = 6;
		ip->flow_lbl[0] = ip->flow_lbl[1] = ip->flow_lbl[2] = 0;
		ip->payload_len = bpf_htons(udp_bytes);
		ip->nexthdr = IPPROTO_UDP;
		ip->hop_limit = 64;
		for (place = 0; place < 4; place++) {
			ip->saddr.in6_u.u6_addr32[place] = own[place];
			ip->daddr.in6_u.u6_addr32[place] = other[place];
		}
		udp = (void *)(ip + 1);
	} else {
		struct iphdr *ip = (void *)(data + (frame->ip & 31));
		__be32 *words = (void *)ip;
		__u64 sum;

		if ((void *)(ip + 1) > end)
			return 0;
		/* In whole words: what is written by bytes can be read again only when it is in
		 * memory. */
		words[0] = bpf_htonl(0x45000000 | (udp_bytes + QW_IPV4_BYTES));
		words[1] = bpf_htonl(0x4000); /* don't fragment */
		words[2] = bpf_htonl(64 << 24 | IPPROTO_UDP << 16);
		words[3] = own[3];
		words[4] = other[3];
		sum = (__u64)words[0] + words[1] + words[2] + own[3] + other[3];
		ip->check = (__u16)~qw_fold(sum);
		udp = (void *)(ip + 1);
	}
	if ((void *)(udp + 1) > end)
		return 0;
	udp->source = frame->own_port;
	udp->dest = to->port;
	udp->len = bpf_htons(udp_bytes);
	udp->check = 0; /* IPv4: none; the tag covers more */
	for (place = 0; place < ETH_ALEN / 2; place++) {
		((__u16 *)ethernet->h_source)[place] = ((const volatile __u16 *)from->mac)[place];
		((__u16 *)ethernet->h_dest)[place] = ((const __u16 *)to->mac)[place];
	}
	proto = bpf_htons(frame->is_ipv6 ? ETH_P_IPV6 : ETH_P_IP);
	if (QW_VLAN) {
		struct qw_vlan_tag *tag = (void *)(ethernet + 1);

		/* Before the IP header, whose bounds were checked. */
		ethernet->h_proto = bpf_htons(ETH_P_8021Q);
		tag->tci = bpf_htons((__u16)QW_VLAN);
		tag->proto = proto;
	} else {
		ethernet->h_proto = proto;
	}
	if (frame->is_ipv6) {
		__u32 summed = qw_left_out(QW_LEFT_OUT_UDP_SUM) ? QW_UDP_BYTES : udp_bytes;
		__u64 sum = qw_udp_sum(ctx, frame->at - QW_UDP_BYTES, summed);

		data = qw_data(ctx);
		end = qw_data_end(ctx);
		udp = (void *)(data + (frame->ip & 31) + QW_IPV6_BYTES);
		if ((void *)(udp + 1) > end)
			return 0;
		for (place = 0; place < 4; place++)
			sum += (__u64)own[place] + other[place];
		sum += bpf_htons(udp_bytes) + bpf_htons(IPPROTO_UDP);
		udp->check = (__u16)~qw_fold(sum);
		if (udp->check == 0)
			udp->check = 0xffff;
	}
	return 1;
}

#endif
