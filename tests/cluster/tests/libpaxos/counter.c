/*
 * A replicated counter, written for libpaxos: each replica wants it counted up now and
 * then. It keeps its state in a file, begins behind it, and has all trimmed that all
 * replicas have in their files.
 *
 *   counter ID CONFIGURATION STATE-FILE
 *
 * Prints after each 50th value: its number, the count, and a sum of all that was counted.
 */
#include <evpaxos.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLICAS_MAX 10

struct state {
	unsigned iid;
	uint64_t count;
	uint64_t sum;
};

struct counter {
	int id;
	const char *file;
	struct state state;
	unsigned submitted;
	unsigned kept[REPLICAS_MAX];
	unsigned trimmed;
	struct event *timer;
	struct evpaxos_replica *replica;
};

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void load(struct counter *counter)
{
	struct state *state = &counter->state;
	FILE *file = fopen(counter->file, "r");

	if (!file)
		return;
	if (fscanf(file, "%u %" SCNu64 " %" SCNu64, &state->iid, &state->count, &state->sum) != 3)
		fail(counter->file);
	fclose(file);
}

static void keep(const struct counter *counter)
{
	const struct state *state = &counter->state;
	char aside[512];
	FILE *file;

	snprintf(aside, sizeof(aside), "%s.new", counter->file);
	file = fopen(aside, "w");
	if (!file)
		fail(aside);
	fprintf(file, "%u %" PRIu64 " %" PRIu64 "\n", state->iid, state->count, state->sum);
	if (fclose(file) != 0 || rename(aside, counter->file) != 0)
		fail(aside);
}

/* Another replica, or this one, has kept its state behind this number. */
static void note_kept(struct counter *counter, int id, unsigned iid)
{
	unsigned least = UINT32_MAX;
	int replica;

	if (id < 0 || id >= REPLICAS_MAX || iid <= counter->kept[id])
		return;
	counter->kept[id] = iid;
	for (replica = 0; replica < evpaxos_replica_count(counter->replica); replica++) {
		if (counter->kept[replica] < least)
			least = counter->kept[replica];
	}
	if (least > counter->trimmed) {
		counter->trimmed = least;
		evpaxos_replica_send_trim(counter->replica, least);
	}
}

static void on_deliver(unsigned iid, char *value, size_t size, void *arg)
{
	struct counter *counter = arg;
	struct state *state = &counter->state;
	char text[64];
	unsigned number;
	int id;

	if (iid != state->iid + 1) {
		fprintf(stderr, "%u follows %u\n", iid, state->iid);
		exit(1);
	}
	state->iid = iid;
	if (sscanf(value, "kept %d %u", &id, &number) == 2) {
		note_kept(counter, id, number);
	} else if (sscanf(value, "count %d %u", &id, &number) == 2 && strlen(value) + 1 == size) {
		state->count++;
		state->sum = state->sum * 31 + (uint64_t)id * 1000003 + number;
	} else {
		fprintf(stderr, "%u: another value than was submitted\n", iid);
		exit(1);
	}
	if (iid % 50 == 0) {
		printf("value %u %" PRIu64 " %" PRIu64 "\n", iid, state->count, state->sum);
		fflush(stdout);
	}
	if (iid % 100 == 0) {
		keep(counter);
		snprintf(text, sizeof(text), "kept %d %u", counter->id, iid);
		evpaxos_replica_submit(counter->replica, text, (int)strlen(text) + 1);
	}
}

static void on_time(evutil_socket_t socket, short what, void *arg)
{
	struct timeval pause = { 0, 2000 };
	struct counter *counter = arg;
	char text[64];

	(void)socket;
	(void)what;
	snprintf(text, sizeof(text), "count %d %u", counter->id, counter->submitted++);
	evpaxos_replica_submit(counter->replica, text, (int)strlen(text) + 1);
	event_add(counter->timer, &pause);
}

static void on_signal(evutil_socket_t number, short what, void *arg)
{
	(void)number;
	(void)what;
	event_base_loopexit(arg, NULL);
}

int main(int argc, char **argv)
{
	struct event_base *base = event_base_new();
	static struct counter counter;
	struct event *signal_event;
	struct timeval now = { 0, 0 };

	if (argc != 4)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	counter.id = atoi(argv[1]);
	counter.file = argv[3];
	counter.replica = evpaxos_replica_init(counter.id, argv[2], on_deliver, &counter, base);
	if (!counter.replica)
		return 1;
	load(&counter);
	evpaxos_replica_set_instance_id(counter.replica, counter.state.iid);
	signal_event = evsignal_new(base, SIGTERM, on_signal, base);
	evsignal_add(signal_event, NULL);
	counter.timer = evtimer_new(base, on_time, &counter);
	event_add(counter.timer, &now);
	event_base_dispatch(base);
	event_free(counter.timer);
	event_free(signal_event);
	evpaxos_replica_free(counter.replica);
	counter.replica = NULL; /* so that what it has left is seen as lost */
	event_base_free(base);
	return 0;
}
