/* epoll over virtual descriptors and the kernel's: level and edge, once, several instances. */
#include "interpose.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static void make_ready(struct qw_watch *watch)
{
	struct qw_epoll *epoll = watch->epoll;

	if (watch->is_ready)
		return;
	watch->is_ready = true;
	watch->next_ready = NULL;
	watch->previous_ready = epoll->last_ready;
	if (epoll->last_ready)
		epoll->last_ready->next_ready = watch;
	else
		epoll->first_ready = watch;
	epoll->last_ready = watch;
}

void qw_unready(struct qw_watch *watch)
{
	struct qw_epoll *epoll = watch->epoll;

	if (!watch->is_ready)
		return;
	watch->is_ready = false;
	if (watch->previous_ready)
		watch->previous_ready->next_ready = watch->next_ready;
	else
		epoll->first_ready = watch->next_ready;
	if (watch->next_ready)
		watch->next_ready->previous_ready = watch->previous_ready;
	else
		epoll->last_ready = watch->previous_ready;
}

void qw_has_news(struct qw_object *object)
{
	for (struct qw_watch *watch = object->watches; watch; watch = watch->next_of_object) {
		watch->has_news = true;
		if (qw_events_of(object) & (watch->events | EPOLLERR | EPOLLHUP))
			make_ready(watch);
	}
}

/* What the kernel has for this epoll instance, and the doorbell, which is added to it. */
static int ask_kernel(int descriptor, struct epoll_event *events, int most, int wait_ms)
{
	struct qw_epoll *epoll = qw_epoll_of(descriptor, true);
	int found, kept = 0;

	if (!epoll->has_door) {
		struct epoll_event door = { .events = EPOLLIN, .data.ptr = &qw };

		if (QW_REAL(epoll_ctl)(descriptor, EPOLL_CTL_ADD, qw.door, &door))
			qw_refuse(QW_WHY_CALL, (uint64_t)errno);
		epoll->has_door = true;
	}
	found = QW_REAL(epoll_pwait)(descriptor, events, most, wait_ms, NULL);
	for (int i = 0; i < found; i++) {
		uint64_t count;

		if (events[i].data.ptr != &qw)
			events[kept++] = events[i];
		else if (syscall(SYS_read, qw.door, &count, sizeof(count)) < 0 && errno != EAGAIN)
			qw_refuse(QW_WHY_CALL, (uint64_t)errno);
	}
	return found < 0 ? found : kept;
}

static struct qw_watch *watch_of(struct qw_epoll *epoll, int descriptor)
{
	for (struct qw_watch *watch = epoll->watches; watch; watch = watch->next_of_epoll) {
		if (watch->descriptor == descriptor)
			return watch;
	}
	return NULL;
}

static void set_watch(struct qw_watch *watch, const struct epoll_event *event)
{
	watch->events = event->events;
	watch->data = event->data;
	watch->has_news = true;
	if (qw_events_of(watch->object) & (watch->events | EPOLLERR | EPOLLHUP))
		make_ready(watch);
}

static int add_watch(int descriptor, int watched, struct qw_object *object, const struct epoll_event *event)
{
	struct qw_epoll *epoll = qw_epoll_of(descriptor, true);
	struct qw_watch *watch = calloc(1, sizeof(*watch));

	if (!watch) {
		errno = ENOMEM;
		return -1;
	}
	watch->epoll = epoll;
	watch->object = object;
	watch->descriptor = watched;
	watch->next_of_epoll = epoll->watches;
	epoll->watches = watch;
	watch->next_of_object = object->watches;
	object->watches = watch;
	set_watch(watch, event);
	return 0;
}

QW_CALL int epoll_ctl(int descriptor, int operation, int watched, struct epoll_event *event)
{
	struct qw_object *object = qw_object_of(watched);
	struct qw_watch *watch;

	if (!object)
		return QW_REAL(epoll_ctl)(descriptor, operation, watched, event);
	watch = watch_of(qw_epoll_of(descriptor, true), watched);
	if (operation == EPOLL_CTL_ADD && watch) {
		errno = EEXIST;
		return -1;
	}
	if (operation != EPOLL_CTL_ADD && !watch) {
		errno = ENOENT;
		return -1;
	}
	switch (operation) {
	case EPOLL_CTL_ADD:
		return add_watch(descriptor, watched, object, event);
	case EPOLL_CTL_MOD:
		set_watch(watch, event);
		return 0;
	case EPOLL_CTL_DEL:
		qw_forget_watch(watch);
		return 0;
	default:
		errno = EINVAL;
		return -1;
	}
}

