/* A server with a pool of threads. What it answers depends on the order in which its threads
 * come to what they share. The test compiles it. Arguments: how threads are handed what there is
 * to do (pipe, eventfd: a connection, from then on the thread's own; condition: a line that was
 * read; connection: each has a thread of its own), and `drawn`: answers hold time and chance.
 * Upon `lost` a thread does not come back. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
#define JOBS 1024

struct job {
	int client;
	size_t bytes;
	char line[64];
};

struct worker {
	int number, epoll, wakes, woken;
	pthread_mutex_t lock;
	int queue[JOBS];
	unsigned int in, out;
};

static struct worker workers[THREADS];
static int is_drawn;

/* What all share. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;
static struct job jobs[JOBS];
static unsigned int jobs_in, jobs_out;
static uint64_t history = 14695981039346656037ULL, count;

static void answer(int who, int client, const char *line, size_t bytes)
{
	char text[128];
	int length, never = 0;

	while (bytes >= 4 && !memcmp(line, "lost", 4))
		syscall(SYS_futex, &never, FUTEX_WAIT, 0, NULL, NULL, 0);
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < bytes; i++)
		history = (history ^ (uint64_t)line[i]) * 1099511628211ULL;
	history = (history ^ (uint64_t)who) * 1099511628211ULL;
	if (++count % 16 == 0)
		usleep(1000); /* and others wait for the lock */
	length = snprintf(text, sizeof(text), "%llu %d %016llx", (unsigned long long)count, who,
			  (unsigned long long)history);
	if (is_drawn) {
		struct timespec now;
		uint32_t chance;

		clock_gettime(CLOCK_REALTIME, &now);
		if (getrandom(&chance, sizeof(chance), 0) != sizeof(chance))
			abort();
		length += snprintf(text + length, sizeof(text) - (size_t)length, " %ld.%09ld %08x", now.tv_sec,
				   now.tv_nsec, chance);
	}
	text[length++] = '\n';
	pthread_mutex_unlock(&lock);
	if (write(client, text, (size_t)length) != length)
		abort();
}

/* Has a part of the connections, and waits for more. */
static void *serve_connections(void *argument)
{
	struct worker *worker = argument;
	struct epoll_event events[16], event = { .events = EPOLLIN };

	pthread_setname_np(pthread_self(), "worker");
	for (;;) {
		int found = epoll_wait(worker->epoll, events, 16, -1);

		for (int i = 0; i < found; i++) {
			char line[64];
			uint64_t rung;
			ssize_t got;

			if (events[i].data.fd != worker->woken) {
				got = read(events[i].data.fd, line, sizeof(line));
				if (got > 0)
					answer(worker->number, events[i].data.fd, line, (size_t)got);
				else
					close(events[i].data.fd);
				continue;
			}
			if (read(worker->woken, &rung, sizeof(rung)) < 0)
				abort();
			pthread_mutex_lock(&worker->lock);
			while (worker->out != worker->in) {
				event.data.fd = worker->queue[worker->out++ % JOBS];
				epoll_ctl(worker->epoll, EPOLL_CTL_ADD, event.data.fd, &event);
			}
			pthread_mutex_unlock(&worker->lock);
		}
	}
	return NULL;
}

static void *serve_jobs(void *argument)
{
	struct worker *worker = argument;

	for (;;) {
		struct job job;

		pthread_mutex_lock(&lock);
		while (jobs_out == jobs_in)
			pthread_cond_wait(&work, &lock);
		job = jobs[jobs_out++ % JOBS];
		pthread_mutex_unlock(&lock);
		answer(worker->number, job.client, job.line, job.bytes);
	}
	return NULL;
}

static void *serve_one(void *argument)
{
	int client = (int)(intptr_t)argument;
	char line[64];
	ssize_t got;

	while ((got = read(client, line, sizeof(line))) > 0)
		answer(client, client, line, (size_t)got);
	close(client);
	return NULL;
}

static void hand_over(struct worker *worker, int client)
{
	uint64_t one = 1;

	pthread_mutex_lock(&worker->lock);
	worker->queue[worker->in++ % JOBS] = client;
	pthread_mutex_unlock(&worker->lock);
	if (write(worker->wakes, &one, sizeof(one)) < 0)
		abort();
}

static void read_job(int client)
{
	struct job job = { .client = client };
	ssize_t got = read(client, job.line, sizeof(job.line));

	if (got <= 0) {
		close(client);
		return;
	}
	job.bytes = (size_t)got;
	pthread_mutex_lock(&lock);
	jobs[jobs_in++ % JOBS] = job;
	pthread_cond_signal(&work);
	pthread_mutex_unlock(&lock);
}

static void start_workers(const char *way)
{
	for (int i = 0; i < THREADS; i++) {
		struct worker *worker = &workers[i];
		struct epoll_event event = { .events = EPOLLIN };
		int ends[2];
		pthread_t thread;

		worker->number = i;
		pthread_mutex_init(&worker->lock, NULL);
		if (!strcmp(way, "pipe") || !strcmp(way, "eventfd")) {
			if (!strcmp(way, "pipe") && pipe(ends))
				abort();
			if (!strcmp(way, "eventfd"))
				ends[0] = ends[1] = eventfd(0, 0);
			worker->woken = ends[0];
			worker->wakes = ends[1];
			worker->epoll = epoll_create1(0);
			event.data.fd = worker->woken;
			epoll_ctl(worker->epoll, EPOLL_CTL_ADD, worker->woken, &event);
			pthread_create(&thread, NULL, serve_connections, worker);
		} else if (!strcmp(way, "condition")) {
			pthread_create(&thread, NULL, serve_jobs, worker);
		}
	}
}

int main(int argument_count, char **arguments)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons(7000) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), epoll = epoll_create1(0), client, one = 1;
	struct epoll_event events[16], event = { .events = EPOLLIN };
	const char *way = arguments[1];

	is_drawn = argument_count > 2 && !strcmp(arguments[2], "drawn");
	if (argument_count > 3)
		own.sin_port = htons((uint16_t)atoi(arguments[3]));
	start_workers(way);
	own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&own, sizeof(own)) || listen(listener, 64))
		return 2;
	event.data.fd = listener;
	epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
	for (unsigned int next = 0;;) {
		int found = epoll_wait(epoll, events, 16, -1);

		for (int i = 0; i < found; i++) {
			pthread_t thread;

			if (events[i].data.fd != listener) {
				read_job(events[i].data.fd);
				continue;
			}
			client = accept(listener, NULL, NULL);
			if (client < 0)
				return 3;
			setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
			if (!strcmp(way, "connection")) {
				pthread_create(&thread, NULL, serve_one, (void *)(intptr_t)client);
				pthread_detach(thread);
			} else if (!strcmp(way, "condition")) {
				event.data.fd = client;
				epoll_ctl(epoll, EPOLL_CTL_ADD, client, &event);
			} else {
				hand_over(&workers[next++ % THREADS], client);
			}
		}
	}
}
