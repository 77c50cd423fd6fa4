/*
 * What programs written for libpaxos 3 take from its paxos.h: the configuration that a
 * file fills in, and the log.
 */
#ifndef QUORUMWIRE_PAXOS_H
#define QUORUMWIRE_PAXOS_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t iid_t;
typedef uint32_t ballot_t;

typedef enum {
	PAXOS_LOG_QUIET = 0,
	PAXOS_LOG_ERROR = 1,
	PAXOS_LOG_INFO = 2,
	PAXOS_LOG_DEBUG = 3
} paxos_log_level;

/* Both but the first mean: what was promised and decided is on disk, synchronously. */
typedef enum {
	PAXOS_MEM_STORAGE = 0,
	PAXOS_LMDB_STORAGE = 1,
	PAXOS_BDB_STORAGE = 2
} paxos_storage_backend;

/*
 * Reading a configuration file sets what stands in it. A program may set fields itself,
 * before it calls an init function. docs/libpaxos.md says which have an effect.
 */
struct paxos_config {
	paxos_log_level verbosity;
	int tcp_nodelay;
	int tcp_reuseaddr;
	int learner_catch_up;
	int proposer_timeout;
	int proposer_preexec_window;
	paxos_storage_backend storage_backend;
	int trash_files;
	int lmdb_sync;
	char *lmdb_env_path;
	size_t lmdb_mapsize;
	int bdb_sync;
	size_t bdb_cachesize;
	char *bdb_env_path;
	char *bdb_db_filename;
};

extern struct paxos_config paxos_config;

/* How many of so many acceptors are more than half. */
int paxos_quorum(int acceptors);

/*
 * A line on standard output, with the time, if paxos_config.verbosity is at least this
 * level. From any thread.
 */
void paxos_log(int level, const char *format, va_list arguments);
void paxos_log_error(const char *format, ...);
void paxos_log_info(const char *format, ...);
void paxos_log_debug(const char *format, ...);

/* Numbers of replicas, acceptors and proposers are less than this. */
#define MAX_N_OF_PROPOSERS 10

#ifdef __cplusplus
}
#endif

#endif
