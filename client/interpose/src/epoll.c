/* epoll over virtual descriptors and the kernel's: level and edge, once, several instances. */
#include "interpose.h"

#include <fcntl.h>
#include <poll.h>
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

/* What there is for a watch now. */
static uint32_t events_of(const struct qw_watch *watch)
{
	uint32_t has = qw_events_of(watch->object) & watch->events;

	return watch->events & EPOLLET && !watch->has_news ? 0 : has;
}

bool qw_has_ready(const struct qw_epoll *epoll)
{
	for (const struct qw_watch *watch = epoll->first_ready; watch; watch = watch->next_ready) {
		if (events_of(watch))
			return true;
	}
	return false;
}

void qw_has_news_of(struct qw_object *object, uint32_t news)
{
	object->news++;
	for (struct qw_watch *watch = object->watches; watch; watch = watch->next_of_object) {
		if (!(watch->events & news))
			continue;
		watch->has_news = true;
		if (!(qw_events_of(object) & watch->events))
			continue;
		make_ready(watch);
		qw_has_news_of(watch->epoll->object, QW_READ_EVENTS);
	}
}

void qw_has_news(struct qw_object *object)
{
	qw_has_news_of(object, ~0U);
}

/* Whether an event of the kernel's is of an instance within this one, and stands for nothing but
 * the doorbell. */
static bool is_only_door(const struct qw_epoll *epoll, struct epoll_event *event)
{
	struct pollfd inner = { .events = POLLIN };

	for (const struct qw_watch *watch = epoll->has_nested ? epoll->watches : NULL; watch;
	     watch = watch->next_of_epoll) {
		if (event->data.ptr != watch)
			continue;
		event->data = watch->data;
		inner.fd = watch->descriptor;
		return QW_REAL(poll)(&inner, 1, 0) == 0;
	}
	return false;
}

/* What the kernel has for this epoll instance, and the doorbell, which is added to it. */
static int ask_kernel(int descriptor, struct epoll_event *events, int most, int wait_ms)
{
	struct qw_epoll *epoll = qw_epoll_of(descriptor, true);
	int found, kept = 0;

	if (QW_DOOR_IN_EPOLLS && !epoll->has_door) {
		struct epoll_event door = { .events = EPOLLIN, .data.ptr = &qw };

		if (QW_REAL(epoll_ctl)(descriptor, EPOLL_CTL_ADD, qw.door, &door))
			qw_refuse(QW_WHY_CALL, (uint64_t)errno);
		epoll->has_door = true;
	}
	found = QW_REAL(epoll_pwait)(descriptor, events, most, wait_ms, qw_mask);
	for (int i = 0; i < found; i++) {
		uint64_t count;

		if (events[i].data.ptr != &qw)
			continue;
		if (syscall(SYS_read, qw.door, &count, sizeof(count)) < 0 && errno != EAGAIN)
			qw_refuse(QW_WHY_CALL, (uint64_t)errno);
	}
	for (int i = 0; i < found; i++) {
		if (events[i].data.ptr != &qw && !is_only_door(epoll, events + i))
			events[kept++] = events[i];
	}
	return found < 0 ? found : kept;
}

static struct qw_watch *watch_of(const struct qw_epoll *epoll, const struct qw_object *object, int descriptor)
{
	for (struct qw_watch *watch = object->watches; watch; watch = watch->next_of_object) {
		if (watch->epoll == epoll && watch->descriptor == descriptor)
			return watch;
	}
	return NULL;
}

static void set_watch(struct qw_watch *watch, const struct epoll_event *event)
{
	watch->events = event->events | EPOLLERR | EPOLLHUP;
	watch->data = event->data;
	watch->has_news = true;
	if (!(qw_events_of(watch->object) & watch->events))
		return;
	make_ready(watch);
	qw_has_news_of(watch->epoll->object, QW_READ_EVENTS);
}

/* An instance within another has its own place in the kernel's: what the kernel has for it is known
 * there only. */
static int tell_kernel(int descriptor, int operation, struct qw_watch *watch, const struct epoll_event *event)
{
	struct epoll_event inner = { .events = event ? event->events : 0, .data.ptr = watch };

	if (watch->object->kind != QW_EPOLL)
		return 0;
	watch->epoll->has_nested = true;
	return QW_REAL(epoll_ctl)(descriptor, operation, watch->descriptor, &inner);
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
	if (tell_kernel(descriptor, EPOLL_CTL_ADD, watch, event)) {
		free(watch);
		return -1;
	}
	watch->next_of_epoll = epoll->watches;
	if (epoll->watches)
		epoll->watches->previous_of_epoll = watch;
	epoll->watches = watch;
	watch->next_of_object = object->watches;
	object->watches = watch;
	set_watch(watch, event);
	return 0;
}

