/* A server whose threads meet with what is not theirs: threads that the library has not made, the
 * kernel's own time, cancellation, connections that another thread closes, and descriptors of the
 * kernel's. The test compiles it. */
#include "asked.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore, other;
static int is_past;

static void really_sleep_ms(long ms)
{
	struct timespec wait = { .tv_nsec = ms * 1000000 };

	syscall(SYS_nanosleep, &wait, NULL);
}

static pthread_t made(void *(*begin)(void *), void *argument)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, begin, argument))
		abort();
	return thread;
}

static int is_cancelled(pthread_t thread)
{
	void *result = NULL;

	return pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED;
}

/* --- a lock that nobody waits for is let go by a thread whose turn is not ordered */

static int lets_go(void *unused)
{
	(void)unused;
	really_sleep_ms(20);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	sem_post(&semaphore);
	return 0;
}

static void *waits_at_barrier(void *unused)
{
	pthread_barrier_wait(&barrier);
	is_past = 1;
	return unused;
}

static void *waits_and_sleeps(void *unused)
{
	sem_wait(&semaphore);
	usleep(20000);
	note("slept ");
	return unused;
}

static void strangers(void)
{
	pthread_t thread;
	thrd_t stranger;

	is_past = 0;
	sem_init(&semaphore, 0, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	thread = made(waits_at_barrier, NULL);
	thrd_create(&stranger, lets_go, NULL);
	thrd_detach(stranger);
	sem_wait(&semaphore);
	note("%d ", is_past);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	note("%d ", is_past);
	thread = made(waits_and_sleeps, NULL);
	thrd_create(&stranger, lets_go, NULL);
	thrd_detach(stranger);
	pthread_join(thread, NULL);
	note("joined");
}

/* --- cancellation: not where a thread waits for a lock, nor where it is forbidden */

static void *is_cancelled_at_lock(void *unused)
{
	pthread_mutex_lock(&lock);
	note("locked ");
	pthread_mutex_unlock(&lock);
	pthread_testcancel();
	note("goes on ");
	return unused;
}

static void *forbids_it(void *unused)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	note("%d ", usleep(20000));
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	usleep(20000);
	note("goes on ");
	return unused;
}

static void *joins(void *argument)
{
	pthread_join(*(pthread_t *)argument, NULL);
	note("goes on ");
	return NULL;
}

static int sends_signal(void *unused)
{
	(void)unused;
	really_sleep_ms(50);
	kill(getpid(), SIGUSR2);
	return 0;
}

static void block(int number)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, number);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

static int wait_for_signal(int number)
{
	sigset_t signals;
	int found = 0;

	sigemptyset(&signals);
	sigaddset(&signals, number);
	sigwait(&signals, &found);
	return found;
}

static void cancels(void)
{
	pthread_t thread, joiner;
	thrd_t stranger;

	block(SIGUSR2);
	pthread_mutex_lock(&lock);
	thread = made(is_cancelled_at_lock, NULL);
	usleep(1000);
	pthread_cancel(thread);
	thrd_create(&stranger, sends_signal, NULL);
	thrd_detach(stranger);
	/* Meanwhile the other one waits for a turn. */
	note("%d ", wait_for_signal(SIGUSR2) == SIGUSR2);
	pthread_mutex_unlock(&lock);
	note("%d ", is_cancelled(thread));
	thread = made(forbids_it, NULL);
	usleep(1000);
	pthread_cancel(thread);
	note("%d ", is_cancelled(thread));
	sem_init(&semaphore, 0, 0);
	thread = made(waits_and_sleeps, NULL);
	joiner = made(joins, &thread);
	usleep(1000);
	pthread_cancel(joiner);
	note("%d ", is_cancelled(joiner));
	sem_post(&semaphore);
	pthread_join(thread, NULL);
}

static void *waits_for_signal(void *unused)
{
	wait_for_signal(SIGUSR2);
	note("back ");
	return unused;
}

static void *waits_outside(void *unused)
{
	wait_for_signal(SIGUSR2);
	return unused;
}

static void *answers(void *unused)
{
	sem_wait(&semaphore);
	note("w ");
	sem_post(&other);
	return unused;
}

/* What the kernel has ended goes on when nobody else can. */
static void comes_back(void)
{
	pthread_t first, second;

	block(SIGUSR2);
	sem_init(&semaphore, 0, 0);
	sem_init(&other, 0, 0);
	first = made(waits_for_signal, NULL);
	second = made(answers, NULL);
	usleep(1000);
	kill(getpid(), SIGUSR2);
	really_sleep_ms(50); /* so it is there */
	note("a ");
	sem_post(&semaphore);
	sem_wait(&other);
	note("b ");
	pthread_join(second, NULL);
	pthread_join(first, NULL);
	first = made(waits_outside, NULL);
	usleep(1000);
	pthread_cancel(first);
	note("%d", is_cancelled(first));
}

/* --- connections that another thread closes, or whose thread is cancelled */

static void *reads(void *argument)
{
	int client = *(int *)argument;
	char byte;

	(void)!read(client, &byte, 1);
	return NULL;
}

static void closes(void)
{
	int cancelled = accept(listener, NULL, NULL), closed = accept(listener, NULL, NULL);
	pthread_t first = made(reads, &cancelled), second = made(reads, &closed);

	usleep(1000);
	pthread_cancel(first);
	note("%d ", is_cancelled(first));
	close(cancelled);
	close(closed);
	pthread_join(second, NULL);
	note("joined");
}

int main(void)
{
	static const struct asked all[] = {
		{ "strangers", strangers }, { "cancels", cancels }, { "comes back", comes_back },
		{ "closes", closes }, { NULL, NULL },
	};

	return serve(all);
}
