/* A server that does what its client names, and answers with a text about what came of it. */
#ifndef ASKED_H
#define ASKED_H

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct asked {
	const char *what;
	void (*run)(void);
};

static char text[4096];
static int listener;

__attribute__((format(printf, 1, 2))) static void note(const char *form, ...)
{
	size_t length = strlen(text);
	va_list list;

	va_start(list, form);
	vsnprintf(text + length, sizeof(text) - length, form, list);
	va_end(list);
}

/* The last one has no name. */
static int serve(const struct asked *all)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons(7000) };
	char line[64];
	ssize_t got;
	int client;

	listener = socket(AF_INET, SOCK_STREAM, 0);
	own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, (struct sockaddr *)&own, sizeof(own)) || listen(listener, 8))
		return 2;
	client = accept(listener, NULL, NULL);
	while ((got = read(client, line, sizeof(line) - 1)) > 0) {
		line[got] = 0;
		text[0] = 0;
		for (const struct asked *each = all; each->what; each++) {
			if (!strcmp(line, each->what))
				each->run();
		}
		note(".");
		got = (ssize_t)strlen(text);
		if (write(client, text, (size_t)got) != got)
			return 3;
	}
	return 0;
}

#endif
