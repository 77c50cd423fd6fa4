/* Time is the log's: it stands still within a turn, but for a step at each look, so that work that
 * is bounded by time ends after the same work everywhere. Sleeps and timers go by it, too. */
#include "interpose.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <unistd.h>

/* Other threads see it, and move nothing. */
uint64_t qw_look_at_clock(void)
{
	if (qw_is_serving_thread())
		qw.now_ns += qw.control->step_ns;
	return qw.now_ns;
}

bool qw_is_wall(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI ||
	       clock == CLOCK_REALTIME_ALARM;
}

/* Others count the program's work, or are none. */
static bool is_of_log(clockid_t clock)
{
	return qw_is_wall(clock) || clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW ||
	       clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_BOOTTIME || clock == CLOCK_BOOTTIME_ALARM;
}

static uint64_t read_clock(clockid_t clock)
{
	uint64_t now = qw_look_at_clock();

	return qw_is_wall(clock) ? now + qw.wall_ahead_ns : now;
}

struct timespec qw_timespec(uint64_t ns)
{
	struct timespec time = { .tv_sec = (time_t)(ns / QW_SECOND_NS), .tv_nsec = (long)(ns % QW_SECOND_NS) };

	return time;
}

uint64_t qw_as_ns(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * QW_SECOND_NS + (uint64_t)time->tv_nsec;
}

int64_t qw_wait_ns(const struct timespec *wait)
{
	return wait ? (int64_t)qw_as_ns(wait) : -1;
}

bool qw_is_time(const struct timespec *time)
{
	return time->tv_sec >= 0 && time->tv_nsec >= 0 && time->tv_nsec < (long)QW_SECOND_NS;
}

uint64_t qw_log_time_at(const struct timespec *at, clockid_t clock)
{
	uint64_t shown = qw_as_ns(at), ahead = qw_is_wall(clock) ? qw.wall_ahead_ns : 0;

	return shown > ahead ? shown - ahead : 0;
}

QW_CALL int clock_gettime(clockid_t clock, struct timespec *time)
{
	if (!qw_is_on() || !is_of_log(clock))
		return QW_REAL(clock_gettime)(clock, time);
	*time = qw_timespec(read_clock(clock));
	return 0;
}

QW_CALL int gettimeofday(struct timeval *time, void *zone)
{
	uint64_t now;

	if (!qw_is_on())
		return QW_REAL(gettimeofday)(time, zone);
	now = read_clock(CLOCK_REALTIME);
	if (zone)
		memset(zone, 0, sizeof(struct timezone));
	time->tv_sec = (time_t)(now / QW_SECOND_NS);
	time->tv_usec = (suseconds_t)(now % QW_SECOND_NS / 1000);
	return 0;
}

QW_CALL time_t time(time_t *to)
{
	time_t now;

	if (!qw_is_on())
		return QW_REAL(time)(to);
	now = (time_t)(read_clock(CLOCK_REALTIME) / QW_SECOND_NS);
	if (to)
		*to = now;
	return now;
}

QW_CALL int timespec_get(struct timespec *time, int base)
{
	if (!qw_is_on() || base != TIME_UTC)
		return QW_REAL(timespec_get)(time, base);
	*time = qw_timespec(read_clock(CLOCK_REALTIME));
	return base;
}

/* What counts work stays the kernel's. */
QW_CALL clock_t times(struct tms *work)
{
	clock_t now = QW_REAL(times)(work);

	return qw_is_on() ? (clock_t)(qw_look_at_clock() / (QW_SECOND_NS / 100)) : now;
}

/* --- sleeps: the thread that serves sleeps, and then that time is over for it */

int qw_slept(int found, int64_t wait_ns)
{
	if (found == 0 && wait_ns > 0 && qw_is_in_turn())
		qw.now_ns += (uint64_t)wait_ns;
	return found;
}

/* Really, and then that time is over. A signal of a timer ends it. */
static int sleep_for(uint64_t ns, uint64_t *left_ns)
{
	uint64_t until = qw.now_ns + ns;

	if (QW_SLEEPS_BY_TURNS)
		return qw_sleep_until(until, left_ns);
	qw.interrupted = false;
	while (qw.now_ns < until) {
		uint64_t next = qw_next_alarm() < until ? qw_next_alarm() : until;
		struct timespec wait = qw_timespec(next > qw.now_ns ? next - qw.now_ns : 0), left = { 0 };

		if (QW_REAL(nanosleep)(&wait, &left)) {
			*left_ns = until - next + qw_as_ns(&left);
			return -1;
		}
		if (next > qw.now_ns)
			qw.now_ns = next;
		qw_look_at_alarms();
		if (qw.interrupted) {
			*left_ns = until - qw.now_ns;
			errno = EINTR;
			return -1;
		}
	}
	return 0;
}

