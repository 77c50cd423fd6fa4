/* SPDX-License-Identifier: Apache-2.0 */
/* The tag of a packet: SipHash-2-4 of its header up to the tag and, if there is a payload, of the
 * payload's digest. The header, which says how long the payload is and which packet of which
 * session or index this is, goes through SipHash itself: so a digest that two payloads share by
 * chance shows nothing, since their headers differ. */
#ifndef QW_TAG_H
#define QW_TAG_H

#include "qw_digest.h"
#include "qw_siphash.h"

/* What one secret becomes. */
struct qw_tag_key {
	struct qw_key sip;
	struct qw_digest_key digest;
};

/* The key made of a secret. No header is as short as the messages that are hashed here. */
static inline void qw_tag_key_make(struct qw_tag_key *made, const struct qw_key *secret)
{
	__u32 place;

	made->sip = *secret;
	for (place = 0; place < QW_DIGEST_WORDS_MAX + 1; place++) {
		struct qw_siphash_state s = qw_siphash_begin(secret);

		qw_siphash_word(&s, place);
		made->digest.word[place] = qw_siphash_finish(&s, 8ULL << 56);
	}
}

/* The rest, behind the header's words. */
static inline __attribute__((always_inline)) __u64
qw_tag_finish(struct qw_siphash_state *s, const struct qw_digest *digest, __u32 payload_bytes)
{
	__u64 bytes = QW_TAG_OFFSET;

	if (payload_bytes > 0) {
		qw_siphash_word(s, digest->first);
		qw_siphash_word(s, digest->second);
		bytes += QW_DIGEST_BYTES;
	}
	return qw_siphash_finish(s, bytes << 56);
}

/* The digest of a payload of at most QW_PAYLOAD_BYTES_MAX bytes; what is missing of the last word
 * is zeros. */
static inline struct qw_digest
qw_digest_of(const struct qw_digest_key *key, const __u8 *payload, __u32 bytes)
{
	struct qw_digest digest = {};
	__u32 words = bytes / 8;
	__u64 tail = 0;
	__u32 at;

	for (at = 0; at < QW_DIGEST_WORDS_MAX; at++) {
		if (at >= words)
			break;
		qw_digest_word(&digest, &key->word[at], qw_siphash_load(payload + 8 * at));
	}
	for (at = 0; at < 7; at++) {
		if (8 * words + at >= bytes)
			break;
		tail |= (__u64)payload[8 * words + at] << (8 * at);
	}
	if (bytes % 8 != 0 && words < QW_DIGEST_WORDS_MAX)
		qw_digest_word(&digest, &key->word[words], tail);
	return digest;
}

/* The tag of an encoded header and its payload, which need not lie behind. */
static inline __u64 qw_tag(const struct qw_tag_key *key, const __u8 *header, const __u8 *payload,
			   __u32 payload_bytes)
{
	const struct qw_digest digest = qw_digest_of(&key->digest, payload, payload_bytes);
	struct qw_siphash_state s = qw_siphash_begin(&key->sip);
	__u32 at;

	for (at = 0; at < QW_TAG_OFFSET / 8; at++)
		qw_siphash_word(&s, qw_siphash_load(header + 8 * at));
	return qw_tag_finish(&s, &digest, payload_bytes);
}

#endif
