/* Clocks, sleeps and timers: only their form can be equal. */
#include "cases.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/time.h>
#include <sys/times.h>
#include <threads.h>

static char bytes[64];

static int64_t now_ms(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Whether a wait took so long, and not much longer. */
static void took(const char *what, int64_t since, int64_t least)
{
	int64_t took_ms = now_ms(CLOCK_MONOTONIC) - since;

	say("%s took %s\n", what, took_ms < least - 1 ? "too short" : took_ms > least + 5000 ? "too long" : "its time");
}

CASE(clocks, every_clock)
{
	static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID,
					    CLOCK_THREAD_CPUTIME_ID, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE,
					    CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME, CLOCK_TAI, 99, 12 };

	for (size_t i = 0; i < sizeof(clocks) / sizeof(*clocks); i++) {
		struct timespec first = { 0 }, second = { 0 };

		say("clock %d:\n", clocks[i]);
		if (GOT(clock_gettime(clocks[i], &first)) || GOT(clock_gettime(clocks[i], &second)))
			continue;
		GOT(first.tv_nsec >= 0 && first.tv_nsec < 1000000000);
		GOT(second.tv_sec > first.tv_sec || (second.tv_sec == first.tv_sec && second.tv_nsec >= first.tv_nsec));
		GOT(clock_getres(clocks[i], &first));
	}
}

CASE(clocks, clocks_agree)
{
	struct timeval day = { 0 };
	struct timespec utc = { 0 };
	struct timezone zone = { 5, 5 };
	int64_t wall = now_ms(CLOCK_REALTIME) / 1000;
	time_t told = 0, now = time(&told);

	GOT(now == told);
	GOT(now - wall >= 0 && now - wall <= 2);
	GOT(gettimeofday(&day, NULL));
	GOT(day.tv_sec - wall >= 0 && day.tv_sec - wall <= 2);
	GOT(gettimeofday(&day, &zone));
	GOT(zone.tz_minuteswest);
	GOT(timespec_get(&utc, TIME_UTC));
	GOT(utc.tv_sec - wall >= 0 && utc.tv_sec - wall <= 2);
	GOT(timespec_get(&utc, 99));
	GOT(wall > 1600000000);
}

CASE(clocks, work_takes_time)
{
	struct tms work;
	clock_t begun = times(&work), now;

	GOT(begun != (clock_t)-1);
	for (int i = 0; i < 100; i++)
		now = times(&work);
	GOT(now >= begun);
	GOT(times(NULL) >= now);
	GOT(clock() >= 0);
}

CASE(clocks, sleeps)
{
	struct timespec wait = { .tv_nsec = 20000000 }, left = { 0 }, until;
	int64_t since = now_ms(CLOCK_MONOTONIC);

	GOT(nanosleep(&wait, &left));
	took("nanosleep", since, 20);
	since = now_ms(CLOCK_MONOTONIC);
	GOT(clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL));
	took("clock_nanosleep", since, 20);
	since = now_ms(CLOCK_MONOTONIC);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 20000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	GOT(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL));
	took("until", since, 19);
	GOT(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL));
	since = now_ms(CLOCK_MONOTONIC);
	GOT(usleep(20000));
	took("usleep", since, 20);
	since = now_ms(CLOCK_MONOTONIC);
	GOT(sleep(1));
	took("sleep", since, 1000);
	GOT(sleep(0));
	GOT(thrd_sleep(&wait, NULL));
}

CASE(clocks, sleeps_of_wrong_times)
{
	struct timespec wrong = { .tv_nsec = 1000000000 }, negative = { .tv_sec = -1 };

	GOT(nanosleep(&wrong, NULL));
	GOT(nanosleep(&negative, NULL));
	GOT(clock_nanosleep(CLOCK_MONOTONIC, 0, &wrong, NULL));
	GOT(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wrong, NULL));
	GOT(clock_nanosleep(99, 0, &negative, NULL));
}

