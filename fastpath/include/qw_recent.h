/* SPDX-License-Identifier: Apache-2.0 */
/* A table of answers to memcached's `get` that a host keeps for a plane: each key has one place,
 * which it shares with others, and the last one that was put there stands there. The host alone
 * writes it, while the plane reads it. */
#ifndef QW_RECENT_H
#define QW_RECENT_H

#include "qw_memcached.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "keys are compared by words, whose first byte must be their lowest"
#endif

_Static_assert(4 * QW_RECENT_KEY_WORDS >= QW_MEMCACHED_KEY_BYTES_MAX, "the longest key has room");
/* An answer may be at most so many times as long as its request, frames included: whoever lies
 * about where a request comes from has that much sent to somebody else. */
#define QW_RECENT_AMPLIFICATION_MAX 64

/* A whole word of the key in a request. */
static inline __attribute__((always_inline)) __u32
qw_recent_word(const struct qw_memcached_text *text, __u32 word)
{
	return *(const __u32 *)(const void *)&text->bytes[QW_MEMCACHED_KEY_AT + 4 * (word & 63)];
}

/* What is left of the key behind its last whole word, with zeros behind it; maybe nothing. */
static inline __attribute__((always_inline)) __u32
qw_recent_rest(const struct qw_memcached_text *text, __u32 key_bytes)
{
	/* As if the verifier had learnt nothing of the length: then it is the same for all, see
	 * qw_whole_words. */
	__asm__("" : "+r"(key_bytes));
	return qw_recent_word(text, key_bytes / 4) & ((1U << (8 * (key_bytes % 4))) - 1);
}

/* Where a key stands in a table; the key is where a request has it. */
QW_MEMCACHED_PART __u32 qw_recent_place(const struct qw_memcached_text *text, __u32 key_bytes)
{
	__u64 hash = key_bytes;
	__u32 word;

	if (!text)
		return 0;
	for (word = 0; word < QW_RECENT_KEY_WORDS; word++) {
		if (4 * word + 4 > key_bytes)
			break;
		hash = (hash ^ qw_recent_word(text, word)) * 0x9e3779b97f4a7c15UL;
		hash ^= hash >> 32;
	}
	hash = (hash ^ qw_recent_rest(text, key_bytes)) * 0x9e3779b97f4a7c15UL;
	hash ^= hash >> 32;
	return (__u32)(hash & (QW_RECENT_PLACES - 1));
}

/* Whether an answer is to this key. */
QW_MEMCACHED_PART int qw_recent_is(const struct qw_recent_answer *recent,
				   const struct qw_memcached_text *text, __u32 key_bytes)
{
	__u32 word;

	if (!recent || !text || recent->key_bytes != key_bytes)
		return 0;
	for (word = 0; word < QW_RECENT_KEY_WORDS; word++) {
		if (4 * word + 4 > key_bytes)
			break;
		if (recent->key[word] != qw_recent_word(text, word))
			return 0;
	}
	__asm__("" : "+r"(key_bytes));
	word = key_bytes / 4;
	return word < QW_RECENT_KEY_WORDS &&
	       recent->key[word] == qw_recent_rest(text, key_bytes);
}

#endif
