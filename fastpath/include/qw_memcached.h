/* SPDX-License-Identifier: Apache-2.0 */
/* Memcached over UDP, as far as a plane serves it itself: a `set` in one datagram becomes a command
 * of the key-value store (apps/kv), and STORED is its answer once it is committed; a `get` of one
 * key may be answered from a table (qw_recent.h). Whatever is written in another way, or asks for
 * anything else, is not taken here: software reads it, and refuses what is wrong with it.
 *
 * A plain `set` stores whatever was there before, so its answer is known without the state machine.
 * One with a lifetime is left to software: lifetimes count from a tick, which only the leader's
 * host puts into the log. */
#ifndef QW_MEMCACHED_H
#define QW_MEMCACHED_H

#include "qw_shared.h"
#include "qw_wire.h"

/* A part of the parser. The kernel's build makes it a function of its own, which the verifier looks
 * at once, not once for each place where a key may end. */
#ifndef QW_MEMCACHED_PART
#define QW_MEMCACHED_PART static inline
#endif

/* Memcached's frame: the client's number for the request, the number of this datagram, how many
 * there are, zero; 16 bits each. */
#define QW_MEMCACHED_FRAME_BYTES 8
#define QW_MEMCACHED_DIGITS_MAX 10
/* Where a key begins: behind the frame, and `set ` or `get `. */
#define QW_MEMCACHED_KEY_AT 12
/* Longest datagram that is looked at. */
#define QW_MEMCACHED_DATAGRAM_BYTES_MAX (QW_PAYLOAD_BYTES_MAX + 64)
/* A datagram, wherever it came from. */
#define QW_MEMCACHED_TEXT_BYTES 2048 /* a power of two, so that no place is outside */
struct qw_memcached_text {
	__u8 bytes[QW_MEMCACHED_TEXT_BYTES] __attribute__((aligned(8)));
};
_Static_assert(QW_MEMCACHED_DATAGRAM_BYTES_MAX <= QW_MEMCACHED_TEXT_BYTES, "a datagram fits");

/* One byte. The place is within `count`, but the kernel's verifier does not follow why: it sees the
 * mask. */
static inline __attribute__((always_inline)) __u8
qw_memcached_byte(const struct qw_memcached_text *text, __u32 place)
{
	__asm__("" : "+r"(place));
	return text->bytes[place & (QW_MEMCACHED_TEXT_BYTES - 1)];
}

/* A number of 1 to 10 digits that ends where something else begins, with the place of that above
 * bit 40: 0 if there is none. */
#define QW_MEMCACHED_NUMBER_BITS 40
QW_MEMCACHED_PART __u64 qw_memcached_number(const struct qw_memcached_text *text, __u32 count, __u32 at)
{
	__u64 value = 0;
	__u32 digits;

	if (!text || count > QW_MEMCACHED_DATAGRAM_BYTES_MAX || at > count)
		return 0;
	for (digits = 0; digits <= QW_MEMCACHED_DIGITS_MAX; digits++) {
		__u32 place = at + digits;
		__u8 byte = qw_memcached_byte(text, place);

		if (place >= count || byte < '0' || byte > '9')
			break;
		value = value * 10 + (__u64)(byte - '0');
	}
	if (digits == 0 || digits > QW_MEMCACHED_DIGITS_MAX)
		return 0;
	return (__u64)(at + digits) << QW_MEMCACHED_NUMBER_BITS | value;
}

/* How long the key is that stands where keys stand: 0 if there is none, or it is too long. */
QW_MEMCACHED_PART __u32 qw_memcached_key(const struct qw_memcached_text *text, __u32 count)
{
	__u32 length;

	if (!text || count > QW_MEMCACHED_DATAGRAM_BYTES_MAX)
		return 0;
	for (length = 0; length <= QW_MEMCACHED_KEY_BYTES_MAX; length++) {
		__u32 place = QW_MEMCACHED_KEY_AT + length;
		__u8 byte = text->bytes[place];

		if (place >= count || byte <= ' ' || byte == 0x7f)
			break;
	}
	return length > QW_MEMCACHED_KEY_BYTES_MAX ? 0 : length;
}

/* Whether this byte comes next. Moves `at` if so. */
static inline __attribute__((always_inline)) int
qw_memcached_next(const struct qw_memcached_text *text, __u32 count, __u32 *at, __u8 wanted)
{
	if (*at >= count || qw_memcached_byte(text, *at) != wanted)
		return 0;
	(*at)++;
	return 1;
}

/* The place behind a line's end, with 1 above bit 16 if `noreply` stands before it: 0 if there is
 * neither. */
#define QW_MEMCACHED_PLACE_BITS 16
QW_MEMCACHED_PART __u32
qw_memcached_line_end(const struct qw_memcached_text *text, __u32 count, __u32 at)
{
	static const __u8 noreply[] = { ' ', 'n', 'o', 'r', 'e', 'p', 'l', 'y' };
	__u32 is_quiet;
	__u32 place;

	if (!text || count > QW_MEMCACHED_DATAGRAM_BYTES_MAX || at >= count)
		return 0;
	is_quiet = qw_memcached_byte(text, at) == ' ';
	for (place = 0; place < sizeof(noreply) && is_quiet; place++) {
		if (!qw_memcached_next(text, count, &at, noreply[place]))
			return 0;
	}
	if (!qw_memcached_next(text, count, &at, '\r') || !qw_memcached_next(text, count, &at, '\n'))
		return 0;
	return is_quiet << QW_MEMCACHED_PLACE_BITS | at;
}

