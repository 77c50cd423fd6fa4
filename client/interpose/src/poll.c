/* poll() and select() over virtual descriptors and the kernel's. */
#include "interpose.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Descriptors of the kernel's that are waited for beside virtual ones. */
#define PLAIN_MAX 1024

static bool has_virtual(const struct pollfd *wanted, nfds_t count)
{
	for (nfds_t i = 0; i < count; i++) {
		if (qw_object_of(wanted[i].fd))
			return true;
	}
	return false;
}

/* What virtual descriptors have. */
static int look(struct pollfd *wanted, nfds_t count)
{
	int found = 0;

	for (nfds_t i = 0; i < count; i++) {
		struct qw_object *object = qw_object_of(wanted[i].fd);

		if (!object)
			continue;
		wanted[i].revents = (short)((int)qw_events_of(object) & (wanted[i].events | POLLERR | POLLHUP));
		found += wanted[i].revents != 0;
	}
	return found;
}

struct poll_ask {
	struct pollfd *wanted;
	nfds_t count;
	int found;
};

/* The kernel's of them, and the doorbell. */
static int ask_poll(void *what, int wait_ms)
{
	struct poll_ask *ask = what;
	struct pollfd plain[PLAIN_MAX + 1];
	nfds_t place[PLAIN_MAX], plain_count = 0;
	uint64_t count;

	for (nfds_t i = 0; i < ask->count && plain_count < PLAIN_MAX; i++) {
		if (ask->wanted[i].fd < 0 || qw_object_of(ask->wanted[i].fd))
			continue;
		place[plain_count] = i;
		plain[plain_count++] = ask->wanted[i];
	}
	plain[plain_count] = (struct pollfd){ .fd = qw.door, .events = POLLIN };
	ask->found = QW_REAL(poll)(plain, plain_count + 1, wait_ms);
	if (ask->found <= 0)
		return ask->found;
	if (plain[plain_count].revents) {
		ask->found--;
		if (syscall(SYS_read, qw.door, &count, sizeof(count)) < 0 && errno != EAGAIN)
			return -1;
	}
	for (nfds_t i = 0; i < plain_count; i++)
		ask->wanted[place[i]].revents = plain[i].revents;
	return ask->found;
}

static int wait_for(struct pollfd *wanted, nfds_t count, int64_t wait_ns)
{
	struct poll_ask ask = { .wanted = wanted, .count = count };
	uint64_t deadline;
	int found;

	qw_enter();
	deadline = wait_ns < 0 ? QW_NEVER : qw.now_ns + (uint64_t)wait_ns;
	for (nfds_t i = 0; i < count; i++)
		wanted[i].revents = 0;
	for (;;) {
		found = look(wanted, count);
		if (found)
			return found;
		if (wait_ns == 0) {
			if (++qw.idle_waits < QW_IDLE_WAITS_MAX)
				return ask_poll(&ask, 0);
			wait_ns = -1;
			deadline = QW_NEVER;
		}
		switch (qw_wait_beside(deadline, ask_poll, &ask)) {
		case QW_WOKEN_TURN:
			if (!(found = look(wanted, count)))
				found = ask_poll(&ask, 0);
			break;
		case QW_WOKEN_LATE:
			return look(wanted, count);
		case QW_WOKEN_KERNEL:
			return ask.found;
		case QW_WOKEN_SIGNAL:
			found = look(wanted, count);
			return found ? found : -1;
		}
		if (found)
			return found;
	}
}

static int masked(struct pollfd *wanted, nfds_t count, int64_t wait_ns, const sigset_t *mask)
{
	sigset_t before;
	int found, error;

	if (!mask)
		return wait_for(wanted, count, wait_ns);
	pthread_sigmask(SIG_SETMASK, mask, &before);
	found = wait_for(wanted, count, wait_ns);
	error = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return found;
}

static int64_t nanoseconds(const struct timespec *wait)
{
	return wait ? (int64_t)wait->tv_sec * 1000000000 + wait->tv_nsec : -1;
}

