/* SPDX-License-Identifier: Apache-2.0 */
/* Tags and checksums over packets in place. What a tag covers and which key makes it is said by
 * fastpath/include; here only the walk over a frame, which the verifier must see within its bounds,
 * is written anew. */
#ifndef QW_SEAL_H
#define QW_SEAL_H

#include "frame.h"
#include "qw_crc32c_tables.h"

#define QW_PAYLOAD_WORDS_MAX (QW_PAYLOAD_BYTES_MAX / 8)

/* The tag of the packet at `at`, made with the keys at `place` (`which`: as qw_key_number says). */
__attribute__((noinline)) __u64
qw_tag_of(QW_CTX *ctx, __u32 at, __u32 payload_bytes, __u32 place, __u32 which)
{
	struct qw_keys_at *found = bpf_map_lookup_elem(&keys, &place);
	__u8 *data = qw_data(ctx);
	void *end = qw_data_end(ctx);
	const struct qw_tag_key *key;
	struct qw_digest digest = {};
	struct qw_siphash_state s;
	__u32 words = payload_bytes / 8;
	__u32 rest = payload_bytes % 8;
	const __u64 *header;
	__u8 *payload;
	__u64 tail = 0;
	__u32 word;
	__u32 byte;

	if (!found || at > QW_BEFORE_BYTES_MAX + QW_ORIGIN_BYTES || payload_bytes > QW_PAYLOAD_BYTES_MAX)
		return 0;
	key = which & 2 ? &found->keys.clients.key[which & 1] : &found->keys.cluster.key[which & 1];
	data += at;
	if ((void *)(data + QW_HEADER_BYTES) > end)
		return 0;
	payload = data + QW_HEADER_BYTES;
	for (word = 0; word < QW_PAYLOAD_WORDS_MAX; word++) {
		if (word >= words || (void *)(payload + 8) > end)
			break;
		qw_digest_word(&digest, &key->digest.word[word], *(const __u64 *)payload);
		payload += 8;
	}
	if (rest != 0) {
		payload = data + QW_HEADER_BYTES + qw_whole_words(payload_bytes);
		for (byte = 0; byte < 7; byte++) {
			if (byte >= rest || (void *)(payload + byte + 1) > end)
				break;
			tail |= (__u64)payload[byte] << (8 * byte);
		}
		word = qw_whole_words(payload_bytes) / 8;
		if (word < QW_PAYLOAD_WORDS_MAX)
			qw_digest_word(&digest, &key->digest.word[word], tail);
	}
	s = qw_siphash_begin(&key->sip);
	header = (const __u64 *)data;
	for (word = 0; word < QW_TAG_OFFSET / 8; word++)
		qw_siphash_word(&s, header[word]);
	return qw_tag_finish(&s, &digest, payload_bytes);
}

/* CRC32C of the bytes at `at`; 0 for none. */
__attribute__((noinline)) __u32 qw_crc32c(QW_CTX *ctx, __u32 at, __u32 bytes)
{
	__u8 *data = qw_data(ctx);
	void *end = qw_data_end(ctx);
	__u64 crc = 0xffffffff;
	__u32 words = bytes / 8;
	__u32 rest = bytes % 8;
	__u32 word;
	__u32 byte;

	if (at > QW_BEFORE_BYTES_MAX + QW_HEADER_BYTES + QW_ORIGIN_BYTES ||
	    bytes > QW_PAYLOAD_BYTES_MAX || bytes == 0)
		return 0;
	data += at;
	for (word = 0; word < QW_PAYLOAD_WORDS_MAX; word++) {
		__u64 next;

		if (word >= words || (void *)(data + 8) > end)
			break;
		next = *(const __u64 *)data ^ crc;
		crc = 0;
		for (byte = 0; byte < 8; byte++)
			crc ^= qw_crc32c_tables[7 - byte][(next >> (8 * byte)) & 0xff];
		data += 8;
	}
	data = (__u8 *)qw_data(ctx) + at + qw_whole_words(bytes);
	for (byte = 0; byte < 7; byte++) {
		if (byte >= rest || (void *)(data + 1) > end)
			break;
		crc = (crc >> 8) ^ qw_crc32c_tables[0][(crc ^ *data) & 0xff];
		data++;
	}
	return (__u32)~crc;
}

#endif
