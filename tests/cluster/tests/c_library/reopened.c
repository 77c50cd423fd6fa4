/*
 * A replica inside the program has ended when its handle is closed, whatever other threads wait
 * for: its data folder is free, and it begins anew.
 *
 *   reopened CONFIGURATION
 */
#include <pthread.h>
#include <quorumwire.h>
#include <stdio.h>
#include <stdlib.h>

#define TIMES 3

static void *submits(void *handle)
{
	int error = quorumwire_submit_wait(handle, "value", 5, NULL);

	if (error == QUORUMWIRE_OK)
		fprintf(stderr, "a value was decided by one of three\n");
	return error == QUORUMWIRE_OK ? handle : NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[TIMES];
	int times, joined;

	for (times = 0; argc == 2 && times < TIMES; times++) {
		quorumwire_t *handle;
		char text[512];

		if (quorumwire_open(argv[1], &handle) != QUORUMWIRE_OK) {
			quorumwire_last_error(NULL, text, sizeof(text));
			fprintf(stderr, "open: %s\n", text);
			return EXIT_FAILURE;
		}
		if (pthread_create(&threads[times], NULL, submits, handle) != 0 ||
		    quorumwire_close(handle) != QUORUMWIRE_OK)
			return EXIT_FAILURE;
	}
	for (joined = 0; joined < times; joined++) {
		void *decided;

		if (pthread_join(threads[joined], &decided) != 0 || decided)
			return EXIT_FAILURE;
	}
	printf("%d times\n", times);
	return EXIT_SUCCESS;
}