static int timer(int flags, long first_ms, long every_ms)
{
	int made = timerfd_create(CLOCK_MONOTONIC, flags);
	struct itimerspec when = { .it_value = { first_ms / 1000, first_ms % 1000 * 1000000 },
				   .it_interval = { every_ms / 1000, every_ms % 1000 * 1000000 } };

	GOT(timerfd_settime(made, 0, &when, NULL));
	return made;
}

static uint64_t expired(int made)
{
	uint64_t count = 0;

	GOT(read(made, &count, sizeof(count)));
	return count;
}

CASE(clocks, a_timer_that_is_read)
{
	int made = timer(0, 20, 0), listener = listening(0);
	struct pollfd wanted = { .fd = made, .events = POLLIN | POLLOUT };

	(void)listener;
	GOT(expired(made));
	GOT(fcntl(made, F_SETFL, O_NONBLOCK));
	expired(made);
	GOT(read(made, bytes, 7));
	GOT(read(made, bytes, 0));
	GOT(write(made, bytes, 8));
	GOT(poll(&wanted, 1, 0));
	GOT(recv(made, bytes, 8, 0));
	GOT(lseek(made, 0, SEEK_CUR));
}

CASE(clocks, a_timer_that_comes_again)
{
	int made = timer(TFD_NONBLOCK, 5, 5), epoll = epoll_create1(0);
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 9 }, found;
	uint64_t count = 0;

	GOT(epoll_ctl(epoll, EPOLL_CTL_ADD, made, &event));
	GOT(epoll_wait(epoll, &found, 1, -1));
	say_found(&found, 1);
	while (count < 5) {
		struct pollfd wanted = { .fd = made, .events = POLLIN };
		uint64_t more = 0;

		poll(&wanted, 1, -1);
		if (read(made, &more, sizeof(more)) == sizeof(more))
			count += more;
	}
	GOT(count >= 5);
}

CASE(clocks, a_timer_of_the_day)
{
	int made = timerfd_create(CLOCK_REALTIME, 0);
	struct itimerspec when = { 0 }, left, before;

	clock_gettime(CLOCK_REALTIME, &when.it_value);
	when.it_value.tv_sec += 50;
	GOT(timerfd_settime(made, TFD_TIMER_ABSTIME, &when, &before));
	GOT(before.it_value.tv_sec || before.it_value.tv_nsec);
	GOT(timerfd_gettime(made, &left));
	GOT(left.it_value.tv_sec >= 48 && left.it_value.tv_sec <= 50);
	when.it_value.tv_sec -= 60;
	GOT(timerfd_settime(made, TFD_TIMER_ABSTIME, &when, &before));
	GOT(before.it_value.tv_sec >= 48 && before.it_value.tv_sec <= 50);
	GOT(expired(made));
	GOT(timerfd_gettime(made, &left));
	GOT(left.it_value.tv_sec || left.it_value.tv_nsec);
}

CASE(clocks, a_timer_that_is_stopped)
{
	int made = timer(TFD_NONBLOCK, 10, 10);
	struct itimerspec none = { 0 }, before;
	struct pollfd wanted = { .fd = made, .events = POLLIN };

	GOT(poll(&wanted, 1, -1));
	GOT(timerfd_settime(made, 0, &none, &before));
	GOT(before.it_interval.tv_nsec);
	GOT(poll(&wanted, 1, 30));
	expired(made);
}

CASE(clocks, timers_of_wrong_times)
{
	int made;
	struct itimerspec wrong = { .it_value = { 0, 1000000000 } }, negative = { .it_value = { -1, 0 } },
			  every = { .it_value = { 1, 0 }, .it_interval = { 0, -1 } };

	GOT(timerfd_create(99, 0));
	GOT(timerfd_create(CLOCK_MONOTONIC, 1));
	made = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	GOT(fcntl(made, F_GETFD));
	GOT(timerfd_settime(made, 0, &wrong, NULL));
	GOT(timerfd_settime(made, 0, &negative, NULL));
	GOT(timerfd_settime(made, 0, &every, NULL));
	GOT(timerfd_settime(made, 99, &every, NULL));
	GOT(timerfd_settime(0, 0, &every, NULL));
	GOT(timerfd_gettime(99, &wrong));
}