/* Whether a datagram is a whole request of these four letters. */
static inline __attribute__((always_inline)) int
qw_memcached_begins(const struct qw_memcached_text *text, __u32 count, const __u8 *verb)
{
	static const __u8 frame[] = { 0, 0, 0, 1, 0, 0 }; /* the first of one */
	__u32 place;

	if (count < QW_MEMCACHED_KEY_AT || count > QW_MEMCACHED_DATAGRAM_BYTES_MAX)
		return 0;
	for (place = 0; place < sizeof(frame); place++) {
		if (text->bytes[2 + place] != frame[place])
			return 0;
	}
	for (place = 0; place < 4; place++) {
		if (text->bytes[QW_MEMCACHED_FRAME_BYTES + place] != verb[place])
			return 0;
	}
	return 1;
}

/* Reads a datagram: whether it is a `set` that a plane can carry. */
QW_MEMCACHED_PART int qw_memcached_read(const struct qw_memcached_text *text, __u32 count,
					struct qw_memcached_set *set)
{
	static const __u8 verb[] = { 's', 'e', 't', ' ' };
	__u32 at;
	__u64 number;

	if (!text || !set || !qw_memcached_begins(text, count, verb))
		return 0;
	set->request = (__u16)(text->bytes[0] << 8 | text->bytes[1]);
	set->key_at = QW_MEMCACHED_KEY_AT;
	at = qw_memcached_key(text, count);
	if (at == 0 || at > QW_MEMCACHED_KEY_BYTES_MAX)
		return 0;
	set->key_bytes = (__u16)at;
	at += QW_MEMCACHED_KEY_AT;
	if (!qw_memcached_next(text, count, &at, ' '))
		return 0;
	number = qw_memcached_number(text, count, at);
	at = (__u32)(number >> QW_MEMCACHED_NUMBER_BITS);
	number &= (1UL << QW_MEMCACHED_NUMBER_BITS) - 1;
	if (at == 0 || number > 0xffffffff)
		return 0;
	set->client_flags = (__u32)number;
	if (!qw_memcached_next(text, count, &at, ' '))
		return 0;
	number = qw_memcached_number(text, count, at);
	at = (__u32)(number >> QW_MEMCACHED_NUMBER_BITS);
	number &= (1UL << QW_MEMCACHED_NUMBER_BITS) - 1;
	/* Without the check, a lifetime would be none. */
	if (at == 0 || number != 0)
		return 0;
	if (!qw_memcached_next(text, count, &at, ' '))
		return 0;
	number = qw_memcached_number(text, count, at);
	at = (__u32)(number >> QW_MEMCACHED_NUMBER_BITS);
	number &= (1UL << QW_MEMCACHED_NUMBER_BITS) - 1;
	if (at == 0)
		return 0;
	at = qw_memcached_line_end(text, count, at);
	set->noreply = (__u16)(at >> QW_MEMCACHED_PLACE_BITS);
	at &= (1U << QW_MEMCACHED_PLACE_BITS) - 1;
	/* The value and the end of its line are all that is left. */
	if (at == 0 || number > QW_PAYLOAD_BYTES_MAX || at + number + 2 != count)
		return 0;
	if (qw_memcached_byte(text, count - 2) != '\r' || qw_memcached_byte(text, count - 1) != '\n')
		return 0;
	set->value_at = (__u16)at;
	set->value_bytes = (__u16)number;
	return QW_MEMCACHED_COMMAND_HEAD_BYTES + set->key_bytes + number <= QW_PAYLOAD_BYTES_MAX;
}

/* Reads a datagram: how long the key is that a `get` of one key asks for, which stands where keys
 * stand. 0 if it is anything else. */
QW_MEMCACHED_PART __u32 qw_memcached_read_get(const struct qw_memcached_text *text, __u32 count)
{
	static const __u8 verb[] = { 'g', 'e', 't', ' ' };
	__u32 length;

	if (!text || !qw_memcached_begins(text, count, verb))
		return 0;
	length = qw_memcached_key(text, count);
	if (length == 0 || length > QW_MEMCACHED_KEY_BYTES_MAX ||
	    QW_MEMCACHED_KEY_AT + length + 2 != count)
		return 0;
	if (qw_memcached_byte(text, count - 2) != '\r' || qw_memcached_byte(text, count - 1) != '\n')
		return 0;
	return length;
}

/* Writes what stands before the key in the command; key and value follow as the client sent
 * them. */
static inline void qw_memcached_command_head(const struct qw_memcached_set *set, __u8 *bytes)
{
	__u32 place;

	bytes[0] = QW_MEMCACHED_COMMAND_SET;
	bytes[1] = (__u8)set->key_bytes;
	for (place = 0; place < 4; place++)
		bytes[2 + place] = (__u8)(set->client_flags >> (24 - 8 * place));
	for (place = 0; place < 8; place++) /* never expires */
		bytes[6 + place] = 0;
}

/* The datagram that says that a `set` is stored. */
static inline void qw_memcached_stored(__u16 request, __u8 *bytes)
{
	static const __u8 says[] = { 0, 0, 0, 1, 0, 0, 'S', 'T', 'O', 'R', 'E', 'D', '\r', '\n' };
	__u32 place;

	bytes[0] = (__u8)(request >> 8);
	bytes[1] = (__u8)request;
	for (place = 0; place < sizeof(says); place++)
		bytes[2 + place] = says[place];
}

#endif
