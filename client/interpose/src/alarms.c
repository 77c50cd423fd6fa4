/* Timers that send signals: alarm(), setitimer() and timer_create(). They go by the log's time, and
 * their signals come where the program waits. */
#include "interpose.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

/* The first one is alarm()'s and setitimer()'s. */
#define ALARMS_MAX 64

struct alarm {
	bool is_used;
	clockid_t clock;
	/* 0: none. */
	int number;
	union sigval value;
	uint64_t expires_ns, every_ns, overrun;
};

static struct alarm alarms[ALARMS_MAX] = { { .is_used = true, .number = SIGALRM } };
/* None behind it was ever used. */
static int alarms_end = 1;

uint64_t qw_next_alarm(void)
{
	uint64_t next = QW_NEVER;

	for (int i = 0; i < alarms_end; i++) {
		if (alarms[i].expires_ns && alarms[i].expires_ns < next)
			next = alarms[i].expires_ns;
	}
	return next;
}

void qw_look_at_alarms(void)
{
	for (int i = 0; i < alarms_end; i++) {
		struct alarm *each = alarms + i;
		uint64_t more = 0;

		if (!each->expires_ns || each->expires_ns > qw.now_ns)
			continue;
		if (each->every_ns) {
			more = (qw.now_ns - each->expires_ns) / each->every_ns;
			each->expires_ns += (more + 1) * each->every_ns;
		} else {
			each->expires_ns = 0;
		}
		each->overrun = more;
		if (each->number)
			qw_deliver(each->number, i ? SI_TIMER : SI_KERNEL, each->value);
	}
}

static uint64_t left_of(const struct alarm *one)
{
	if (!one->expires_ns)
		return 0;
	return one->expires_ns > qw.now_ns ? one->expires_ns - qw.now_ns : 1;
}

QW_CALL unsigned int alarm(unsigned int wait_s)
{
	uint64_t left = left_of(alarms);

	if (!qw_is_in_turn())
		return QW_REAL(alarm)(wait_s);
	alarms[0].expires_ns = wait_s ? qw.now_ns + wait_s * QW_SECOND_NS : 0;
	alarms[0].every_ns = 0;
	/* Rounded; less than half a second is one, too. */
	return (unsigned int)(left && left < QW_SECOND_NS / 2 ? 1 : (left + QW_SECOND_NS / 2) / QW_SECOND_NS);
}

static uint64_t of_timeval(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * QW_SECOND_NS + (uint64_t)time->tv_usec * 1000;
}

static struct timeval as_timeval(uint64_t ns)
{
	struct timeval time = { .tv_sec = (time_t)(ns / QW_SECOND_NS),
				.tv_usec = (suseconds_t)(ns % QW_SECOND_NS / 1000) };

	return time;
}

static bool is_timeval(const struct timeval *time)
{
	return time->tv_sec >= 0 && time->tv_usec >= 0 && time->tv_usec < 1000000;
}

QW_CALL int getitimer(__itimer_which_t which, struct itimerval *left)
{
	if (which != ITIMER_REAL || !qw_is_in_turn())
		return QW_REAL(getitimer)(which, left);
	left->it_value = as_timeval(left_of(alarms));
	left->it_interval = as_timeval(alarms[0].every_ns);
	return 0;
}

QW_CALL int setitimer(__itimer_which_t which, const struct itimerval *to, struct itimerval *before)
{
	uint64_t wait;

	if (which != ITIMER_REAL || !qw_is_in_turn())
		return QW_REAL(setitimer)(which, to, before);
	if (to && (!is_timeval(&to->it_value) || !is_timeval(&to->it_interval))) {
		errno = EINVAL;
		return -1;
	}
	if (before)
		getitimer(which, before);
	wait = to ? of_timeval(&to->it_value) : 0;
	alarms[0].expires_ns = wait ? qw.now_ns + wait : 0;
	alarms[0].every_ns = to ? of_timeval(&to->it_interval) : 0;
	return 0;
}

QW_CALL useconds_t ualarm(useconds_t wait_us, useconds_t every_us)
{
	struct itimerval to = { .it_value = { 0, wait_us }, .it_interval = { 0, every_us } }, before;

	if (setitimer(ITIMER_REAL, &to, &before))
		return (useconds_t)-1;
	return (useconds_t)(before.it_value.tv_sec * 1000000 + before.it_value.tv_usec);
}

/* --- timer_create(): its timers are numbers that no pointer is */

static timer_t as_timer(int place)
{
	return (timer_t)-(intptr_t)place;
}

/* NULL: one of the C library's. */
static struct alarm *alarm_of(timer_t timer)
{
	intptr_t place = -(intptr_t)timer;

	return place > 0 && place < ALARMS_MAX && alarms[place].is_used ? alarms + place : NULL;
}

static bool is_served_clock(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME || clock == CLOCK_TAI;
}