QW_CALL int nanosleep(const struct timespec *wait, struct timespec *left)
{
	uint64_t left_ns;

	if (!qw_is_in_turn() || !qw_is_time(wait))
		return QW_REAL(nanosleep)(wait, left);
	if (!sleep_for(qw_as_ns(wait), &left_ns))
		return 0;
	if (left)
		*left = qw_timespec(left_ns);
	return -1;
}

QW_CALL int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wait, struct timespec *left)
{
	struct timespec relative = *wait;

	if (!qw_is_in_turn() || !is_of_log(clock) || !qw_is_time(wait))
		return QW_REAL(clock_nanosleep)(clock, flags, wait, left);
	if (flags & TIMER_ABSTIME) {
		uint64_t now = read_clock(clock), until = qw_as_ns(wait);

		relative = qw_timespec(until > now ? until - now : 0);
		left = NULL;
	}
	return nanosleep(&relative, left) ? errno : 0;
}

QW_CALL int thrd_sleep(const struct timespec *wait, struct timespec *left)
{
	if (!nanosleep(wait, left))
		return 0;
	return errno == EINTR ? -1 : -2;
}

QW_CALL int usleep(useconds_t wait_us)
{
	struct timespec wait = qw_timespec((uint64_t)wait_us * 1000);

	return nanosleep(&wait, NULL);
}

QW_CALL unsigned int sleep(unsigned int wait_s)
{
	struct timespec wait = { .tv_sec = (time_t)wait_s }, left = { 0 };

	return nanosleep(&wait, &left) ? (unsigned int)left.tv_sec + (left.tv_nsec >= 500000000) : 0;
}

/* --- timers that are descriptors */

#define TIMERS_MAX 1024
static struct qw_object *timers[TIMERS_MAX];
static int timer_count;

uint64_t qw_next_timer(void)
{
	uint64_t next = QW_NEVER;

	for (int i = 0; i < timer_count; i++) {
		if (timers[i]->expires_ns && timers[i]->expires_ns < next)
			next = timers[i]->expires_ns;
	}
	return next;
}

void qw_look_at_timers(void)
{
	for (int i = 0; i < timer_count; i++) {
		struct qw_object *timer = timers[i];
		uint64_t times = 1;

		if (!timer->expires_ns || timer->expires_ns > qw.now_ns)
			continue;
		if (timer->every_ns) {
			times += (qw.now_ns - timer->expires_ns) / timer->every_ns;
			timer->expires_ns += times * timer->every_ns;
		} else {
			timer->expires_ns = 0;
		}
		timer->expired += times;
		qw_has_news(timer);
	}
}

void qw_forget_timer(const struct qw_object *timer)
{
	for (int i = 0; i < timer_count; i++) {
		if (timers[i] == timer)
			timers[i--] = timers[--timer_count];
	}
}

QW_CALL int timerfd_create(int clock, int flags)
{
	int descriptor = QW_REAL(timerfd_create)(clock, flags);
	struct qw_object *timer;

	if (descriptor < 0 || !qw_is_in_turn() || timer_count == TIMERS_MAX)
		return descriptor;
	timer = qw_new_object(QW_TIMER);
	timer->clock = clock;
	qw_set_object(descriptor, timer);
	timers[timer_count++] = timer;
	return descriptor;
}

static void what_is_left(const struct qw_object *timer, struct itimerspec *left)
{
	uint64_t until = timer->expires_ns > qw.now_ns ? timer->expires_ns - qw.now_ns : 0;

	left->it_interval = qw_timespec(timer->every_ns);
	left->it_value = qw_timespec(timer->expires_ns ? (until ? until : 1) : 0);
}

uint64_t qw_end_of(const struct timespec *at, bool is_absolute, clockid_t clock)
{
	uint64_t end = qw_as_ns(at);

	if (end == 0)
		return 0;
	if (!is_absolute)
		return end + qw.now_ns;
	end = qw_log_time_at(at, clock);
	return end ? end : 1;
}

QW_CALL int timerfd_settime(int descriptor, int flags, const struct itimerspec *to, struct itimerspec *before)
{
	struct qw_object *timer = qw_object_of(descriptor);

	if (!timer || timer->kind != QW_TIMER)
		return QW_REAL(timerfd_settime)(descriptor, flags, to, before);
	if (flags & ~(TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET) || !qw_is_time(&to->it_value) ||
	    !qw_is_time(&to->it_interval)) {
		errno = EINVAL;
		return -1;
	}
	if (before)
		what_is_left(timer, before);
	timer->every_ns = qw_as_ns(&to->it_interval);
	timer->expired = 0;
	timer->expires_ns = qw_end_of(&to->it_value, flags & TFD_TIMER_ABSTIME, timer->clock);
	qw_look_at_timers();
	return 0;
}

QW_CALL int timerfd_gettime(int descriptor, struct itimerspec *left)
{
	struct qw_object *timer = qw_object_of(descriptor);

	if (!timer || timer->kind != QW_TIMER)
		return QW_REAL(timerfd_gettime)(descriptor, left);
	what_is_left(timer, left);
	return 0;
}
