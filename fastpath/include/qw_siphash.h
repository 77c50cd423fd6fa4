/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-2-4 with 64 bits of output, for the tags of packets (qw_tag.h). Freestanding; every loop
 * has a constant bound. */
#ifndef QW_SIPHASH_H
#define QW_SIPHASH_H

#include "qw_wire.h"

/* A key of 16 bytes, read as two little-endian numbers. */
struct qw_key {
	__u64 low;
	__u64 high;
};

struct qw_siphash_state {
	__u64 v0;
	__u64 v1;
	__u64 v2;
	__u64 v3;
};

#define QW_ROTATE_LEFT(value, bits) (((value) << (bits)) | ((value) >> (64 - (bits))))

static inline __attribute__((always_inline)) void qw_siphash_round(struct qw_siphash_state *s)
{
	s->v0 += s->v1;
	s->v1 = QW_ROTATE_LEFT(s->v1, 13) ^ s->v0;
	s->v0 = QW_ROTATE_LEFT(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = QW_ROTATE_LEFT(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = QW_ROTATE_LEFT(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = QW_ROTATE_LEFT(s->v1, 17) ^ s->v2;
	s->v2 = QW_ROTATE_LEFT(s->v2, 32);
}

static inline __attribute__((always_inline)) void
qw_siphash_word(struct qw_siphash_state *s, __u64 word)
{
	s->v3 ^= word;
	qw_siphash_round(s);
	qw_siphash_round(s);
	s->v0 ^= word;
}

/* Eight bytes as a little-endian number, from any address. */
static inline __attribute__((always_inline)) __u64 qw_siphash_load(const __u8 *bytes)
{
	return (__u64)bytes[0] | (__u64)bytes[1] << 8 | (__u64)bytes[2] << 16 |
	       (__u64)bytes[3] << 24 | (__u64)bytes[4] << 32 | (__u64)bytes[5] << 40 |
	       (__u64)bytes[6] << 48 | (__u64)bytes[7] << 56;
}

static inline __attribute__((always_inline)) struct qw_siphash_state
qw_siphash_begin(const struct qw_key *key)
{
	struct qw_siphash_state s = {
		.v0 = key->low ^ 0x736f6d6570736575ULL,
		.v1 = key->high ^ 0x646f72616e646f6dULL,
		.v2 = key->low ^ 0x6c7967656e657261ULL,
		.v3 = key->high ^ 0x7465646279746573ULL,
	};

	return s;
}

/* The last word: the bytes behind the whole ones, and in the highest byte the message's length. */
static inline __attribute__((always_inline)) __u64
qw_siphash_finish(struct qw_siphash_state *s, __u64 tail)
{
	qw_siphash_word(s, tail);
	s->v2 ^= 0xff;
	qw_siphash_round(s);
	qw_siphash_round(s);
	qw_siphash_round(s);
	qw_siphash_round(s);
	return s->v0 ^ s->v1 ^ s->v2 ^ s->v3;
}

/* The hash of a message of at most QW_PAYLOAD_BYTES_MAX bytes. */
static inline __u64 qw_siphash(const struct qw_key *key, const __u8 *bytes, __u32 count)
{
	struct qw_siphash_state s = qw_siphash_begin(key);
	__u64 tail = (__u64)count << 56;
	__u32 words = count / 8;
	__u32 at;

	for (at = 0; at < QW_PAYLOAD_BYTES_MAX / 8; at++) {
		if (at >= words)
			break;
		qw_siphash_word(&s, qw_siphash_load(bytes + 8 * at));
	}
	for (at = 0; at < 7; at++) {
		if (8 * words + at >= count)
			break;
		tail |= (__u64)bytes[8 * words + at] << (8 * at);
	}
	return qw_siphash_finish(&s, tail);
}

#endif
