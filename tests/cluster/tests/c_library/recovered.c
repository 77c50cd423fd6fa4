/*
 * What is known of instances, one after the other; values are not asked for.
 *
 *   recovered CONFIGURATION INSTANCE...
 *
 * Prints a line for each: its state, the instance that is said, and its value; or the error.
 */
#include <quorumwire.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "require.h"

static void say(quorumwire_t *handle, uint64_t instance)
{
	static const char *const states[] = { "", "decided", "no-op", "trimmed", "not-decided" };
	quorumwire_recovered_t recovered = { 0, NULL, 0, 0 };
	int error = quorumwire_recover(handle, instance, &recovered);
	char text[512];

	if (error != QUORUMWIRE_OK) {
		REQUIRE(recovered.state == 0); /* it is left alone */
		REQUIRE(quorumwire_last_error(handle, text, sizeof(text)) > 0);
		printf("error %d %s\n", error, text);
		return;
	}
	REQUIRE(recovered.state >= QUORUMWIRE_DECIDED && recovered.state <= QUORUMWIRE_NOT_DECIDED);
	REQUIRE((recovered.state == QUORUMWIRE_DECIDED) == (recovered.value != NULL));
	printf("%s %llu %.*s\n", states[recovered.state], (unsigned long long)recovered.instance,
	       (int)recovered.size, recovered.value ? (const char *)recovered.value : "");
	quorumwire_recovered_free(&recovered);
	REQUIRE(recovered.value == NULL && recovered.size == 0);
	quorumwire_recovered_free(&recovered);
}

int main(int argc, char **argv)
{
	quorumwire_t *handle;

	REQUIRE(argc > 2 && quorumwire_open(argv[1], &handle) == QUORUMWIRE_OK);
	for (int i = 2; i < argc; i++)
		say(handle, strtoull(argv[i], NULL, 10));
	REQUIRE(quorumwire_close(handle) == QUORUMWIRE_OK);
	return EXIT_SUCCESS;
}
