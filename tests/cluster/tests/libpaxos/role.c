/*
 * An acceptor, a proposer or a learner of libpaxos in a process of its own. It ends when it
 * is sent SIGTERM, and frees all.
 *
 *   role acceptor|proposer ID CONFIGURATION
 *   role learner NUMBER CONFIGURATION     prints the values behind this number: number and size
 */
#include <evpaxos.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_deliver(unsigned iid, char *value, size_t size, void *arg)
{
	(void)value;
	(void)arg;
	printf("value %u %zu\n", iid, size);
	fflush(stdout);
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
	struct evacceptor *acceptor = NULL;
	struct evproposer *proposer = NULL;
	struct evlearner *learner = NULL;
	struct event *signal_event;

	if (argc != 4)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	if (strcmp(argv[1], "acceptor") == 0)
		acceptor = evacceptor_init(atoi(argv[2]), argv[3], base);
	else if (strcmp(argv[1], "learner") == 0)
		learner = evlearner_init(argv[3], on_deliver, NULL, base);
	else
		proposer = evproposer_init(atoi(argv[2]), argv[3], base);
	if (!acceptor && !proposer && !learner)
		return 1;
	if (proposer)
		evproposer_set_instance_id(proposer, 1000000);
	if (learner)
		evlearner_set_instance_id(learner, (unsigned)atoi(argv[2]));
	signal_event = evsignal_new(base, SIGTERM, on_signal, base);
	evsignal_add(signal_event, NULL);
	event_base_dispatch(base);
	event_free(signal_event);
	if (acceptor)
		evacceptor_free(acceptor);
	if (proposer)
		evproposer_free(proposer);
	if (learner)
		evlearner_free(learner);
	event_base_free(base);
	return 0;
}
