/*
 * A learner that takes its time for each value.
 *
 *   slow CONFIGURATION LEARNER VALUES MILLISECONDS
 *
 * Prints each value when it is given it, and checkpoints it.
 */
#include <quorumwire.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "require.h"

struct progress {
	uint64_t instance;
	int count;
	struct timespec rest;
};

static void delivered(void *context, uint64_t instance, const void *value, size_t size)
{
	struct progress *progress = context;

	REQUIRE(instance > progress->instance);
	progress->instance = instance;
	progress->count++;
	printf("%.*s\n", (int)size, (const char *)value);
	fflush(stdout);
	nanosleep(&progress->rest, NULL);
}

int main(int argc, char **argv)
{
	struct progress progress = { 0, 0, { 0, 0 } };
	quorumwire_t *handle;
	uint16_t learner;
	int values;

	REQUIRE(argc == 5 && quorumwire_open(argv[1], &handle) == QUORUMWIRE_OK);
	learner = (uint16_t)atoi(argv[2]);
	values = atoi(argv[3]);
	progress.rest.tv_nsec = atol(argv[4]) * 1000000;
	REQUIRE(quorumwire_deliver(handle, learner, 0, delivered, &progress) == QUORUMWIRE_OK);
	while (progress.count < values) {
		REQUIRE(quorumwire_poll(handle, -1) >= 0);
		if (progress.instance > 0)
			REQUIRE(quorumwire_checkpoint(handle, learner, progress.instance, NULL) ==
				QUORUMWIRE_OK);
	}
	REQUIRE(quorumwire_close(handle) == QUORUMWIRE_OK);
	return EXIT_SUCCESS;
}