/* What virtual descriptors have for this instance, in the order in which it came. */
static int gather(struct qw_epoll *epoll, struct epoll_event *events, int most)
{
	struct qw_watch *last = epoll->last_ready, *watch = epoll->first_ready, *next;
	int found = 0;

	for (bool goes_on = watch; goes_on && found < most; watch = next) {
		uint32_t has = qw_events_of(watch->object) & (watch->events | EPOLLERR | EPOLLHUP);

		goes_on = watch != last;
		next = watch->next_ready;
		qw_unready(watch);
		if (!has || (watch->events & EPOLLET && !watch->has_news))
			continue;
		watch->has_news = false;
		events[found].events = has;
		events[found++].data = watch->data;
		if (watch->events & EPOLLONESHOT)
			watch->events &= EPOLLONESHOT | EPOLLET;
		else if (!(watch->events & EPOLLET))
			make_ready(watch);
	}
	return found;
}

struct epoll_ask {
	int descriptor, most, found;
	struct epoll_event *events;
};

static int ask_epoll(void *what, int wait_ms)
{
	struct epoll_ask *ask = what;

	ask->found = ask_kernel(ask->descriptor, ask->events, ask->most, wait_ms);
	return ask->found;
}

static uint64_t deadline_in(int64_t wait_ns)
{
	return wait_ns < 0 ? QW_NEVER : qw.now_ns + (uint64_t)wait_ns;
}

static int wait_for_events(int descriptor, struct epoll_event *events, int most, int64_t wait_ns)
{
	struct qw_epoll *epoll = qw_epoll_of(descriptor, true);
	struct epoll_ask ask = { .descriptor = descriptor, .most = most, .events = events };
	uint64_t deadline = deadline_in(wait_ns);
	int found;

	qw_enter();
	for (;;) {
		found = gather(epoll, events, most);
		if (found)
			return found;
		if (wait_ns == 0) {
			/* A program that never waits is given turns all the same, everywhere after
			 * as many looks. */
			if (++qw.idle_waits < QW_IDLE_WAITS_MAX)
				return ask_kernel(descriptor, events, most, 0);
			wait_ns = -1;
			deadline = QW_NEVER;
		}
		switch (qw_wait_beside(deadline, ask_epoll, &ask)) {
		case QW_WOKEN_TURN:
			if (!(found = gather(epoll, events, most)))
				found = ask_kernel(descriptor, events, most, 0);
			break;
		case QW_WOKEN_LATE:
			return gather(epoll, events, most);
		case QW_WOKEN_KERNEL:
			return ask.found;
		case QW_WOKEN_SIGNAL:
			found = gather(epoll, events, most);
			return found ? found : -1;
		}
		if (found)
			return found;
	}
}

/* Whether turns are taken by whoever waits there: a client's connection, or a port, is in it. */
static bool serves(int descriptor)
{
	struct qw_epoll *epoll = qw_epoll_of(descriptor, false);

	return qw.on == 1 && epoll && epoll->watches;
}

/* While a signal mask is set for the wait only. */
static int masked(int descriptor, struct epoll_event *events, int most, int64_t wait_ns, const sigset_t *mask)
{
	sigset_t before;
	int found;

	if (most <= 0) {
		errno = EINVAL;
		return -1;
	}
	if (mask && pthread_sigmask(SIG_SETMASK, mask, &before))
		return -1;
	found = wait_for_events(descriptor, events, most, wait_ns);
	if (mask) {
		int error = errno;

		pthread_sigmask(SIG_SETMASK, &before, NULL);
		errno = error;
	}
	return found;
}

QW_CALL int epoll_wait(int descriptor, struct epoll_event *events, int most, int wait_ms)
{
	if (!serves(descriptor))
		return QW_REAL(epoll_wait)(descriptor, events, most, wait_ms);
	return masked(descriptor, events, most, (int64_t)wait_ms * 1000000, NULL);
}

QW_CALL int epoll_pwait(int descriptor, struct epoll_event *events, int most, int wait_ms, const sigset_t *mask)
{
	if (!serves(descriptor))
		return QW_REAL(epoll_pwait)(descriptor, events, most, wait_ms, mask);
	return masked(descriptor, events, most, (int64_t)wait_ms * 1000000, mask);
}

QW_CALL int epoll_pwait2(int descriptor, struct epoll_event *events, int most, const struct timespec *wait,
			 const sigset_t *mask)
{
	int64_t wait_ns = -1;

	if (!serves(descriptor))
		return QW_REAL(epoll_pwait2)(descriptor, events, most, wait, mask);
	if (wait)
		wait_ns = (int64_t)wait->tv_sec * 1000000000 + wait->tv_nsec;
	return masked(descriptor, events, most, wait_ns, mask);
}
