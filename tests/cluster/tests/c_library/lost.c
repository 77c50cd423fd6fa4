/*
 * What becomes of a learner whose values are declared lost: it is told up to where, and begins
 * behind that.
 *
 *   lost CONFIGURATION
 */
#include <quorumwire.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "require.h"

static void delivered(void *context, uint64_t instance, const void *value, size_t size)
{
	(void)value;
	(void)size;
	*(uint64_t *)context = instance;
}

int main(int argc, char **argv)
{
	quorumwire_t *handle = NULL;
	uint64_t instances[3], given = 0, trimmed = 0;
	char text[512], upto[32];
	int called;

	REQUIRE(argc == 2 && quorumwire_open(argv[1], &handle) == QUORUMWIRE_OK);
	for (int i = 0; i < 3; i++)
		REQUIRE(quorumwire_submit_wait(handle, "value", 5, &instances[i]) == QUORUMWIRE_OK);
	REQUIRE(quorumwire_declare_lost(handle, UINT64_MAX, &trimmed) == QUORUMWIRE_ERROR_NOT_DECIDED);
	REQUIRE(quorumwire_checkpoint(handle, 1, instances[1], &trimmed) == QUORUMWIRE_OK);
	REQUIRE(trimmed < instances[0]); /* learner 2 lacks it */
	REQUIRE(quorumwire_declare_lost(handle, instances[1], &trimmed) == QUORUMWIRE_OK);
	REQUIRE(trimmed == instances[1]);
	REQUIRE(quorumwire_declare_lost(handle, instances[0], NULL) == QUORUMWIRE_OK);
	REQUIRE(quorumwire_deliver(handle, 2, instances[0], delivered, &given) ==
		QUORUMWIRE_ERROR_TRIMMED);
	quorumwire_last_error(handle, text, sizeof(text));
	snprintf(upto, sizeof(upto), "%llu", (unsigned long long)instances[1]);
	REQUIRE(strstr(text, upto) != NULL);
	/* Behind its checkpoint, which has moved with that. */
	REQUIRE(quorumwire_deliver(handle, 2, 0, delivered, &given) == QUORUMWIRE_OK);
	while ((called = quorumwire_poll(handle, 10000)) == 0)
		;
	REQUIRE(called == 1 && given == instances[2]);
	REQUIRE(quorumwire_close(handle) == QUORUMWIRE_OK);
	printf("it goes on\n");
	return EXIT_SUCCESS;
}
