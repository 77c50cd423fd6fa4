/* SPDX-License-Identifier: Apache-2.0 */
/* Memcached over UDP, as far as a plane serves it itself: a `set` in one datagram becomes a command of the
 * key-value store (apps/kv), and STORED is its answer once it is committed. Whatever is written in another
 * way, or asks for anything else, is not taken here: software reads it, and refuses what is wrong with it.
 *
 * A plain `set` stores whatever was there before, so its answer is known without the state machine. One with
 * a lifetime is left to software: lifetimes count from a tick, which only the leader's host puts into the log. */
#ifndef QW_MEMCACHED_H
#define QW_MEMCACHED_H

#include "qw_wire.h"

/* Memcached's frame: the client's number for the request, the number of this datagram, how many there are,
 * zero; 16 bits each. */
#define QW_MEMCACHED_FRAME_BYTES 8
#define QW_MEMCACHED_KEY_BYTES_MAX 250
#define QW_MEMCACHED_DIGITS_MAX 10
/* A command before its key: what it is, the key's length, flags, expiry. */
#define QW_MEMCACHED_COMMAND_HEAD_BYTES 14
/* The store's number for a `set`, in its first format. */
#define QW_MEMCACHED_COMMAND_SET 0x11
#define QW_MEMCACHED_ANSWER_BYTES 16

/* A `set`, and where its parts stand in the datagram. */
struct qw_memcached_set {
	__u32 client_flags;
	__u16 request;
	__u16 key_at;
	__u16 key_bytes;
	__u16 value_at;
	__u16 value_bytes;
	__u16 noreply;
};
_Static_assert(sizeof(struct qw_memcached_set) == 16, "as in src/memcached.rs");

/* A number of 1 to 10 digits that ends where something else begins: 0 if there is none. Moves `at`. */
static inline __attribute__((always_inline)) int
qw_memcached_number(const __u8 *bytes, __u32 count, __u32 *at, __u64 *number)
{
	__u64 value = 0;
	__u32 digits;

	for (digits = 0; digits <= QW_MEMCACHED_DIGITS_MAX; digits++) {
		__u32 place = *at + digits;

		if (place >= count || bytes[place] < '0' || bytes[place] > '9')
			break;
		value = value * 10 + (__u64)(bytes[place] - '0');
	}
	*at += digits;
	*number = value;
	return digits > 0 && digits <= QW_MEMCACHED_DIGITS_MAX;
}

/* Whether this byte comes next. Moves `at` if so. */
static inline __attribute__((always_inline)) int
qw_memcached_next(const __u8 *bytes, __u32 count, __u32 *at, __u8 wanted)
{
	if (*at >= count || bytes[*at] != wanted)
		return 0;
	(*at)++;
	return 1;
}

/* The key, up to the space behind it. */
static inline __attribute__((always_inline)) int
qw_memcached_key(const __u8 *bytes, __u32 count, __u32 *at, struct qw_memcached_set *set)
{
	__u32 length;

	set->key_at = (__u16)*at;
	for (length = 0; length <= QW_MEMCACHED_KEY_BYTES_MAX; length++) {
		__u32 place = *at + length;

		if (place >= count || bytes[place] <= ' ' || bytes[place] == 0x7f)
			break;
	}
	if (length == 0 || length > QW_MEMCACHED_KEY_BYTES_MAX)
		return 0;
	set->key_bytes = (__u16)length;
	*at += length;
	return qw_memcached_next(bytes, count, at, ' ');
}

/* The end of the line, before it maybe `noreply`. */
static inline __attribute__((always_inline)) int
qw_memcached_line_end(const __u8 *bytes, __u32 count, __u32 *at, struct qw_memcached_set *set)
{
	static const __u8 noreply[] = { ' ', 'n', 'o', 'r', 'e', 'p', 'l', 'y' };
	__u32 place;

	set->noreply = *at < count && bytes[*at] == ' ';
	for (place = 0; place < sizeof(noreply) && set->noreply; place++) {
		if (!qw_memcached_next(bytes, count, at, noreply[place]))
			return 0;
	}
	return qw_memcached_next(bytes, count, at, '\r') &&
	       qw_memcached_next(bytes, count, at, '\n');
}

/* Reads a datagram: whether it is a `set` that a plane can carry. */
static inline int
qw_memcached_read(const __u8 *bytes, __u32 count, struct qw_memcached_set *set)
{
	static const __u8 begins[] = { 0, 0, 0, 1, 0, 0, 's', 'e', 't', ' ' };
	__u32 at = 2;
	__u32 place;
	__u64 number;

	if (count < QW_MEMCACHED_FRAME_BYTES || count > QW_PAYLOAD_BYTES_MAX + 64)
		return 0;
	set->request = (__u16)(bytes[0] << 8 | bytes[1]);
	for (place = 0; place < sizeof(begins); place++) {
		if (!qw_memcached_next(bytes, count, &at, begins[place]))
			return 0;
	}
	if (!qw_memcached_key(bytes, count, &at, set))
		return 0;
	if (!qw_memcached_number(bytes, count, &at, &number) || number > 0xffffffff)
		return 0;
	set->client_flags = (__u32)number;
	if (!qw_memcached_next(bytes, count, &at, ' '))
		return 0;
	/* Without the check, a lifetime would be none. */
	if (!qw_memcached_number(bytes, count, &at, &number) || number != 0)
		return 0;
	if (!qw_memcached_next(bytes, count, &at, ' ') ||
	    !qw_memcached_number(bytes, count, &at, &number) ||
	    !qw_memcached_line_end(bytes, count, &at, set))
		return 0;
	/* The value and the end of its line are all that is left. */
	if (number > QW_PAYLOAD_BYTES_MAX || at + number + 2 != count ||
	    bytes[count - 2] != '\r' || bytes[count - 1] != '\n')
		return 0;
	set->value_at = (__u16)at;
	set->value_bytes = (__u16)number;
	return QW_MEMCACHED_COMMAND_HEAD_BYTES + set->key_bytes + number <= QW_PAYLOAD_BYTES_MAX;
}

/* Writes what stands before the key in the command; key and value follow as the client sent them. */
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
