/* SPDX-License-Identifier: Apache-2.0 */
/* Makes an interface a VLAN of another, on kernels that have none of their own: what leaves by the
 * upper one leaves by the lower one with a tag, and what comes to the lower one with that tag comes
 * to the upper one without. Nothing else passes, as if nobody were there who has no VLAN. Both can
 * be the same interface. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Set before loading, by tests/xdp/tagged.rs. */
struct qw_tag_config {
	__u32 number; /* the tag's */
	__u32 upper; /* numbers of the interfaces */
	__u32 lower;
};

const volatile struct qw_tag_config qw_tag_config SEC(".rodata.config") = {};

SEC("tc")
int qw_push(struct __sk_buff *ctx)
{
	if (bpf_skb_vlan_push(ctx, bpf_htons(ETH_P_8021Q), (__u16)qw_tag_config.number))
		return TC_ACT_SHOT;
	/* What was redirected is not seen by generic XDP at the other end. */
	if (qw_tag_config.lower == ctx->ifindex)
		return TC_ACT_OK;
	return (int)bpf_redirect(qw_tag_config.lower, 0);
}

SEC("tc")
int qw_pop(struct __sk_buff *ctx)
{
	if (!ctx->vlan_present || (ctx->vlan_tci & 0xfff) != qw_tag_config.number)
		return TC_ACT_SHOT;
	if (bpf_skb_vlan_pop(ctx))
		return TC_ACT_SHOT;
	if (qw_tag_config.upper == ctx->ifindex)
		return TC_ACT_OK;
	return (int)bpf_redirect(qw_tag_config.upper, BPF_F_INGRESS);
}
