/* What must be so in these programs: else they say where it was not, and fail. */
#ifndef REQUIRE_H
#define REQUIRE_H

#include <stdio.h>
#include <stdlib.h>

#define REQUIRE(is_so)                                                                             \
	do {                                                                                       \
		if (!(is_so)) {                                                                    \
			fprintf(stderr, "line %d: not %s\n", __LINE__, #is_so);                    \
			exit(EXIT_FAILURE);                                                        \
		}                                                                                  \
	} while (0)

#endif
