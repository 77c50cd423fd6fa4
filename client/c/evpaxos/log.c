/* The log, and the configuration's defaults. */
#include "internal.h"

#include <stdio.h>
#include <time.h>

struct paxos_config paxos_config = {
	.verbosity = PAXOS_LOG_INFO,
	.tcp_nodelay = 1,
	.tcp_reuseaddr = 0,
	.learner_catch_up = 1,
	.proposer_timeout = 1,
	.proposer_preexec_window = 128,
	.storage_backend = PAXOS_MEM_STORAGE,
	.trash_files = 0,
	.lmdb_sync = 0,
	.lmdb_env_path = (char *)"/tmp/acceptor",
	.lmdb_mapsize = 10 * 1024 * 1024,
	.bdb_sync = 0,
	.bdb_cachesize = 32 * 1024 * 1024,
	.bdb_env_path = (char *)"/tmp/acceptor",
	.bdb_db_filename = (char *)"acc.bdb",
};

int paxos_quorum(int acceptors)
{
	return acceptors / 2 + 1;
}

void paxos_log(int level, const char *format, va_list arguments)
{
	char line[1024], at[32] = "";
	time_t now;
	struct tm parts;

	if (level > (int)paxos_config.verbosity)
		return;
	now = time(NULL);
	if (localtime_r(&now, &parts))
		strftime(at, sizeof(at), "%d %b %H:%M:%S", &parts);
	/* One call for a line: other threads write, too. */
	vsnprintf(line, sizeof(line), format, arguments);
	printf("%s. %s\n", at, line);
	fflush(stdout);
}

#define LOG_AT(level, format)                        \
	do {                                         \
		va_list arguments;                   \
                                                     \
		va_start(arguments, format);         \
		paxos_log(level, format, arguments); \
		va_end(arguments);                   \
	} while (0)

void paxos_log_error(const char *format, ...)
{
	LOG_AT(PAXOS_LOG_ERROR, format);
}

void paxos_log_info(const char *format, ...)
{
	LOG_AT(PAXOS_LOG_INFO, format);
}

void paxos_log_debug(const char *format, ...)
{
	LOG_AT(PAXOS_LOG_DEBUG, format);
}
