/* A server that does with threads what its client names, and says what came of it: a text that
 * is the same with the kernel's order, where one thread has to wait for another. The test
 * compiles it. */
#include "asked.h"

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t readers = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static sem_t semaphore;
static int is_there, is_handled, wait_ends[2];

static struct timespec in_ms(clockid_t clock, long ms)
{
	struct timespec time;

	clock_gettime(clock, &time);
	time.tv_nsec += ms * 1000000;
	time.tv_sec += time.tv_nsec / 1000000000;
	time.tv_nsec %= 1000000000;
	return time;
}

/* Each holds what it has while others come, and sleeps meanwhile. */
static void *in_turn(void *argument)
{
	long number = (long)(intptr_t)argument;

	usleep((useconds_t)(1000 * number));
	pthread_mutex_lock(&lock);
	note("m%ld ", number);
	usleep(10000);
	note("u%ld ", number);
	pthread_mutex_unlock(&lock);
	pthread_rwlock_rdlock(&readers);
	usleep(10000);
	pthread_rwlock_unlock(&readers);
	pthread_rwlock_wrlock(&readers);
	usleep(1000);
	pthread_rwlock_unlock(&readers);
	pthread_spin_lock(&spin);
	sched_yield();
	pthread_spin_unlock(&spin);
	if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
		note("last ");
	sem_wait(&semaphore);
	return argument;
}

static void locks(void)
{
	pthread_t threads[3];
	void *result;

	pthread_spin_init(&spin, 0);
	pthread_barrier_init(&barrier, NULL, 4);
	sem_init(&semaphore, 0, 0);
	for (intptr_t i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, in_turn, (void *)(i + 1));
	if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
		note("last ");
	note("met ");
	for (int i = 0; i < 3; i++)
		sem_post(&semaphore);
	for (int i = 0; i < 3; i++) {
		pthread_join(threads[i], &result);
		note("j%ld ", (long)(intptr_t)result);
	}
	pthread_barrier_destroy(&barrier);
}

static void *makes_it_be(void *unused)
{
	usleep(20000);
	pthread_mutex_lock(&lock);
	is_there = 1;
	pthread_cond_broadcast(&condition);
	pthread_mutex_unlock(&lock);
	return unused;
}

static int waited(clockid_t clock, long ms)
{
	struct timespec until = in_ms(clock, ms);
	pthread_condattr_t attributes;
	pthread_cond_t own;
	int result;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, clock);
	pthread_cond_init(&own, &attributes);
	pthread_mutex_lock(&lock);
	result = pthread_cond_timedwait(&own, &lock, &until);
	pthread_mutex_unlock(&lock);
	pthread_cond_destroy(&own);
	return result == ETIMEDOUT;
}

static void conditions(void)
{
	struct timespec before = in_ms(CLOCK_MONOTONIC, 0), after, until;
	pthread_t thread;
	long ms;

	is_there = 0;
	pthread_create(&thread, NULL, makes_it_be, NULL);
	pthread_detach(thread);
	pthread_mutex_lock(&lock);
	while (!is_there)
		pthread_cond_wait(&condition, &lock);
	pthread_mutex_unlock(&lock);
	note("there late %d %d ", waited(CLOCK_REALTIME, 30), waited(CLOCK_MONOTONIC, 30));
	until = in_ms(CLOCK_MONOTONIC, 30);
	pthread_mutex_lock(&lock);
	note("%d ", pthread_cond_clockwait(&condition, &lock, CLOCK_MONOTONIC, &until) == ETIMEDOUT);
	pthread_mutex_unlock(&lock);
	after = in_ms(CLOCK_MONOTONIC, 0);
	ms = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
	note("%s", ms >= 110 && ms < 1000 ? "in time" : "out of time");
}

static void *holds(void *unused)
{
	pthread_mutex_lock(&lock);
	usleep(50000);
	pthread_mutex_unlock(&lock);
	return unused;
}

