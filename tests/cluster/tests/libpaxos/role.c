/*
 * An acceptor, or a proposer, of libpaxos in a process of its own.
 *
 *   role acceptor|proposer ID CONFIGURATION
 */
#include <evpaxos.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

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
	struct event *signal_event;

	if (argc != 4)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	if (strcmp(argv[1], "acceptor") == 0)
		acceptor = evacceptor_init(atoi(argv[2]), argv[3], base);
	else
		proposer = evproposer_init(atoi(argv[2]), argv[3], base);
	if (!acceptor && !proposer)
		return 1;
	signal_event = evsignal_new(base, SIGTERM, on_signal, base);
	evsignal_add(signal_event, NULL);
	event_base_dispatch(base);
	event_free(signal_event);
	if (acceptor)
		evacceptor_free(acceptor);
	if (proposer)
		evproposer_free(proposer);
	event_base_free(base);
	return 0;
}
