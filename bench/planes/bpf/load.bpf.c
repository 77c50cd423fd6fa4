/* SPDX-License-Identifier: Apache-2.0 */
/* Load from inside the kernel: a client that makes each answer into its next request, and an echo
 * to compare with. No system call is on either one's path. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#include "qw_tag.h"
#include "qw_wire.h"

#define LANES_MAX 256
#define TEMPLATES 64
/* Ethernet, IPv4 without options, UDP. */
#define PACKET_AT 42
#define FRAME_BYTES_MAX (PACKET_AT + QW_HEADER_BYTES + QW_PAYLOAD_BYTES_MAX)
#define BIN_NS 50
#define BINS 65536

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set before loading. */
struct load_config {
	struct qw_tag_key key;
	__u32 port; /* the client's, in network byte order */
	__u32 with_tag;
};
const volatile struct load_config config SEC(".rodata.load");

/* A request as a frame, but for session, sequence and tag. */
struct template {
	__u32 bytes;
	__u32 reserved;
	__u8 frame[FRAME_BYTES_MAX];
	__u8 padding[6];
};

/* One closed loop: its request that waits for an answer. */
struct lane {
	__u64 session;
	__u64 sequence;
	__u64 sent_ns;
	__u64 answers;
};

struct totals {
	__u64 stopped; /* the host's: answers are not followed by requests any more */
	__u64 refused;
	__u64 stale; /* answers that no lane waits for */
	__u64 failed; /* requests that could not be made */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TEMPLATES);
	__type(key, __u32);
	__type(value, struct template);
} templates SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, LANES_MAX);
	__type(key, __u32);
	__type(value, struct lane);
} lanes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct totals);
} totals SEC(".maps");

/* How many answers took so many times BIN_NS; the last place is for all that took longer. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BINS);
	__type(key, __u32);
	__type(value, __u64);
} latencies SEC(".maps");

/* The tag of the packet in a frame. */
__attribute__((noinline)) __u64 tag_of(struct xdp_md *ctx, __u32 payload_bytes)
{
	void *end = (void *)(long)ctx->data_end;
	__u8 *at = (__u8 *)(long)ctx->data + PACKET_AT;
	const struct qw_tag_key *key = (const struct qw_tag_key *)&config.key;
	struct qw_digest digest = {};
	__u32 words = payload_bytes / 8; /* templates have whole words only */
	struct qw_siphash_state s;
	__u32 word;

	barrier_var(key); /* else it is taken for the zeros that stand here until the program is loaded */
	s = qw_siphash_begin(&key->sip);
	if ((void *)(at + QW_HEADER_BYTES) > end)
		return 0;
	for (word = 0; word < QW_TAG_OFFSET / 8; word++)
		qw_siphash_word(&s, *(const __u64 *)(at + 8 * word));
	at += QW_HEADER_BYTES;
	for (word = 0; word < QW_PAYLOAD_BYTES_MAX / 8; word++) {
		if (word >= words || (void *)(at + 8) > end)
			break;
		qw_digest_word(&digest, &key->digest.word[word], *(const __u64 *)at);
		at += 8;
	}
	return qw_tag_finish(&s, &digest, payload_bytes);
}

static __always_inline void note_latency(__u64 nanoseconds)
{
	__u64 bin = nanoseconds / BIN_NS;
	__u32 place = bin < BINS ? (__u32)bin : BINS - 1;
	__u64 *count = bpf_map_lookup_elem(&latencies, &place);

	if (count)
		++*count;
}

