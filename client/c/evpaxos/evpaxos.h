/*
 * The functions of libpaxos 3, over libevent, on a Paxos deployment of Quorumwire:
 * programs that were written for it are compiled anew, and run. What differs is in
 * docs/libpaxos.md.
 *
 * All functions are called from the thread that runs the event_base, but
 * evpaxos_config_read and what takes its result. Values are delivered from that thread,
 * too, in the order that all processes agree on, each once, numbered from 1.
 */
#ifndef QUORUMWIRE_EVPAXOS_H
#define QUORUMWIRE_EVPAXOS_H

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <sys/types.h>

#include "paxos.h"

#ifdef __cplusplus
extern "C" {
#endif

struct evpaxos_config;
struct evpaxos_replica;
struct evlearner;
struct evacceptor;
struct evproposer;

/*
 * Is given a value with its number. The value is the library's, and is gone when this
 * returns; a 0 stands behind its last byte. It may call all functions but the free
 * function of who delivers.
 */
typedef void (*deliver_function)(unsigned int iid, char *value, size_t size, void *arg);

/*
 * A replica is an acceptor, a proposer and a learner in one; without a function to
 * deliver to, the first two. The init functions return NULL when the configuration file
 * or the id makes no sense, or the ports are in use; the log says more. The event_base
 * is to outlive what they return. NULL may be freed.
 */
struct evpaxos_replica *evpaxos_replica_init(int id, const char *config, deliver_function deliver,
					     void *arg, struct event_base *base);
void evpaxos_replica_free(struct evpaxos_replica *replica);

/* The next value that is delivered is the one behind this number. */
void evpaxos_replica_set_instance_id(struct evpaxos_replica *replica, unsigned iid);

/* No process will ask for values up to this number any more: all forget them. */
void evpaxos_replica_send_trim(struct evpaxos_replica *replica, unsigned iid);

/*
 * Has a value decided, of at most 1,400,831 bytes, which are copied. A value that cannot
 * be taken is dropped, and the log says so. Nobody says what became of it but the
 * learners.
 */
void evpaxos_replica_submit(struct evpaxos_replica *replica, char *value, int size);

/* How many replicas the configuration has. */
int evpaxos_replica_count(struct evpaxos_replica *replica);

/* As of the replica. A learner has no id; there may be any number. */
struct evlearner *evlearner_init(const char *config, deliver_function deliver, void *arg,
				 struct event_base *base);
void evlearner_free(struct evlearner *learner);
void evlearner_set_instance_id(struct evlearner *learner, unsigned iid);

struct evacceptor *evacceptor_init(int id, const char *config, struct event_base *base);
void evacceptor_free(struct evacceptor *acceptor);

/* A proposer asks nobody for instances, so the hint has no effect. */
struct evproposer *evproposer_init(int id, const char *config, struct event_base *base);
void evproposer_free(struct evproposer *proposer);
void evproposer_set_instance_id(struct evproposer *proposer, unsigned iid);

/*
 * Sends a value to a proposer or replica: the bufferevent is a connection to its
 * address. Limits as of evpaxos_replica_submit. Nothing comes back over it.
 */
void paxos_submit(struct bufferevent *proposer, char *value, int size);

/* A configuration, or NULL. Sets paxos_config as the file says. */
struct evpaxos_config *evpaxos_config_read(const char *path);
void evpaxos_config_free(struct evpaxos_config *config);

/* By number; of one that there is not: all 0, and -1. */
int evpaxos_proposer_count(struct evpaxos_config *config);
struct sockaddr_in evpaxos_proposer_address(struct evpaxos_config *config, int id);
int evpaxos_proposer_listen_port(struct evpaxos_config *config, int id);
int evpaxos_acceptor_count(struct evpaxos_config *config);
struct sockaddr_in evpaxos_acceptor_address(struct evpaxos_config *config, int id);
int evpaxos_acceptor_listen_port(struct evpaxos_config *config, int id);

#ifdef __cplusplus
}
#endif

#endif
