/*
 * Reads random configurations, made of pieces of sound ones and of any bytes.
 *
 *   bounds FILE COUNT
 */
#include <evpaxos.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const pieces[] = {
	"replica",
	"acceptor",
	"a",
	"learner 3",
	" 0 ",
	" 1 ",
	"127.0.0.1",
	" 8800",
	"\n",
	"\n",
	"# ",
	"verbosity",
	" quiet",
	"tcp-nodelay ",
	"yes",
	"proposer-timeout ",
	"lmdb-mapsize 10",
	"mb",
	"\t",
	"lmdb-env-path ",
	"/tmp/a",
	"-",
	"99999999999999999999",
	"storage-backend memory",
	"replica 0 127.0.0.1 8800\n",
	"verbosity quiet\n",
};

static void write_one(const char *path)
{
	FILE *file = fopen(path, "w");
	int count = rand() % 24;

	if (!file)
		exit(2);
	while (count-- > 0) {
		if (rand() % 12 == 0)
			fputc(rand() % 256, file);
		else if (rand() % 60 == 0)
			fprintf(file, "%*s", rand() % 1200, "x");
		else
			fputs(pieces[(size_t)rand() % (sizeof(pieces) / sizeof(pieces[0]))], file);
	}
	fclose(file);
}

int main(int argc, char **argv)
{
	int count, round, read = 0, id;

	if (argc != 3)
		return 2;
	count = atoi(argv[2]);
	for (round = 0; round < count; round++) {
		struct evpaxos_config *config;

		srand((unsigned)round);
		write_one(argv[1]);
		config = evpaxos_config_read(argv[1]);
		if (!config)
			continue;
		read++;
		for (id = -1; id <= evpaxos_acceptor_count(config); id++) {
			(void)evpaxos_acceptor_address(config, id);
			(void)evpaxos_proposer_listen_port(config, id);
		}
		evpaxos_config_free(config);
	}
	printf("read %d of %d\n", read, count);
	return 0;
}