CASE(clocks, a_program_that_looks_at_a_timer_again_and_again)
{
	int made = timer(TFD_NONBLOCK, 20, 0), listener = listening(0);
	uint64_t count = 0;

	(void)listener;
	while (read(made, &count, sizeof(count)) < 0)
		;
	GOT(count);
}

CASE(clocks, an_alarm_wakes)
{
	int made = client(listening(0), 1);
	int64_t since = now_ms(CLOCK_MONOTONIC);

	handle(SIGALRM, 0);
	GOT(alarm(1));
	GOT(read(made, bytes, 1));
	say("%d signals\n", (int)signals);
	took("it", since, 1000);
}

CASE(clocks, an_alarm_is_set_again)
{
	handle(SIGALRM, 0);
	GOT(alarm(100));
	GOT(alarm(50));
	GOT(alarm(0));
	GOT(alarm(0));
	say("%d signals\n", (int)signals);
}

CASE(clocks, an_alarm_ends_a_sleep)
{
	int64_t since = now_ms(CLOCK_MONOTONIC);
	struct timespec wait = { .tv_sec = 9 }, left = { 0 };

	handle(SIGALRM, 0);
	GOT(alarm(1));
	GOT(nanosleep(&wait, &left));
	GOT(left.tv_sec >= 7);
	say("%d signals\n", (int)signals);
	took("it", since, 1000);
}

CASE(clocks, an_interval_of_alarms)
{
	int listener = listening(0);
	struct pollfd wanted = { .fd = listener, .events = POLLIN };
	struct itimerval every = { .it_value = { 0, 10000 }, .it_interval = { 0, 10000 } }, none = { 0 }, before,
			 wrong = { .it_value = { 0, 1000000 } };

	handle(SIGALRM, 0);
	GOT(setitimer(ITIMER_REAL, &wrong, NULL));
	GOT(setitimer(99, &every, NULL));
	GOT(setitimer(ITIMER_REAL, &every, &before));
	GOT(before.it_value.tv_usec);
	while (signals < 3)
		poll(&wanted, 1, -1);
	GOT(getitimer(ITIMER_REAL, &before));
	GOT(before.it_interval.tv_usec);
	GOT(before.it_value.tv_usec > 0 && before.it_value.tv_usec <= 10000);
	GOT(setitimer(ITIMER_REAL, &none, &before));
	GOT(before.it_interval.tv_usec);
	GOT(getitimer(ITIMER_REAL, &before));
	GOT(before.it_value.tv_usec);
	signals = 0;
	GOT(poll(&wanted, 1, 50));
	say("%d signals\n", (int)signals);
}

CASE(clocks, a_timer_that_sends_signals)
{
	int listener = listening(0);
	struct pollfd wanted = { .fd = listener, .events = POLLIN };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 };
	struct itimerspec every = { .it_value = { 0, 10000000 }, .it_interval = { 0, 10000000 } }, left,
			  wrong = { .it_value = { 0, -1 } };
	timer_t made, other;

	handle(SIGUSR2, 0);
	handle(SIGALRM, 0);
	GOT(timer_create(CLOCK_MONOTONIC, &event, &made));
	GOT(timer_create(CLOCK_REALTIME, NULL, &other));
	GOT(timer_create(99, NULL, &other));
	GOT(timer_settime(made, 0, &wrong, NULL));
	GOT(timer_settime(made, 0, &every, NULL));
	while (signals < 3)
		poll(&wanted, 1, -1);
	GOT(timer_gettime(made, &left));
	GOT(left.it_interval.tv_nsec);
	GOT(timer_getoverrun(made) >= 0);
	GOT(timer_delete(made));
	signals = 0;
	GOT(poll(&wanted, 1, 50));
	say("%d signals\n", (int)signals);
	every.it_interval.tv_nsec = 0;
	GOT(timer_settime(other, 0, &every, NULL));
	GOT(poll(&wanted, 1, 5000));
	say("%d signals\n", (int)signals);
	GOT(timer_gettime(other, &left));
	GOT(left.it_value.tv_nsec);
	GOT(timer_delete(other));
}

