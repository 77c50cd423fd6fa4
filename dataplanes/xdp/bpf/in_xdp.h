/* SPDX-License-Identifier: Apache-2.0 */
/* What frame.h, seal.h and copy.h need of the place they run in: here the driver's receive path. */
#ifndef QW_IN_XDP_H
#define QW_IN_XDP_H

#include "maps.h"

#define QW_CTX struct xdp_md

/* A frame has its VLAN tag in it. */
#define QW_VLAN (qw_config.vlan)

static __always_inline long
qw_store_bytes(struct xdp_md *ctx, __u32 at, const void *from, __u32 bytes)
{
	return bpf_xdp_store_bytes(ctx, at, (void *)from, bytes);
}

/* Makes a frame longer or shorter at its end; 0 if that was done. */
static __always_inline long qw_resize(struct xdp_md *ctx, long bytes, long more)
{
	(void)bytes;
	return bpf_xdp_adjust_tail(ctx, (int)more);
}

#endif
