/* SPDX-License-Identifier: Apache-2.0 */
/* What frame.h, seal.h and copy.h need of the place they run in: here the traffic control hook
 * behind the receive path, where a frame is the system's. */
#ifndef QW_IN_TC_H
#define QW_IN_TC_H

#include "maps.h"

#define QW_CTX struct __sk_buff

/* The system has taken a frame's VLAN tag out, and puts it back when the frame leaves. */
#define QW_VLAN 0

static __always_inline long
qw_store_bytes(struct __sk_buff *ctx, __u32 at, const void *from, __u32 bytes)
{
	return bpf_skb_store_bytes(ctx, at, from, bytes, 0);
}

/* Makes a frame longer or shorter at its end; 0 if that was done. */
static __always_inline long qw_resize(struct __sk_buff *ctx, long bytes, long more)
{
	(void)more;
	return bpf_skb_change_tail(ctx, (__u32)bytes, 0);
}

#endif
