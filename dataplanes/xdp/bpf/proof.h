/* SPDX-License-Identifier: Apache-2.0 */
/* How clone.bpf.c knows that an order for copies comes from our own program and not from the
 * network: by a secret that is drawn anew for each process and stands where the IP header will be
 * written, so that no copy leaves with it. */
#ifndef QW_PROOF_H
#define QW_PROOF_H

#include "frame.h"

struct qw_copy_proof {
	__u32 magic;
	__u32 secret[2];
};
_Static_assert(sizeof(struct qw_copy_proof) <= sizeof(struct iphdr), "it is written over");

/* The first byte is no IP header's, so that whatever looks at the frame on its way takes it for
 * nothing. */
#define QW_COPY_PROOF_MAGIC bpf_htonl(0xff517743)

static __always_inline struct qw_copy_proof qw_own_proof(void)
{
	const struct qw_copy_proof proof = {
		.magic = QW_COPY_PROOF_MAGIC,
		.secret = { qw_config.secret[0], qw_config.secret[1] },
	};

	return proof;
}

#endif
