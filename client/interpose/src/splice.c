/* Between pipes and connections. */
#include "interpose.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Most bytes of one call. */
#define PIECE_BYTES 65536

static uint8_t piece[PIECE_BYTES];

static bool is_pipe(int descriptor)
{
	struct stat found;

	return !qw_object_of(descriptor) && !fstat(descriptor, &found) && S_ISFIFO(found.st_mode);
}

/* Whether the pipe is ready, for `events`; otherwise errno says why not. */
static bool may_use_pipe(int pipe, short events, unsigned int flags)
{
	struct pollfd wanted = { .fd = pipe, .events = events };
	bool waits = !(flags & SPLICE_F_NONBLOCK) && qw_does_block(pipe);
	int found;

	if (waits && !qw_await_descriptor(pipe, events))
		return false;
	found = QW_REAL(poll)(&wanted, 1, waits ? -1 : 0);
	if (found == 0)
		errno = EAGAIN;
	return found > 0;
}

static ssize_t out_of_pipe(int pipe, int to, size_t count, unsigned int flags)
{
	ssize_t got;

	if (write(to, piece, 0) < 0) /* broken: the pipe keeps what it has */
		return -1;
	if (!may_use_pipe(pipe, POLLIN, flags))
		return -1;
	got = QW_REAL(read)(pipe, piece, count);
	return got > 0 ? write(to, piece, (size_t)got) : got;
}

static ssize_t into_pipe(int from, int pipe, size_t count, unsigned int flags)
{
	int used = 0, size = fcntl(pipe, F_GETPIPE_SZ);
	ssize_t got;

	if (!may_use_pipe(pipe, POLLOUT, flags))
		return -1;
	if (QW_REAL(ioctl)(pipe, FIONREAD, &used) || size <= used)
		used = size - 1;
	if (count > (size_t)(size - used))
		count = (size_t)(size - used);
	got = recv(from, piece, count, MSG_PEEK);
	if (got > 0)
		got = QW_REAL(write)(pipe, piece, (size_t)got);
	return got > 0 ? recv(from, piece, (size_t)got, 0) : got;
}

QW_CALL ssize_t splice(int from, off64_t *from_at, int to, off64_t *to_at, size_t count, unsigned int flags)
{
	bool is_from = qw_is_socket(qw_object_of(from)), is_to = qw_is_socket(qw_object_of(to));

	if (!is_from && !is_to && !(flags & SPLICE_F_NONBLOCK) &&
	    (!qw_await_descriptor(from, POLLIN) || !qw_await_descriptor(to, POLLOUT)))
		return -1;
	if (!is_from && !is_to)
		return QW_REAL(splice)(from, from_at, to, to_at, count, flags);
	if (count > PIECE_BYTES)
		count = PIECE_BYTES;
	if (count == 0)
		return 0;
	if ((is_from && from_at) || (is_to && to_at)) {
		errno = ESPIPE;
		return -1;
	}
	if (is_from && is_pipe(to))
		return into_pipe(from, to, count, flags);
	if (is_to && is_pipe(from))
		return out_of_pipe(from, to, count, flags);
	errno = EINVAL;
	return -1;
}