/* One whose end starts a thread stays the C library's. */
QW_CALL int timer_create(clockid_t clock, struct sigevent *event, timer_t *timer)
{
	bool is_signal = !event || event->sigev_notify != SIGEV_THREAD;
	int place = 1;

	if (!qw_is_in_turn() || !is_signal || !is_served_clock(clock))
		return QW_REAL(timer_create)(clock, event, timer);
	if (event && event->sigev_notify != SIGEV_NONE && (event->sigev_signo < 1 || event->sigev_signo > SIGRTMAX)) {
		errno = EINVAL;
		return -1;
	}
	while (place < ALARMS_MAX && alarms[place].is_used)
		place++;
	if (place == ALARMS_MAX) {
		errno = EAGAIN;
		return -1;
	}
	alarms[place] = (struct alarm){ .is_used = true, .clock = clock, .number = SIGALRM };
	alarms_end = place < alarms_end ? alarms_end : place + 1;
	*timer = as_timer(place);
	if (event) {
		alarms[place].number = event->sigev_notify == SIGEV_NONE ? 0 : event->sigev_signo;
		alarms[place].value = event->sigev_value;
	} else {
		alarms[place].value.sival_ptr = *timer;
	}
	return 0;
}

QW_CALL int timer_gettime(timer_t timer, struct itimerspec *left)
{
	const struct alarm *one = alarm_of(timer);

	if (!one)
		return QW_REAL(timer_gettime)(timer, left);
	left->it_value = qw_timespec(left_of(one));
	left->it_interval = qw_timespec(one->every_ns);
	return 0;
}

QW_CALL int timer_settime(timer_t timer, int flags, const struct itimerspec *to, struct itimerspec *before)
{
	struct alarm *one = alarm_of(timer);

	if (!one)
		return QW_REAL(timer_settime)(timer, flags, to, before);
	if (!qw_is_time(&to->it_value) || !qw_is_time(&to->it_interval)) {
		errno = EINVAL;
		return -1;
	}
	if (before)
		timer_gettime(timer, before);
	one->expires_ns = qw_end_of(&to->it_value, flags & TIMER_ABSTIME, one->clock);
	one->every_ns = qw_as_ns(&to->it_interval);
	return 0;
}

QW_CALL int timer_getoverrun(timer_t timer)
{
	const struct alarm *one = alarm_of(timer);

	return one ? (int)one->overrun : QW_REAL(timer_getoverrun)(timer);
}

QW_CALL int timer_delete(timer_t timer)
{
	struct alarm *one = alarm_of(timer);

	if (!one)
		return QW_REAL(timer_delete)(timer);
	*one = (struct alarm){ 0 };
	return 0;
}

/* --- waits for signals only */

static int paused(const sigset_t *mask)
{
	uint64_t next = qw_next_alarm();
	struct timespec wait;

	wait = qw_timespec(next > qw.now_ns ? next - qw.now_ns : 0);
	qw_mask = mask;
	qw.interrupted = false;
	while (QW_REAL(ppoll)(NULL, 0, &wait, mask) == 0 && !qw.interrupted && next != QW_NEVER) {
		if (next > qw.now_ns)
			qw.now_ns = next;
		qw_look_at_alarms();
		next = qw_next_alarm();
		wait = qw_timespec(next != QW_NEVER && next > qw.now_ns ? next - qw.now_ns : 0);
	}
	qw_mask = NULL;
	errno = EINTR;
	return -1;
}

QW_CALL int pause(void)
{
	if (qw_takes_part(false))
		return qw_pause(NULL);
	return !qw_is_in_turn() || qw_next_alarm() == QW_NEVER ? QW_REAL(pause)() : paused(NULL);
}

QW_CALL int sigsuspend(const sigset_t *mask)
{
	if (qw_takes_part(false))
		return qw_pause(mask);
	return !qw_is_in_turn() || qw_next_alarm() == QW_NEVER ? QW_REAL(sigsuspend)(mask) : paused(mask);
}

/* At the latest at `until_ns`, by the log's time. */
static int wait_for_signal(const sigset_t *set, siginfo_t *info, uint64_t until_ns)
{
	for (;;) {
		uint64_t next = qw_next_alarm() < until_ns ? qw_next_alarm() : until_ns;
		struct timespec wait = qw_timespec(next > qw.now_ns ? next - qw.now_ns : 0);
		int found = QW_REAL(sigtimedwait)(set, info, next == QW_NEVER ? NULL : &wait);

		if (found > 0 && info && info->si_code <= 0 && info->si_pid == qw.process)
			info->si_pid = getpid();
		if (found >= 0 || errno != EAGAIN)
			return found;
		if (next > qw.now_ns)
			qw.now_ns = next;
		if (next == until_ns)
			return -1;
		qw_look_at_alarms();
	}
}

QW_CALL int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *wait)
{
	if (qw_takes_part(false))
		return qw_await_signal(set, info, wait);
	if (!qw_is_in_turn() || (wait && !qw_is_time(wait)))
		return QW_REAL(sigtimedwait)(set, info, wait);
	return wait_for_signal(set, info, wait ? qw.now_ns + qw_as_ns(wait) : QW_NEVER);
}

QW_CALL int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	return sigtimedwait(set, info, NULL);
}

QW_CALL int sigwait(const sigset_t *set, int *number)
{
	int found;

	do
		found = sigtimedwait(set, NULL, NULL);
	while (found < 0 && errno == EINTR);
	if (found < 0)
		return errno;
	*number = found;
	return 0;
}
