/*
 * What the files here share, and what stands behind them: client/c/src/evpaxos/ffi.rs.
 * Programs do not see it.
 */
#ifndef QUORUMWIRE_EVPAXOS_INTERNAL_H
#define QUORUMWIRE_EVPAXOS_INTERNAL_H

#include "evpaxos.h"

#define QW_SUBMIT_HEAD_BYTES 12

/* In the order of the network, and of the host. */
struct qw_address {
	uint8_t ip[4];
	uint16_t port;
};

struct evpaxos_config {
	int proposer_count;
	int acceptor_count;
	struct qw_address proposers[MAX_N_OF_PROPOSERS];
	struct qw_address acceptors[MAX_N_OF_PROPOSERS];
};

/* How a process takes part. */
struct qw_process {
	const struct qw_address *acceptors;
	size_t acceptor_count;
	struct qw_address own; /* a proposer's */
	int number;
	const char *dir; /* an acceptor's, if it keeps anything */
	int trash;
	int catch_up;
	int nodelay;
};

struct qw_node;
typedef void (*qw_log_fn)(int level, const char *text);

void qw_evpaxos_log_to(qw_log_fn hook);
struct qw_node *qw_evpaxos_host(const struct qw_process *process);
struct qw_node *qw_evpaxos_learner(const struct qw_process *process);
struct qw_node *qw_evpaxos_proposer(const struct qw_process *process);
void qw_evpaxos_close(struct qw_node *node);
int qw_evpaxos_descriptor(const struct qw_node *node);
int qw_evpaxos_take(struct qw_node *node, uint32_t *number, char **value, size_t *size);
void qw_evpaxos_submit(const struct qw_node *node, const char *value, size_t size);
void qw_evpaxos_go_on_behind(struct qw_node *node, uint32_t number);
void qw_evpaxos_trim(const struct qw_node *node, uint32_t number);
int qw_evpaxos_submit_head(size_t size, uint8_t head[QW_SUBMIT_HEAD_BYTES]);

#endif
