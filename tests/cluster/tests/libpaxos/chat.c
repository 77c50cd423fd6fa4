/*
 * A chat log, written for libpaxos: what one replica reads, all print, in one order. It
 * keeps nothing: when it begins, it is given everything anew.
 *
 *   chat ID CONFIGURATION
 *
 * Reads lines from standard input. Prints of each value its number and the value; of one
 * that is no line, its size and a sum of its bytes.
 */
#include <ctype.h>
#include <evpaxos.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct chat {
	int id;
	char line[512];
	size_t length;
	struct event *input;
	struct evpaxos_replica *replica;
};

static void on_deliver(unsigned iid, char *value, size_t size, void *arg)
{
	unsigned long sum = 0;
	int is_line = size > 0 && size < 512;
	size_t at;

	(void)arg;
	for (at = 0; at < size; at++) {
		sum = sum * 31 + (unsigned char)value[at];
		is_line = is_line && isprint((unsigned char)value[at]);
	}
	if (is_line)
		printf("value %u %.*s\n", iid, (int)size, value);
	else
		printf("value %u %zu bytes, sum %lu\n", iid, size, sum);
	fflush(stdout);
}

static void say(struct chat *chat)
{
	char text[600];

	chat->line[chat->length] = '\0';
	snprintf(text, sizeof(text), "%d says: %s", chat->id, chat->line);
	evpaxos_replica_submit(chat->replica, text, (int)strlen(text));
	chat->length = 0;
}

static void on_input(evutil_socket_t input, short what, void *arg)
{
	struct chat *chat = arg;
	char bytes[256];
	ssize_t count = read(input, bytes, sizeof(bytes));
	ssize_t at;

	(void)what;
	if (count == 0)
		event_del(chat->input);
	for (at = 0; at < count; at++) {
		if (bytes[at] == '\n' || chat->length == sizeof(chat->line) - 1)
			say(chat);
		else
			chat->line[chat->length++] = bytes[at];
	}
}

static void on_signal(evutil_socket_t number, short what, void *arg)
{
	(void)number;
	(void)what;
	event_base_loopexit(arg, NULL);
}

int main(int argc, char **argv)
{
	struct event_config *how = event_config_new();
	struct event_base *base;
	struct event *signal_event;
	static struct chat chat;

	if (argc != 3)
		return 2;
	event_config_require_features(how, EV_FEATURE_FDS); /* input may be a file */
	base = event_base_new_with_config(how);
	event_config_free(how);
	signal(SIGPIPE, SIG_IGN);
	chat.id = atoi(argv[1]);
	chat.replica = evpaxos_replica_init(chat.id, argv[2], on_deliver, &chat, base);
	if (!chat.replica)
		return 1;
	signal_event = evsignal_new(base, SIGTERM, on_signal, base);
	evsignal_add(signal_event, NULL);
	fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
	chat.input = event_new(base, STDIN_FILENO, EV_READ | EV_PERSIST, on_input, &chat);
	event_add(chat.input, NULL);
	event_base_dispatch(base);
	event_free(chat.input);
	event_free(signal_event);
	evpaxos_replica_free(chat.replica);
	event_base_free(base);
	return 0;
}
