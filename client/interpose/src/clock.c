/* Time is the log's: it stands still within a turn, but for a step at each look, so that work that
 * is bounded by time ends after the same work everywhere. Sleeps and timers go by it, too. */
#include "interpose.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <unistd.h>

#define SECOND_NS 1000000000ULL

static bool is_ours(void)
{
	if (qw.on < 0)
		qw_start();
	return qw.on == 1;
}

/* Other threads see it, and move nothing. */
uint64_t qw_look_at_clock(void)
{
	if (qw_is_serving_thread())
		qw.now_ns += qw.control->step_ns;
	return qw.now_ns;
}

static bool is_wall(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI ||
	       clock == CLOCK_REALTIME_ALARM;
}

static bool is_of_work(clockid_t clock)
{
	return clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID || clock < 0;
}

static uint64_t read_clock(clockid_t clock)
{
	uint64_t now = qw_look_at_clock();

	return is_wall(clock) ? now + qw.wall_ahead_ns : now;
}

static struct timespec as_timespec(uint64_t ns)
{
	struct timespec time = { .tv_sec = (time_t)(ns / SECOND_NS), .tv_nsec = (long)(ns % SECOND_NS) };

	return time;
}

static uint64_t as_ns(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * SECOND_NS + (uint64_t)time->tv_nsec;
}

QW_CALL int clock_gettime(clockid_t clock, struct timespec *time)
{
	if (!is_ours() || is_of_work(clock))
		return QW_REAL(clock_gettime)(clock, time);
	*time = as_timespec(read_clock(clock));
	return 0;
}

QW_CALL int gettimeofday(struct timeval *time, void *zone)
{
	uint64_t now;

	if (!is_ours())
		return QW_REAL(gettimeofday)(time, zone);
	now = read_clock(CLOCK_REALTIME);
	if (zone)
		memset(zone, 0, sizeof(struct timezone));
	time->tv_sec = (time_t)(now / SECOND_NS);
	time->tv_usec = (suseconds_t)(now % SECOND_NS / 1000);
	return 0;
}

QW_CALL time_t time(time_t *to)
{
	time_t now;

	if (!is_ours())
		return QW_REAL(time)(to);
	now = (time_t)(read_clock(CLOCK_REALTIME) / SECOND_NS);
	if (to)
		*to = now;
	return now;
}

QW_CALL int timespec_get(struct timespec *time, int base)
{
	if (!is_ours() || base != TIME_UTC)
		return QW_REAL(timespec_get)(time, base);
	*time = as_timespec(read_clock(CLOCK_REALTIME));
	return base;
}

/* --- sleeps: the thread that serves sleeps, and then that time is over for it */

static void slept(uint64_t ns)
{
	if (is_ours() && qw_is_serving_thread())
		qw.now_ns += ns;
}

QW_CALL int nanosleep(const struct timespec *wait, struct timespec *left)
{
	int result = QW_REAL(nanosleep)(wait, left);

	if (!result)
		slept(as_ns(wait));
	return result;
}

QW_CALL int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wait, struct timespec *left)
{
	struct timespec relative = *wait;
	int result;

	if (!is_ours() || is_of_work(clock))
		return QW_REAL(clock_nanosleep)(clock, flags, wait, left);
	if (flags & TIMER_ABSTIME) {
		uint64_t now = read_clock(clock), until = as_ns(wait);

		relative = as_timespec(until > now ? until - now : 0);
	}
	result = QW_REAL(clock_nanosleep)(CLOCK_MONOTONIC, 0, &relative, left);
	if (!result)
		slept(as_ns(&relative));
	return result;
}

QW_CALL int usleep(useconds_t wait_us)
{
	int result = QW_REAL(usleep)(wait_us);

	if (!result)
		slept((uint64_t)wait_us * 1000);
	return result;
}

QW_CALL unsigned int sleep(unsigned int wait_s)
{
	unsigned int left = QW_REAL(sleep)(wait_s);

	slept((uint64_t)(wait_s - left) * SECOND_NS);
	return left;
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

	if (descriptor < 0 || !is_ours() || !qw_is_serving_thread() || timer_count == TIMERS_MAX)
		return descriptor;
	timer = qw_new_object(QW_TIMER);
	timer->is_realtime = is_wall(clock);
	qw_set_object(descriptor, timer);
	timers[timer_count++] = timer;
	return descriptor;
}

static void what_is_left(const struct qw_object *timer, struct itimerspec *left)
{
	uint64_t until = timer->expires_ns > qw.now_ns ? timer->expires_ns - qw.now_ns : 0;

	left->it_interval = as_timespec(timer->every_ns);
	left->it_value = as_timespec(timer->expires_ns ? (until ? until : 1) : 0);
}

QW_CALL int timerfd_settime(int descriptor, int flags, const struct itimerspec *to, struct itimerspec *before)
{
	struct qw_object *timer = qw_object_of(descriptor);
	uint64_t at;

	if (!timer || timer->kind != QW_TIMER)
		return QW_REAL(timerfd_settime)(descriptor, flags, to, before);
	if (before)
		what_is_left(timer, before);
	at = as_ns(&to->it_value);
	timer->every_ns = as_ns(&to->it_interval);
	timer->expired = 0;
	if (at && flags & TFD_TIMER_ABSTIME) {
		uint64_t ahead = timer->is_realtime ? qw.wall_ahead_ns : 0;

		at = at > ahead ? at - ahead : 1;
	} else if (at) {
		at += qw.now_ns;
	}
	timer->expires_ns = at;
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
