/* The functions of evpaxos.h: processes on an event_base. */
#include "internal.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Values that are delivered before other events of the loop have their turn. */
#define DELIVERIES_MAX 64

/* Opens one: the program's signals are handled by its own thread, as in libpaxos. */
static struct qw_node *opened(struct qw_node *(*open)(const struct qw_process *),
			      const struct qw_process *options)
{
	struct qw_node *node;
	sigset_t all, before;

	sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
		return NULL;
	node = open(options);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return node;
}

/* Any of the four. */
struct process {
	struct qw_node *node;
	struct event *event;
	deliver_function deliver;
	void *arg;
	int count;
};

struct evpaxos_replica {
	struct process process;
};

struct evlearner {
	struct process process;
};

struct evacceptor {
	struct process process;
};

struct evproposer {
	struct process process;
};

static void log_line(int level, const char *text)
{
	switch (level) {
	case PAXOS_LOG_ERROR:
		paxos_log_error("%s", text);
		break;
	case PAXOS_LOG_INFO:
		paxos_log_info("%s", text);
		break;
	default:
		paxos_log_debug("%s", text);
	}
}

static void on_values(evutil_socket_t descriptor, short what, void *arg)
{
	struct process *process = arg;
	uint32_t number;
	char *value;
	size_t size;
	int count;

	(void)descriptor;
	(void)what;
	/* If there are more, the descriptor stays readable. */
	for (count = 0; count < DELIVERIES_MAX; count++) {
		if (!qw_evpaxos_take(process->node, &number, &value, &size))
			return;
		process->deliver(number, value, size, process->arg);
	}
}

static void end(struct process *process)
{
	if (process->event)
		event_free(process->event);
	qw_evpaxos_close(process->node);
	free(process);
}

/* Deliveries, if somebody wants any, begin with the loop. */
static struct process *begin(struct qw_node *node, int count, deliver_function deliver, void *arg,
			     struct event_base *base)
{
	struct process *process;

	if (!node)
		return NULL;
	process = calloc(1, sizeof(*process));
	if (!process) {
		qw_evpaxos_close(node);
		return NULL;
	}
	process->node = node;
	process->count = count;
	process->deliver = deliver;
	process->arg = arg;
	if (!deliver)
		return process;
	process->event = event_new(base, qw_evpaxos_descriptor(node), EV_READ | EV_PERSIST,
				   on_values, process);
	if (!process->event || event_add(process->event, NULL) != 0) {
		paxos_log_error("libevent refuses an event");
		end(process);
		return NULL;
	}
	return process;
}

/* The file, and what all processes take from it. */
static struct evpaxos_config *configured(const char *path, struct qw_process *process)
{
	struct evpaxos_config *config;

	qw_evpaxos_log_to(log_line);
	config = evpaxos_config_read(path);
	memset(process, 0, sizeof(*process));
	if (!config)
		return NULL;
	process->acceptors = config->acceptors;
	process->acceptor_count = (size_t)config->acceptor_count;
	process->catch_up = paxos_config.learner_catch_up;
	process->nodelay = paxos_config.tcp_nodelay;
	return config;
}

static struct process *begin_host(int id, const char *path, deliver_function deliver, void *arg,
				  struct event_base *base)
{
	struct qw_process options;
	struct evpaxos_config *config;
	struct qw_node *node = NULL;
	const char *env = NULL;
	char dir[PATH_MAX];
	int length = 0, count;

	config = configured(path, &options);
	if (!config)
		return NULL;
	if (paxos_config.storage_backend == PAXOS_LMDB_STORAGE)
		env = paxos_config.lmdb_env_path;
	else if (paxos_config.storage_backend == PAXOS_BDB_STORAGE)
		env = paxos_config.bdb_env_path;
	if (env) {
		length = snprintf(dir, sizeof(dir), "%s_%d", env, id);
		options.dir = dir;
	}
	options.number = id;
	options.trash = paxos_config.trash_files;
	count = config->acceptor_count;
	if (length < 0 || (size_t)length >= sizeof(dir))
		paxos_log_error("the path of the storage is too long");
	else
		node = opened(qw_evpaxos_host, &options);
	evpaxos_config_free(config);
	return begin(node, count, deliver, arg, base);
}

