/* Chance follows from the cluster's key and the turn: every replica draws the same, whenever it
 * began. */
#include "interpose.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define BLOCK_BYTES 64

static uint32_t rotated(uint32_t value, int by)
{
	return value << by | value >> (32 - by);
}

static void quarter(uint32_t *x, int a, int b, int c, int d)
{
	x[a] += x[b];
	x[d] = rotated(x[d] ^ x[a], 16);
	x[c] += x[d];
	x[b] = rotated(x[b] ^ x[c], 12);
	x[a] += x[b];
	x[d] = rotated(x[d] ^ x[a], 8);
	x[c] += x[d];
	x[b] = rotated(x[b] ^ x[c], 7);
}

/* A block of ChaCha20 (RFC 8439, section 2.3) with a counter of 64 bits, as Bernstein's. */
static void chacha_block(uint64_t counter, uint64_t nonce, uint8_t out[BLOCK_BYTES])
{
	uint32_t start[16] = { 0x61707865, 0x3320646e, 0x79622d32, 0x6b206574 }, x[16];

	memcpy(start + 4, qw.control->key, 32);
	start[12] = (uint32_t)counter;
	start[13] = (uint32_t)(counter >> 32);
	start[14] = (uint32_t)nonce;
	start[15] = (uint32_t)(nonce >> 32);
	memcpy(x, start, sizeof(x));
	for (int round = 0; round < 10; round++) {
		quarter(x, 0, 4, 8, 12);
		quarter(x, 1, 5, 9, 13);
		quarter(x, 2, 6, 10, 14);
		quarter(x, 3, 7, 11, 15);
		quarter(x, 0, 5, 10, 15);
		quarter(x, 1, 6, 11, 12);
		quarter(x, 2, 7, 8, 13);
		quarter(x, 3, 4, 9, 14);
	}
	for (int i = 0; i < 16; i++)
		x[i] += start[i];
	memcpy(out, x, BLOCK_BYTES);
}

void qw_chance(void *bytes, size_t count)
{
	uint8_t block[BLOCK_BYTES], *to = bytes;

	while (count > 0) {
		size_t at = qw.chance_at % BLOCK_BYTES, part = BLOCK_BYTES - at;

		chacha_block(qw.chance_at / BLOCK_BYTES, qw.turn, block);
		part = part < count ? part : count;
		memcpy(to, block + at, part);
		to += part;
		count -= part;
		qw.chance_at += part;
	}
}

/* --- other threads, whose turns have no order, have the kernel's */

QW_CALL ssize_t getrandom(void *bytes, size_t count, unsigned int flags)
{
	if (!qw_is_in_turn() || flags & ~(unsigned int)(GRND_NONBLOCK | GRND_RANDOM | GRND_INSECURE))
		return QW_REAL(getrandom)(bytes, count, flags);
	qw_chance(bytes, count);
	return (ssize_t)count;
}

QW_CALL int getentropy(void *bytes, size_t count)
{
	if (!qw_is_in_turn())
		return QW_REAL(getentropy)(bytes, count);
	if (count > 256) {
		errno = EIO;
		return -1;
	}
	qw_chance(bytes, count);
	return 0;
}

QW_CALL void arc4random_buf(void *bytes, size_t count)
{
	if (qw_is_in_turn())
		qw_chance(bytes, count);
	else if (getrandom(bytes, count, 0) != (ssize_t)count)
		abort();
}

QW_CALL uint32_t arc4random(void)
{
	uint32_t number;

	arc4random_buf(&number, sizeof(number));
	return number;
}

QW_CALL uint32_t arc4random_uniform(uint32_t limit)
{
	uint32_t number, least = limit ? -limit % limit : 0;

	if (limit < 2)
		return 0;
	do
		number = arc4random();
	while (number < least);
	return number % limit;
}

static bool is_random_file(const char *path)
{
	return path && (!strcmp(path, "/dev/urandom") || !strcmp(path, "/dev/random"));
}

/* The kernel says what is wrong with these. */
#define NO_DRAW (O_DIRECTORY | O_EXCL | O_PATH)

static int open_virtual(int flags)
{
	int descriptor = QW_REAL(open64)("/dev/null", flags & (O_CLOEXEC | O_NONBLOCK));

	if (descriptor >= 0)
		qw_set_object(descriptor, qw_new_object(QW_RANDOM));
	return descriptor;
}

static mode_t mode_of(int flags, va_list list)
{
	return flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(list, unsigned int) : 0;
}

#define OPEN_CALL(name) \
	QW_CALL int name(const char *path, int flags, ...) \
	{ \
		va_list list; \
		mode_t mode; \
		if (is_random_file(path) && qw_is_in_turn() && !(flags & NO_DRAW)) \
			return open_virtual(flags); \
		va_start(list, flags); \
		mode = mode_of(flags, list); \
		va_end(list); \
		return QW_REAL(name)(path, flags, mode); \
	}

#define OPENAT_CALL(name) \
	QW_CALL int name(int folder, const char *path, int flags, ...) \
	{ \
		va_list list; \
		mode_t mode; \
		if (is_random_file(path) && qw_is_in_turn() && !(flags & NO_DRAW)) \
			return open_virtual(flags); \
		va_start(list, flags); \
		mode = mode_of(flags, list); \
		va_end(list); \
		return QW_REAL(name)(folder, path, flags, mode); \
	}

OPEN_CALL(open)
OPEN_CALL(open64)
OPENAT_CALL(openat)
OPENAT_CALL(openat64)

QW_CALL int __open_2(const char *path, int flags)
{
	return open(path, flags);
}

QW_CALL int __open64_2(const char *path, int flags)
{
	return open64(path, flags);
}

QW_CALL int __openat_2(int folder, const char *path, int flags)
{
	return openat(folder, path, flags);
}

QW_CALL int __openat64_2(int folder, const char *path, int flags)
{
	return openat64(folder, path, flags);
}

static ssize_t read_chance(void *unused, char *bytes, size_t count)
{
	(void)unused;
	qw_chance(bytes, count);
	return (ssize_t)count;
}

static FILE *open_stream(const char *mode)
{
	cookie_io_functions_t calls = { .read = read_chance };
	FILE *file = fopencookie(NULL, mode, calls);

	/* What is read ahead would be another turn's. */
	if (file)
		setvbuf(file, NULL, _IONBF, 0);
	return file;
}

QW_CALL FILE *fopen(const char *path, const char *mode)
{
	if (is_random_file(path) && qw_is_in_turn())
		return open_stream(mode);
	return QW_REAL(fopen)(path, mode);
}

QW_CALL FILE *fopen64(const char *path, const char *mode)
{
	if (is_random_file(path) && qw_is_in_turn())
		return open_stream(mode);
	return QW_REAL(fopen64)(path, mode);
}