QW_CALL int poll(struct pollfd *wanted, nfds_t count, int wait_ms)
{
	if (qw.on != 1 || !has_virtual(wanted, count))
		return QW_REAL(poll)(wanted, count, wait_ms);
	return masked(wanted, count, (int64_t)wait_ms * 1000000, NULL);
}

QW_CALL int __poll_chk(struct pollfd *wanted, nfds_t count, int wait_ms, size_t bytes)
{
	if (bytes / sizeof(*wanted) < count)
		abort();
	return poll(wanted, count, wait_ms);
}

QW_CALL int ppoll(struct pollfd *wanted, nfds_t count, const struct timespec *wait, const sigset_t *mask)
{
	if (qw.on != 1 || !has_virtual(wanted, count))
		return QW_REAL(ppoll)(wanted, count, wait, mask);
	return masked(wanted, count, nanoseconds(wait), mask);
}

/* --- select() is poll() in another form */

static short wanted_by_sets(int descriptor, const fd_set *in, const fd_set *out, const fd_set *except)
{
	int events = 0;

	events |= in && FD_ISSET(descriptor, in) ? POLLIN : 0;
	events |= out && FD_ISSET(descriptor, out) ? POLLOUT : 0;
	events |= except && FD_ISSET(descriptor, except) ? POLLPRI : 0;
	return (short)events;
}

static bool sets_have_virtual(int limit, const fd_set *in, const fd_set *out, const fd_set *except)
{
	for (int descriptor = 0; descriptor < limit; descriptor++) {
		if (wanted_by_sets(descriptor, in, out, except) && qw_object_of(descriptor))
			return true;
	}
	return false;
}

static int select_by_poll(int limit, fd_set *in, fd_set *out, fd_set *except, int64_t wait_ns,
			  const sigset_t *mask)
{
	struct pollfd wanted[FD_SETSIZE];
	nfds_t count = 0;
	int found, bits = 0;

	for (int descriptor = 0; descriptor < limit && descriptor < FD_SETSIZE; descriptor++) {
		short events = wanted_by_sets(descriptor, in, out, except);

		if (events)
			wanted[count++] = (struct pollfd){ .fd = descriptor, .events = events };
	}
	found = masked(wanted, count, wait_ns, mask);
	if (found < 0)
		return found;
	for (nfds_t i = 0; i < count; i++) {
		int has = wanted[i].revents, descriptor = wanted[i].fd;

		if (has & POLLNVAL) {
			errno = EBADF;
			return -1;
		}
		if (wanted[i].events & POLLIN && !(has & (POLLIN | POLLHUP | POLLERR)))
			FD_CLR(descriptor, in);
		else
			bits += (wanted[i].events & POLLIN) != 0;
		if (wanted[i].events & POLLOUT && !(has & (POLLOUT | POLLERR)))
			FD_CLR(descriptor, out);
		else
			bits += (wanted[i].events & POLLOUT) != 0;
		if (wanted[i].events & POLLPRI && !(has & POLLPRI))
			FD_CLR(descriptor, except);
		else
			bits += (wanted[i].events & POLLPRI) != 0;
	}
	return bits;
}

QW_CALL int select(int limit, fd_set *in, fd_set *out, fd_set *except, struct timeval *wait)
{
	int64_t wait_ns = wait ? (int64_t)wait->tv_sec * 1000000000 + (int64_t)wait->tv_usec * 1000 : -1;

	if (qw.on != 1 || !sets_have_virtual(limit, in, out, except))
		return QW_REAL(select)(limit, in, out, except, wait);
	return select_by_poll(limit, in, out, except, wait_ns, NULL);
}

QW_CALL int pselect(int limit, fd_set *in, fd_set *out, fd_set *except, const struct timespec *wait,
		    const sigset_t *mask)
{
	if (qw.on != 1 || !sets_have_virtual(limit, in, out, except))
		return QW_REAL(pselect)(limit, in, out, except, wait, mask);
	return select_by_poll(limit, in, out, except, nanoseconds(wait), mask);
}