/* What may stand beside `EPOLLEXCLUSIVE`. */
#define EXCLUSIVE_EVENTS \
	(EPOLLIN | EPOLLOUT | EPOLLRDNORM | EPOLLWRNORM | EPOLLRDBAND | EPOLLWRBAND | EPOLLERR | EPOLLHUP | \
	 EPOLLWAKEUP | EPOLLET | EPOLLEXCLUSIVE)

/* What is wrong with it; 0: nothing. */
static int fault_of(int operation, const struct qw_watch *watch, const struct epoll_event *event)
{
	switch (operation) {
	case EPOLL_CTL_ADD:
		if (watch)
			return EEXIST;
		return event->events & EPOLLEXCLUSIVE && event->events & ~EXCLUSIVE_EVENTS ? EINVAL : 0;
	case EPOLL_CTL_MOD:
		if (!watch)
			return event->events & EPOLLEXCLUSIVE ? EINVAL : ENOENT;
		return (event->events | watch->events) & EPOLLEXCLUSIVE ? EINVAL : 0;
	case EPOLL_CTL_DEL:
		return watch ? 0 : ENOENT;
	default:
		return EINVAL;
	}
}

static int control_virtual(int descriptor, struct qw_epoll *epoll, int operation, int watched,
			   struct qw_object *object, struct epoll_event *event)
{
	struct qw_watch *watch = watch_of(epoll, object, watched);

	errno = fault_of(operation, watch, event);
	if (errno)
		return -1;
	if (operation == EPOLL_CTL_ADD)
		return add_watch(descriptor, watched, object, event);
	if (tell_kernel(descriptor, operation, watch, event))
		return -1;
	if (operation == EPOLL_CTL_MOD)
		set_watch(watch, event);
	else
		qw_forget_watch(watch);
	return 0;
}

QW_CALL int epoll_ctl(int descriptor, int operation, int watched, struct epoll_event *event)
{
	struct qw_object *object = qw_object_of(watched);
	struct qw_epoll *epoll;
	int result;

	if (!object && qw.on == 1 && operation == EPOLL_CTL_ADD && qw_epoll_of(watched, true))
		object = qw_object_of(watched); /* an instance within another */
	if (object) {
		epoll = qw_epoll_of(descriptor, true);
		if (epoll)
			return control_virtual(descriptor, epoll, operation, watched, object, event);
		errno = fcntl(descriptor, F_GETFD) < 0 ? EBADF : EINVAL;
		return -1;
	}
	result = QW_REAL(epoll_ctl)(descriptor, operation, watched, event);
	epoll = result == 0 && operation == EPOLL_CTL_ADD && qw.on == 1 ? qw_epoll_of(descriptor, true) : NULL;
	if (epoll)
		epoll->has_plain = true;
	return result;
}

