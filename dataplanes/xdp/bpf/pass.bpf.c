/* SPDX-License-Identifier: Apache-2.0 */
/* Lets everything pass. A virtual Ethernet device delivers what a program at its other end sends
 * back only if it has a program itself. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("xdp")
int qw_pass(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}
