/*
 * Calls that wait for replicas which are gone end at once when another thread closes the handle.
 *
 *   closed CONFIGURATION
 *
 * It prints a line when it is connected, and goes on when it has read one.
 */
#include <pthread.h>
#include <quorumwire.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "require.h"

#define SECONDS_MAX 10 /* less than the deadline */

static quorumwire_t *handle;

static void must_say_closed(void)
{
	char text[256];

	REQUIRE(quorumwire_last_error(NULL, text, sizeof(text)) > 0);
	REQUIRE(strstr(text, "closed") != NULL);
}

static void *submits(void *unused)
{
	int error = quorumwire_submit_wait(handle, "value", 5, NULL);

	/* On a busy machine it had not begun yet, and was refused. */
	REQUIRE(error == QUORUMWIRE_ERROR_OUTCOME_UNKNOWN || error == QUORUMWIRE_ERROR_HANDLE);
	must_say_closed();
	return unused;
}

static void *recovers(void *unused)
{
	quorumwire_recovered_t recovered;

	REQUIRE(quorumwire_recover(handle, 1, &recovered) == QUORUMWIRE_ERROR_HANDLE);
	must_say_closed();
	return unused;
}

static void *polls(void *unused)
{
	REQUIRE(quorumwire_poll(handle, -1) == QUORUMWIRE_ERROR_HANDLE);
	must_say_closed();
	return unused;
}

static void called_back(void *context, int error, uint64_t instance)
{
	(void)context;
	(void)error;
	(void)instance;
	REQUIRE(!"it is called back");
}

int main(int argc, char **argv)
{
	void *(*const calls[])(void *) = { submits, recovers, polls };
	struct timespec short_time = { 0, 200000000 };
	pthread_t threads[3];
	time_t begun;
	int i;

	REQUIRE(argc == 2 && quorumwire_open(argv[1], &handle) == QUORUMWIRE_OK);
	printf("connected\n");
	fflush(stdout);
	REQUIRE(getchar() == '\n');
	REQUIRE(quorumwire_submit(handle, "value", 5, called_back, NULL) == QUORUMWIRE_OK);
	for (i = 0; i < 3; i++)
		REQUIRE(pthread_create(&threads[i], NULL, calls[i], NULL) == 0);
	nanosleep(&short_time, NULL); /* they wait by then; what does not is refused */
	begun = time(NULL);
	REQUIRE(quorumwire_close(handle) == QUORUMWIRE_OK);
	for (i = 0; i < 3; i++)
		REQUIRE(pthread_join(threads[i], NULL) == 0);
	REQUIRE(time(NULL) - begun < SECONDS_MAX);
	printf("closed\n");
	return EXIT_SUCCESS;
}