static void errors(void)
{
	struct timespec until;
	pthread_mutexattr_t attributes;
	pthread_mutex_t twice;
	pthread_t thread;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&twice, &attributes);
	pthread_mutex_lock(&twice);
	note("%d ", pthread_mutex_lock(&twice) == EDEADLK);
	pthread_create(&thread, NULL, holds, NULL);
	usleep(10000);
	until = in_ms(CLOCK_REALTIME, 10);
	note("%d ", pthread_mutex_timedlock(&lock, &until) == ETIMEDOUT);
	note("%d ", pthread_tryjoin_np(thread, NULL) == EBUSY);
	until = in_ms(CLOCK_REALTIME, 10);
	note("%d ", pthread_timedjoin_np(thread, NULL, &until) == ETIMEDOUT);
	sem_init(&semaphore, 0, 0);
	until = in_ms(CLOCK_REALTIME, 10);
	note("%d ", sem_timedwait(&semaphore, &until) && errno == ETIMEDOUT);
	note("%d", pthread_join(thread, NULL));
}

static void cleaned(void *unused)
{
	(void)unused;
	note("cleaned ");
}

static void *is_cancelled(void *unused)
{
	pthread_cleanup_push(cleaned, NULL);
	sleep(1000);
	pthread_cleanup_pop(0);
	return unused;
}

static void unlocked(void *unused)
{
	(void)unused;
	pthread_mutex_unlock(&lock);
}

static void *is_cancelled_at_condition(void *unused)
{
	pthread_mutex_lock(&lock);
	pthread_cleanup_push(unlocked, NULL);
	for (;;)
		pthread_cond_wait(&condition, &lock);
	pthread_cleanup_pop(0);
	return unused;
}

static void handler(int signal)
{
	is_handled = signal;
}

static void *is_interrupted(void *unused)
{
	char byte;

	if (read(wait_ends[0], &byte, 1) < 0)
		note("%d", errno == EINTR);
	return unused;
}

static void *is_interrupted_in_epoll(void *unused)
{
	struct epoll_event event = { .events = EPOLLIN };
	int epoll = epoll_create1(0);

	epoll_ctl(epoll, EPOLL_CTL_ADD, wait_ends[0], &event);
	errno = EAGAIN;
	if (epoll_wait(epoll, &event, 1, -1) < 0)
		note(" %d", errno == EINTR);
	close(epoll);
	return unused;
}

static void ends(void)
{
	struct sigaction action = { .sa_handler = handler };
	pthread_t thread;
	void *result;

	pthread_create(&thread, NULL, is_cancelled, NULL);
	usleep(1000);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	note("%d ", result == PTHREAD_CANCELED);
	pthread_create(&thread, NULL, is_cancelled_at_condition, NULL);
	usleep(1000);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	note("%d %d ", result == PTHREAD_CANCELED, pthread_mutex_trylock(&lock));
	pthread_mutex_unlock(&lock);
	sigaction(SIGUSR1, &action, NULL);
	if (pipe(wait_ends))
		abort();
	pthread_create(&thread, NULL, is_interrupted, NULL);
	usleep(1000);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	note(" %d", is_handled == SIGUSR1);
	pthread_create(&thread, NULL, is_interrupted_in_epoll, NULL);
	usleep(1000);
	pthread_kill(thread, SIGUSR1);
	pthread_join(thread, NULL);
	close(wait_ends[0]);
	close(wait_ends[1]);
}

static void *waits_for_signal(void *unused)
{
	sigset_t signals;
	int signal = 0;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR2);
	sigwait(&signals, &signal);
	pthread_mutex_lock(&lock);
	note("%d", signal == SIGUSR2);
	pthread_cond_broadcast(&condition);
	is_there = 1;
	pthread_mutex_unlock(&lock);
	return unused;
}

/* Of the kernel's own time: others go on meanwhile. */
static void outside(void)
{
	sigset_t signals;
	pthread_t thread;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	is_there = 0;
	pthread_create(&thread, NULL, waits_for_signal, NULL);
	usleep(1000);
	note("sent %d ", kill(getpid(), SIGUSR2));
	pthread_mutex_lock(&lock);
	while (!is_there)
		pthread_cond_wait(&condition, &lock);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
}

int main(void)
{
	static const struct asked all[] = {
		{ "locks", locks }, { "conditions", conditions }, { "errors", errors }, { "ends", ends },
		{ "outside", outside }, { NULL, NULL },
	};

	return serve(all);
}