CASE(clocks, signals_are_waited_for)
{
	struct timespec wait = { .tv_nsec = 20000000 }, wrong = { .tv_nsec = -1 };
	int64_t since = now_ms(CLOCK_MONOTONIC);
	siginfo_t info = { 0 };
	sigset_t some;
	int number = 0;

	sigemptyset(&some);
	sigaddset(&some, SIGALRM);
	sigprocmask(SIG_BLOCK, &some, NULL);
	GOT(sigtimedwait(&some, &info, &wait));
	took("it", since, 20);
	GOT(sigtimedwait(&some, &info, &wrong));
	GOT(alarm(1));
	GOT(sigwait(&some, &number));
	GOT(number);
	took("it", since, 1000);
	GOT(alarm(1));
	GOT(sigwaitinfo(&some, &info));
	GOT(info.si_signo);
	GOT(info.si_code == SI_KERNEL);
	kill(getpid(), SIGALRM);
	GOT(sigtimedwait(&some, &info, &wait));
	GOT(info.si_code);
	GOT(info.si_pid == getpid());
}

static struct timespec in_ms(clockid_t clock, long wait_ms)
{
	struct timespec at;

	clock_gettime(clock, &at);
	at.tv_sec += wait_ms / 1000;
	at.tv_nsec += wait_ms % 1000 * 1000000;
	if (at.tv_nsec >= 1000000000) {
		at.tv_nsec -= 1000000000;
		at.tv_sec++;
	}
	return at;
}

static void *never_ends(void *unused)
{
	while (pause())
		;
	return unused;
}

#define TIMED(clock, call) \
	({ \
		int64_t since_ = now_ms(CLOCK_MONOTONIC); \
		struct timespec at = in_ms(clock, 20); \
		GOT(call); \
		took("it", since_, 20); \
	})

CASE(clocks, waits_for_other_threads)
{
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, locked = PTHREAD_MUTEX_INITIALIZER;
	pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
	pthread_cond_t condition = PTHREAD_COND_INITIALIZER, monotonic;
	struct timespec wrong = { .tv_nsec = -1 }, past = { .tv_sec = 1 };
	pthread_condattr_t how;
	pthread_t thread;
	sem_t semaphore;

	pthread_condattr_init(&how);
	pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
	pthread_cond_init(&monotonic, &how);
	sem_init(&semaphore, 0, 0);
	pthread_mutex_lock(&mutex);
	pthread_mutex_lock(&locked);
	pthread_rwlock_wrlock(&lock);
	pthread_create(&thread, NULL, never_ends, NULL);
	TIMED(CLOCK_REALTIME, pthread_cond_timedwait(&condition, &mutex, &at));
	TIMED(CLOCK_MONOTONIC, pthread_cond_timedwait(&monotonic, &mutex, &at));
	TIMED(CLOCK_MONOTONIC, pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &at));
	TIMED(CLOCK_REALTIME, pthread_mutex_timedlock(&locked, &at));
	TIMED(CLOCK_MONOTONIC, pthread_mutex_clocklock(&locked, CLOCK_MONOTONIC, &at));
	TIMED(CLOCK_REALTIME, sem_timedwait(&semaphore, &at));
	TIMED(CLOCK_MONOTONIC, sem_clockwait(&semaphore, CLOCK_MONOTONIC, &at));
	TIMED(CLOCK_REALTIME, pthread_timedjoin_np(thread, NULL, &at));
	pthread_rwlock_unlock(&lock);
	TIMED(CLOCK_REALTIME, pthread_rwlock_timedrdlock(&lock, &at) ? -1 : 20000 + usleep(20000));
	GOT(pthread_cond_timedwait(&condition, &mutex, &wrong));
	GOT(pthread_cond_timedwait(&condition, &mutex, &past));
	GOT(sem_timedwait(&semaphore, &past));
	GOT(sem_post(&semaphore));
	GOT(sem_timedwait(&semaphore, &past));
}

CASE(clocks, a_program_that_pauses)
{
	sigset_t none;

	sigemptyset(&none);
	handle(SIGALRM, 0);
	GOT(alarm(1));
	GOT(pause());
	GOT(alarm(1));
	GOT(sigsuspend(&none));
	say("%d signals\n", (int)signals);
}
