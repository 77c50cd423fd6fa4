/*
 * Values in one order for all, in C: one program submits words, others are given all of
 * them in the same order, whichever replica dies meanwhile.
 *
 *   learner CONFIGURATION submit WORD...     submits each, and prints its instance
 *   learner CONFIGURATION learn NUMBER COUNT prints so many values for the learner of this number
 *
 *   cc -std=c99 learner.c -o learner $(pkg-config --cflags --libs quorumwire)
 */
#include <quorumwire.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int complain(quorumwire_t *handle, const char *what, int error)
{
	char text[512];

	quorumwire_last_error(handle, text, sizeof(text));
	fprintf(stderr, "%s: %s: %s\n", what, quorumwire_error_text(error), text);
	return EXIT_FAILURE;
}

static int submit(quorumwire_t *handle, char **words)
{
	for (; *words; words++) {
		uint64_t instance;
		int error = quorumwire_submit_wait(handle, *words, strlen(*words), &instance);

		if (error != QUORUMWIRE_OK)
			return complain(handle, "submit", error);
		printf("%s has instance %llu\n", *words, (unsigned long long)instance);
	}
	return EXIT_SUCCESS;
}

/* What has been printed; a program that keeps a state keeps this together with it. */
struct progress {
	uint64_t instance;
	unsigned long count;
};

static void print_value(void *context, uint64_t instance, const void *value, size_t size)
{
	struct progress *progress = context;

	printf("%.*s\n", (int)size, (const char *)value);
	fflush(stdout);
	progress->instance = instance;
	progress->count++;
}

static int learn(quorumwire_t *handle, uint16_t learner, unsigned long count)
{
	struct progress progress = { 0, 0 };
	int error = quorumwire_deliver(handle, learner, 0, print_value, &progress);

	if (error != QUORUMWIRE_OK)
		return complain(handle, "deliver", error);
	while (progress.count < count) {
		int called = quorumwire_poll(handle, -1);

		if (called < 0)
			return complain(handle, "poll", called);
		/* What is printed will not be needed again. */
		error = quorumwire_checkpoint(handle, learner, progress.instance, NULL);
		if (error != QUORUMWIRE_OK)
			complain(handle, "checkpoint, the next one may work", error);
	}
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	quorumwire_t *handle;
	int error, code = EXIT_FAILURE;

	if (argc < 4) {
		fprintf(stderr, "learner CONFIGURATION submit WORD... | learn NUMBER COUNT\n");
		return EXIT_FAILURE;
	}
	error = quorumwire_open(argv[1], &handle);
	if (error != QUORUMWIRE_OK)
		return complain(NULL, "open", error);
	if (strcmp(argv[2], "submit") == 0)
		code = submit(handle, argv + 3);
	else if (strcmp(argv[2], "learn") == 0 && argc == 5)
		code = learn(handle, (uint16_t)atoi(argv[3]), strtoul(argv[4], NULL, 10));
	quorumwire_close(handle);
	return code;
}