struct evpaxos_replica *evpaxos_replica_init(int id, const char *config, deliver_function deliver,
					     void *arg, struct event_base *base)
{
	return (struct evpaxos_replica *)begin_host(id, config, deliver, arg, base);
}

void evpaxos_replica_free(struct evpaxos_replica *replica)
{
	if (replica)
		end(&replica->process);
}

void evpaxos_replica_set_instance_id(struct evpaxos_replica *replica, unsigned iid)
{
	qw_evpaxos_go_on_behind(replica->process.node, iid);
}

void evpaxos_replica_send_trim(struct evpaxos_replica *replica, unsigned iid)
{
	qw_evpaxos_trim(replica->process.node, iid);
}

void evpaxos_replica_submit(struct evpaxos_replica *replica, char *value, int size)
{
	if (size < 0 || (!value && size > 0)) {
		paxos_log_error("a value of %d bytes is not taken", size);
		return;
	}
	qw_evpaxos_submit(replica->process.node, value, (size_t)size);
}

int evpaxos_replica_count(struct evpaxos_replica *replica)
{
	return replica->process.count;
}

struct evlearner *evlearner_init(const char *path, deliver_function deliver, void *arg,
				 struct event_base *base)
{
	struct qw_process options;
	struct evpaxos_config *config = configured(path, &options);
	struct qw_node *node;

	if (!config)
		return NULL;
	node = opened(qw_evpaxos_learner, &options);
	evpaxos_config_free(config);
	return (struct evlearner *)begin(node, 0, deliver, arg, base);
}

void evlearner_free(struct evlearner *learner)
{
	if (learner)
		end(&learner->process);
}

void evlearner_set_instance_id(struct evlearner *learner, unsigned iid)
{
	qw_evpaxos_go_on_behind(learner->process.node, iid);
}

struct evacceptor *evacceptor_init(int id, const char *config, struct event_base *base)
{
	return (struct evacceptor *)begin_host(id, config, NULL, NULL, base);
}

void evacceptor_free(struct evacceptor *acceptor)
{
	if (acceptor)
		end(&acceptor->process);
}

struct evproposer *evproposer_init(int id, const char *path, struct event_base *base)
{
	struct qw_process options;
	struct evpaxos_config *config = configured(path, &options);
	struct qw_node *node = NULL;

	if (!config)
		return NULL;
	if (id < 0 || id >= config->proposer_count) {
		paxos_log_error("There is no proposer %d", id);
	} else {
		options.own = config->proposers[id];
		options.number = id;
		node = opened(qw_evpaxos_proposer, &options);
	}
	evpaxos_config_free(config);
	return (struct evproposer *)begin(node, 0, NULL, NULL, base);
}

void evproposer_free(struct evproposer *proposer)
{
	if (proposer)
		end(&proposer->process);
}

void evproposer_set_instance_id(struct evproposer *proposer, unsigned iid)
{
	(void)proposer;
	(void)iid;
}

void paxos_submit(struct bufferevent *proposer, char *value, int size)
{
	uint8_t head[QW_SUBMIT_HEAD_BYTES];

	if (size < 0 || (!value && size > 0) || !qw_evpaxos_submit_head((size_t)size, head)) {
		paxos_log_error("a value of %d bytes is not sent", size);
		return;
	}
	if (bufferevent_write(proposer, head, sizeof(head)) != 0 ||
	    (size > 0 && bufferevent_write(proposer, value, (size_t)size) != 0))
		paxos_log_error("a value of %d bytes is not sent: no memory", size);
}
