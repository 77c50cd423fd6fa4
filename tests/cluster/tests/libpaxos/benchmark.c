/*
 * A benchmark, written for libpaxos: a client that keeps a window of values outstanding.
 * It sends them to one proposer, to the next one when that is gone, and sees in a learner
 * of its own when they are delivered. What is not delivered in time it sends again.
 *
 *   benchmark CONFIGURATION PROPOSER WINDOW VALUES BYTES-MAX
 *
 * The first value is empty, the second has BYTES-MAX bytes, the others sizes in between.
 * Prints how many were delivered, how many of them twice, and how long that took.
 */
#include <errno.h>
#include <evpaxos.h>
#include <netinet/tcp.h>
#include <paxos.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* In front of the bytes of each value but the empty one. */
struct stamp {
	uint32_t client;
	uint32_t number;
};

struct value {
	int is_submitted;
	int delivered;
	struct timeval at;
};

struct client {
	uint32_t id;
	int proposer;
	int window;
	uint32_t value_count;
	size_t bytes_max;
	uint32_t next;
	uint32_t delivered;
	uint32_t again;
	unsigned last_iid;
	struct value *values;
	char *bytes;
	const char *configuration;
	struct evpaxos_config *config;
	struct bufferevent *connection;
	int is_connected;
	struct evlearner *learner;
	struct event *timer;
	struct event_base *base;
};

static size_t size_of(const struct client *client, uint32_t number)
{
	size_t most = client->bytes_max - sizeof(struct stamp);

	if (number == 0)
		return 0;
	return sizeof(struct stamp) + (number == 1 ? most : (number * 2654435761U) % (most + 1));
}

static size_t fill(const struct client *client, uint32_t number, char *bytes)
{
	struct stamp stamp = { client->id, number };
	size_t size = size_of(client, number);
	size_t at;

	if (size == 0)
		return 0;
	memcpy(bytes, &stamp, sizeof(stamp));
	for (at = sizeof(stamp); at < size; at++)
		bytes[at] = (char)(number * 7 + at);
	return size;
}

static void submit(struct client *client, uint32_t number)
{
	size_t size = fill(client, number, client->bytes);

	gettimeofday(&client->values[number].at, NULL);
	client->values[number].is_submitted = 1;
	paxos_submit(client->connection, client->bytes, (int)size);
}

static void submit_more(struct client *client)
{
	while (client->is_connected && client->next < client->value_count &&
	       client->next - client->delivered < (uint32_t)client->window)
		submit(client, client->next++);
}

static void on_deliver(unsigned iid, char *bytes, size_t size, void *arg)
{
	struct client *client = arg;
	struct stamp stamp = { client->id, 0 };
	struct value *value;

	if (iid != client->last_iid + 1) {
		fprintf(stderr, "%u follows %u\n", iid, client->last_iid);
		exit(1);
	}
	client->last_iid = iid;
	if (size > 0 && size < sizeof(stamp))
		return; /* somebody else's */
	if (size > 0)
		memcpy(&stamp, bytes, sizeof(stamp));
	if (stamp.client != client->id)
		return;
	if (stamp.number >= client->next || size != fill(client, stamp.number, client->bytes) ||
	    memcmp(bytes, client->bytes, size) != 0) {
		fprintf(stderr, "%u: another value than was submitted\n", iid);
		exit(1);
	}
	value = &client->values[stamp.number];
	if (value->delivered++ > 0) {
		client->again++;
		return;
	}
	client->delivered++;
	if (client->delivered == client->value_count)
		event_base_loopexit(client->base, NULL);
	submit_more(client);
}

static void connect_to_proposer(struct client *client);

static void on_connection(struct bufferevent *connection, short events, void *arg)
{
	struct client *client = arg;
	uint32_t number;
	int flag = 1;

	if (events & BEV_EVENT_CONNECTED) {
		setsockopt(bufferevent_getfd(connection), IPPROTO_TCP, TCP_NODELAY, &flag,
			   sizeof(flag));
		client->is_connected = 1;
		for (number = 0; number < client->next; number++) {
			if (!client->values[number].delivered)
				submit(client, number);
		}
		submit_more(client);
		return;
	}
	client->is_connected = 0;
	client->proposer = (client->proposer + 1) % 3;
	bufferevent_free(connection);
	client->connection = NULL;
}

static void connect_to_proposer(struct client *client)
{
	struct sockaddr_in address = evpaxos_proposer_address(client->config, client->proposer);

	client->connection = bufferevent_socket_new(client->base, -1, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(client->connection, NULL, NULL, on_connection, client);
	bufferevent_enable(client->connection, EV_READ | EV_WRITE);
	bufferevent_socket_connect(client->connection, (struct sockaddr *)&address,
				   sizeof(address));
}

/* What was sent to a replica that died has to be sent again. */
static void on_time(evutil_socket_t socket, short what, void *arg)
{
	struct timeval pause = { 0, 100000 };
	struct client *client = arg;
	struct timeval now;
	uint32_t number;

	(void)socket;
	(void)what;
	gettimeofday(&now, NULL);
	if (!client->connection)
		connect_to_proposer(client);
	for (number = 0; client->is_connected && number < client->next; number++) {
		struct value *value = &client->values[number];

		if (!value->delivered && now.tv_sec - value->at.tv_sec > 3)
			submit(client, number);
	}
	event_add(client->timer, &pause);
}

int main(int argc, char **argv)
{
	static struct client client;
	struct timeval begin, end, now = { 0, 0 };

	if (argc != 6)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	srand((unsigned)(time(NULL) ^ getpid()));
	client.id = (uint32_t)rand();
	client.configuration = argv[1];
	client.proposer = atoi(argv[2]);
	client.window = atoi(argv[3]);
	client.value_count = (uint32_t)atoi(argv[4]);
	client.bytes_max = (size_t)atoi(argv[5]);
	client.values = calloc(client.value_count, sizeof(*client.values));
	client.bytes = malloc(client.bytes_max);
	client.base = event_base_new();
	client.config = evpaxos_config_read(client.configuration);
	if (!client.config || !client.values || !client.bytes)
		return 1;
	client.learner = evlearner_init(argv[1], on_deliver, &client, client.base);
	if (!client.learner)
		return 1;
	client.timer = evtimer_new(client.base, on_time, &client);
	event_add(client.timer, &now);
	gettimeofday(&begin, NULL);
	event_base_dispatch(client.base);
	gettimeofday(&end, NULL);
	printf("%u delivered, %u of them twice, %ld ms\n", client.delivered, client.again,
	       (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_usec - begin.tv_usec) / 1000);
	if (client.connection)
		bufferevent_free(client.connection);
	event_free(client.timer);
	evlearner_free(client.learner);
	evpaxos_config_free(client.config);
	event_base_free(client.base);
	free(client.values);
	free(client.bytes);
	return client.delivered == client.value_count ? 0 : 1;
}
