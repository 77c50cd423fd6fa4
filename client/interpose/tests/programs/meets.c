/* A server whose threads meet with what is not theirs: threads that the library has not made, the
 * kernel's own time, cancellation, connections that another thread closes, and descriptors of the
 * kernel's. The test compiles it. */
#include "asked.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/uio.h>
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

static void *waits_for_clients(void *argument)
{
	note("%d ", accept(*(int *)argument, NULL, NULL) < 0 && errno == EINVAL);
	return NULL;
}

static void shuts(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(7001) };
	int second = socket(AF_INET, SOCK_STREAM, 0);
	pthread_t thread;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(second, (struct sockaddr *)&at, sizeof(at)) || listen(second, 8))
		abort();
	thread = made(waits_for_clients, &second);
	usleep(1000);
	shutdown(second, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(second);
	note("joined");
}

/* --- threads have numbers in the order in which they were made */

static void *says_its_number(void *unused)
{
	note("%d %d ", gettid() - getpid(), tgkill(getpid(), gettid(), 0));
	return unused;
}

static void numbers(void)
{
	pthread_t first = made(says_its_number, NULL), second = made(says_its_number, NULL);

	pthread_join(first, NULL);
	pthread_join(second, NULL);
}

/* --- what is sent between threads is longer than there is room for */

#define LONG (1 << 20)
static char bytes[LONG];

static void *takes_all(void *argument)
{
	static char taken[LONG];
	int is_same = 1;
	size_t all = 0;

	while (all < LONG) {
		ssize_t got = read(*(int *)argument, taken, LONG - all);

		if (got <= 0)
			break;
		is_same &= !memcmp(taken, bytes + all, (size_t)got);
		all += (size_t)got;
	}
	note("%zu %d ", all, is_same);
	return NULL;
}

static void *writes_late(void *argument)
{
	usleep(20000);
	note("%zd ", write(*(int *)argument, "late", 4));
	return NULL;
}

static void sends(void)
{
	struct iovec parts[2] = { { bytes, LONG / 4 }, { bytes, LONG - LONG / 4 } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	int ends[2], more[2];
	pthread_t thread;
	char late[10];

	for (int i = 0; i < LONG; i++)
		bytes[i] = (char)(i % 4096 * 31 / 7); /* the same in each datagram */
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || pipe(more))
		abort();
	note("%d ", recv(ends[0], late, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	for (int way = 0; way < 6; way++) {
		ssize_t sent;

		thread = made(takes_all, way < 4 ? &ends[0] : &more[0]);
		sent = way == 0 ? send(ends[1], bytes, LONG, 0) :
		       way == 1 ? write(ends[1], bytes, LONG) :
		       way == 2 ? writev(ends[1], parts, 2) :
		       way == 3 ? sendmsg(ends[1], &message, 0) :
		       way == 4 ? write(more[1], bytes, LONG) :
				  writev(more[1], parts, 2);
		pthread_join(thread, NULL);
		note("%d; ", sent == LONG);
	}
	thread = made(writes_late, &more[1]);
	note("%zd ", splice(more[0], NULL, ends[1], NULL, 100, 0));
	pthread_join(thread, NULL);
	note("%zd ", recv(ends[0], late, sizeof(late), 0));
	close(ends[0]);
	close(ends[1]);
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends))
		abort();
	thread = made(takes_all, &ends[0]);
	for (int i = 0; i < LONG / 4096; i++)
		send(ends[1], bytes, 4096, 0);
	pthread_join(thread, NULL);
	for (int i = 0; i < 2; i++) {
		close(ends[i]);
		close(more[i]);
	}
}

/* --- timers whose ends come at once */

static int ends_seen, values_seen;

static void count_end(int number, siginfo_t *info, void *unused)
{
	(void)number;
	(void)unused;
	ends_seen++;
	values_seen += info->si_value.sival_int;
}

static void timers(void)
{
	struct sigaction action = { .sa_sigaction = count_end, .sa_flags = SA_SIGINFO };
	struct itimerspec when = { .it_value = { .tv_nsec = 20000000 } };
	timer_t made_timers[3];

	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < 3; i++) {
		struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };

		event.sigev_value.sival_int = i + 1;
		timer_create(CLOCK_MONOTONIC, &event, &made_timers[i]);
		timer_settime(made_timers[i], 0, &when, NULL);
	}
	for (int i = 0; i < 3; i++)
		usleep(30000);
	note("%d %d", ends_seen, values_seen);
}

int main(void)
{
	static const struct asked all[] = {
		{ "numbers", numbers }, { "shuts", shuts }, { "sends", sends }, { "timers", timers },
		{ "strangers", strangers }, { "cancels", cancels }, { "comes back", comes_back },
		{ "closes", closes }, { NULL, NULL },
	};

	return serve(all);
}