/* Makes the frame the lane's next request. */
static __always_inline int next_request(struct xdp_md *ctx, const struct lane *lane)
{
	__u32 place = (__u32)lane->sequence & (TEMPLATES - 1);
	struct template *template = bpf_map_lookup_elem(&templates, &place);
	__u64 *words;
	__u32 bytes;
	int have;
	__u64 tag;

	if (!template)
		return 0;
	bytes = template->bytes;
	if (bytes < PACKET_AT + QW_HEADER_BYTES || bytes > FRAME_BYTES_MAX)
		return 0;
	have = (int)(ctx->data_end - ctx->data);
	if (have != (int)bytes && bpf_xdp_adjust_tail(ctx, (int)bytes - have))
		return 0;
	if (bpf_xdp_store_bytes(ctx, 0, template->frame, bytes))
		return 0;
	words = (void *)(long)ctx->data + PACKET_AT;
	if ((void *)(words + QW_HEADER_BYTES / 8) > (void *)(long)ctx->data_end)
		return 0;
	words[6] = bpf_cpu_to_be64(lane->session);
	words[7] = bpf_cpu_to_be64(lane->sequence);
	if (!config.with_tag)
		return 1;
	tag = tag_of(ctx, bytes - PACKET_AT - QW_HEADER_BYTES);
	words = (void *)(long)ctx->data + PACKET_AT;
	if ((void *)(words + QW_HEADER_BYTES / 8) > (void *)(long)ctx->data_end)
		return 0;
	words[8] = bpf_cpu_to_be64(tag);
	return 1;
}

SEC("xdp")
int load_client(struct xdp_md *ctx)
{
	struct ethhdr *ethernet = (void *)(long)ctx->data;
	struct iphdr *ip = (void *)(ethernet + 1);
	struct udphdr *udp = (void *)(ip + 1);
	__u8 *packet = (void *)(udp + 1);
	__u64 session, sequence, now;
	struct totals *all;
	struct lane *lane;
	__u32 place = 0;

	if ((void *)(packet + QW_HEADER_BYTES) > (void *)(long)ctx->data_end)
		return XDP_PASS;
	if (ethernet->h_proto != bpf_htons(ETH_P_IP) || ip->ihl != 5 ||
	    ip->protocol != IPPROTO_UDP || udp->dest != (__u16)config.port ||
	    qw_load_u16(packet) != QW_MAGIC)
		return XDP_PASS;
	session = bpf_be64_to_cpu(*(__u64 *)(packet + 48));
	sequence = bpf_be64_to_cpu(*(__u64 *)(packet + 56));
	all = bpf_map_lookup_elem(&totals, &place);
	place = (__u32)session & (LANES_MAX - 1);
	lane = bpf_map_lookup_elem(&lanes, &place);
	if (!lane || !all)
		return XDP_DROP;
	if (lane->session != session || lane->sequence != sequence) {
		all->stale++;
		return XDP_DROP;
	}
	if (packet[5] & QW_FLAG_REFUSED) {
		all->refused++;
		return XDP_DROP; /* asked again later */
	}
	now = bpf_ktime_get_ns();
	note_latency(now - lane->sent_ns);
	lane->answers++;
	lane->sequence = sequence + 1;
	lane->sent_ns = now;
	if (all->stopped)
		return XDP_DROP;
	if (!next_request(ctx, lane)) {
		all->failed++;
		return XDP_DROP;
	}
	return XDP_TX;
}

/* Sends back what comes to its port. */
SEC("xdp")
int load_echo(struct xdp_md *ctx)
{
	struct ethhdr *ethernet = (void *)(long)ctx->data;
	struct iphdr *ip = (void *)(ethernet + 1);
	struct udphdr *udp = (void *)(ip + 1);
	__u8 mac[ETH_ALEN];
	__be32 address;
	__be16 port;

	if ((void *)(udp + 1) > (void *)(long)ctx->data_end)
		return XDP_PASS;
	if (ethernet->h_proto != bpf_htons(ETH_P_IP) || ip->ihl != 5 ||
	    ip->protocol != IPPROTO_UDP || udp->dest != (__u16)config.port)
		return XDP_PASS;
	__builtin_memcpy(mac, ethernet->h_dest, ETH_ALEN);
	__builtin_memcpy(ethernet->h_dest, ethernet->h_source, ETH_ALEN);
	__builtin_memcpy(ethernet->h_source, mac, ETH_ALEN);
	address = ip->daddr;
	ip->daddr = ip->saddr;
	ip->saddr = address;
	port = udp->dest;
	udp->dest = udp->source;
	udp->source = port;
	udp->check = 0;
	return XDP_TX;
}