/* What virtual descriptors have for this instance, in the order in which it came. */
static int gather(struct qw_epoll *epoll, struct epoll_event *events, int most)
{
	struct qw_watch *last = epoll->last_ready, *watch = epoll->first_ready, *next;
	int found = 0;

	for (bool goes_on = watch; goes_on && found < most; watch = next) {
		uint32_t has = events_of(watch);

		goes_on = watch != last;
		next = watch->next_ready;
		qw_unready(watch);
		if (!has)
			continue;
		watch->has_news = false;
		events[found].events = has;
		events[found++].data = watch->data;
		if (watch->events & EPOLLONESHOT)
			watch->events &= EPOLLONESHOT | EPOLLET | EPOLLEXCLUSIVE | EPOLLWAKEUP;
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

/* So many times clients come before what the kernel has. */
#define PASSED_OVER_MAX 8

/* Clients who have always something for the program do not keep it from the rest for ever: now and
 * then there is a place for that. */
static int gather_all(int descriptor, struct qw_epoll *epoll, struct epoll_event *events, int most)
{
	int found, more;

	if ((!epoll->has_plain && !epoll->has_nested) || !qw_has_ready(epoll) ||
	    ++epoll->passed_over < PASSED_OVER_MAX)
		return gather(epoll, events, most);
	epoll->passed_over = 0;
	qw_mask = NULL; /* where something is there, no signal is let in */
	found = gather(epoll, events, most - 1);
	more = ask_kernel(descriptor, events + found, most - found, 0);
	if (more > 0)
		return found + more;
	return found ? found : gather(epoll, events, most);
}

/* The time is over; a signal that is let in counts all the same. */
static int look_at_kernel(int descriptor, struct epoll_event *events, int most)
{
	struct timespec none = { 0 };
	int found = ask_kernel(descriptor, events, most, 0);

	return found == 0 && qw_mask ? QW_REAL(ppoll)(NULL, 0, &none, qw_mask) : found;
}

static uint64_t deadline_in(int64_t wait_ns)
{
	return wait_ns < 0 ? QW_NEVER : qw.now_ns + (uint64_t)wait_ns;
}

/* Whether gather() would find something. */
static bool has_events(const void *what)
{
	const struct epoll_ask *ask = what;
	const struct qw_epoll *epoll = qw_epoll_of(ask->descriptor, false);

	return !epoll || qw_has_ready(epoll);
}

static nfds_t epoll_itself(const void *what, struct pollfd *to, nfds_t room)
{
	const struct epoll_ask *ask = what;
	const struct qw_epoll *epoll = qw_epoll_of(ask->descriptor, false);

	if (!epoll || (!epoll->has_plain && !epoll->has_nested))
		return 0;
	if (room > 0)
		to[0] = (struct pollfd){ .fd = ask->descriptor, .events = POLLIN };
	return 1;
}

static int wait_for_events(int descriptor, struct epoll_event *events, int most, int64_t wait_ns)
{
	struct epoll_ask ask = { .descriptor = descriptor, .most = most, .events = events };
	struct qw_wait wait = {
		.what = &ask, .kernel = ask_epoll, .has = has_events, .descriptors = epoll_itself
	};
	int found;

	wait.deadline_ns = deadline_in(wait_ns);
	qw_enter();
	for (;;) {
		/* Another thread may have closed it. */
		struct qw_epoll *epoll = qw_epoll_of(descriptor, true);
		enum qw_woken woken;

		if (!epoll)
			return -1;
		found = gather_all(descriptor, epoll, events, most);
		if (found)
			return found;
		if (wait_ns == 0) {
			if (qw_may_look())
				return ask_kernel(descriptor, events, most, 0);
			wait_ns = -1;
			wait.deadline_ns = qw_idle_deadline();
		}
		woken = qw_wait_for(&wait);
		epoll = qw_epoll_of(descriptor, true);
		if (!epoll)
			return -1;
		switch (woken) {
		case QW_WOKEN_TURN:
			if (!(found = gather_all(descriptor, epoll, events, most)))
				found = ask_kernel(descriptor, events, most, 0);
			break;
		case QW_WOKEN_LATE:
			found = gather(epoll, events, most);
			return found ? found : look_at_kernel(descriptor, events, most);
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

	return qw.on == 1 && qw_takes_part(epoll && epoll->watches);
}

/* With a signal mask for the wait only: the kernel lets in what is pending. */
static int masked(int descriptor, struct epoll_event *events, int most, int64_t wait_ns, const sigset_t *mask)
{
	int found;

	if (most <= 0) {
		errno = EINVAL;
		return -1;
	}
	qw_mask = mask;
	found = wait_for_events(descriptor, events, most, wait_ns);
	qw_mask = NULL;
	return found;
}

QW_CALL int epoll_wait(int descriptor, struct epoll_event *events, int most, int wait_ms)
{
	if (!serves(descriptor))
		return qw_slept(QW_REAL(epoll_wait)(descriptor, events, most, wait_ms), wait_ms * QW_MILLISECOND_NS);
	return masked(descriptor, events, most, wait_ms * QW_MILLISECOND_NS, NULL);
}

QW_CALL int epoll_pwait(int descriptor, struct epoll_event *events, int most, int wait_ms, const sigset_t *mask)
{
	if (!serves(descriptor))
		return qw_slept(QW_REAL(epoll_pwait)(descriptor, events, most, wait_ms, mask),
				wait_ms * QW_MILLISECOND_NS);
	return masked(descriptor, events, most, wait_ms * QW_MILLISECOND_NS, mask);
}

QW_CALL int epoll_pwait2(int descriptor, struct epoll_event *events, int most, const struct timespec *wait,
			 const sigset_t *mask)
{
	int64_t wait_ns = qw_wait_ns(wait);

	if (!serves(descriptor))
		return qw_slept(QW_REAL(epoll_pwait2)(descriptor, events, most, wait, mask), wait_ns);
	if (wait && !qw_is_time(wait)) {
		errno = EINVAL;
		return -1;
	}
	return masked(descriptor, events, most, wait_ns, mask);
}
