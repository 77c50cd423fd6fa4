/* SPDX-License-Identifier: Apache-2.0 */
/* A digest of a payload under a secret key, which costs a few instructions for each word: NH
 * (Black, Halevi, Krawczyk, Krovetz, Rogaway: UMAC, 1999), twice, the second time with the key
 * moved by one word. Two different payloads of the same length have the same digest for one key in
 * 2^64. It hides nothing of the key by itself, so it is never shown: qw_tag.h hashes it.
 * Freestanding; every loop has a constant bound. */
#ifndef QW_DIGEST_H
#define QW_DIGEST_H

#include "qw_wire.h"

/* Words of eight bytes, of the longest payload. */
#define QW_DIGEST_WORDS_MAX ((QW_PAYLOAD_BYTES_MAX + 7) / 8)
#define QW_DIGEST_BYTES 16

struct qw_digest_key {
	__u64 word[QW_DIGEST_WORDS_MAX + 1];
};

struct qw_digest {
	__u64 first;
	__u64 second;
};

static inline __attribute__((always_inline)) __u64 qw_digest_product(__u64 word, __u64 key)
{
	__u32 low = (__u32)word + (__u32)key;
	__u32 high = (__u32)(word >> 32) + (__u32)(key >> 32);

	return (__u64)low * high;
}

/* The payload's next word, whose key is the first of these two. */
static inline __attribute__((always_inline)) void
qw_digest_word(struct qw_digest *digest, const __u64 key[2], __u64 word)
{
	digest->first += qw_digest_product(word, key[0]);
	digest->second += qw_digest_product(word, key[1]);
}

#endif
