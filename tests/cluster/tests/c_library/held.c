/*
 * Values that are held are not delivered, and submissions are called back for meanwhile; a callback
 * that holds them is called for no more.
 *
 *   held CONFIGURATION
 */
#include <poll.h>
#include <quorumwire.h>
#include <stdio.h>
#include <stdlib.h>

#include "require.h"

#define VALUES 5

static quorumwire_t *handle;
static int given, decided;

static void delivered(void *context, uint64_t instance, const void *value, size_t size)
{
	(void)context;
	(void)instance;
	(void)value;
	(void)size;
	given++;
	REQUIRE(quorumwire_hold(handle, 1) == QUORUMWIRE_OK);
}

static void submitted(void *context, int error, uint64_t instance)
{
	(void)context;
	REQUIRE(error == QUORUMWIRE_OK && instance > 0);
	decided++;
}

int main(int argc, char **argv)
{
	REQUIRE(argc == 2 && quorumwire_open(argv[1], &handle) == QUORUMWIRE_OK);
	REQUIRE(quorumwire_hold(handle, 1) == QUORUMWIRE_OK);
	REQUIRE(quorumwire_deliver(handle, 1, 0, delivered, NULL) == QUORUMWIRE_OK);
	for (int i = 0; i < VALUES; i++) {
		REQUIRE(quorumwire_submit(handle, "value", 5, submitted, NULL) == QUORUMWIRE_OK);
		while (decided == i)
			REQUIRE(quorumwire_poll(handle, 10000) >= 0);
		/* Its values are there, or will be: while they are held, none is given. */
		REQUIRE(quorumwire_poll(handle, 100) == 0 && given == 0);
	}
	for (int i = 1; i <= VALUES; i++) {
		struct pollfd bell = { quorumwire_fd(handle), POLLIN, 0 };

		REQUIRE(quorumwire_hold(handle, 0) == QUORUMWIRE_OK);
		REQUIRE(poll(&bell, 1, 10000) == 1);
		while (given < i)
			REQUIRE(quorumwire_poll(handle, 10000) >= 0);
		REQUIRE(given == i);
	}
	REQUIRE(quorumwire_close(handle) == QUORUMWIRE_OK);
	REQUIRE(quorumwire_hold(handle, 1) == QUORUMWIRE_ERROR_HANDLE);
	printf("held\n");
	return EXIT_SUCCESS;
}
