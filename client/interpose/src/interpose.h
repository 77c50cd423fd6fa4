/* What the parts of the preloaded library share. The program that is served has no socket of a
 * client: what clients send comes in turns out of a ring (qw_rings.h), and what it says goes
 * into another. Nothing here is locked: one thread takes turns (alone/), or one at a time does
 * (serial/), and the library is built twice. Descriptors that are not virtual go to the C
 * library untouched. */
#ifndef QW_INTERPOSE_H
#define QW_INTERPOSE_H

#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include "qw_rings.h"

/* Calls that stand in front of the C library's. */
#define QW_CALL __attribute__((visibility("default")))

/* The variable that names `kept`. */
#define QW_ENVIRONMENT "QUORUMWIRE_INTERPOSE"
/* The memory, the doorbells and the library. */
#define QW_KEPT_COUNT 4

/* Most descriptors; those beyond are never virtual. */
#define QW_DESCRIPTORS_MAX (1 << 20)

/* No deadline. */
#define QW_NEVER UINT64_MAX

#define QW_SECOND_NS 1000000000ULL
#define QW_MILLISECOND_NS 1000000LL

enum qw_object_kind {
	QW_BOUND, /* a TCP socket with a name that does not listen yet */
	QW_LISTENER,
	QW_STREAM,
	QW_DATAGRAMS,
	QW_TIMER,
	QW_RANDOM,
	QW_EPOLL,
};

struct qw_watch;

/* What is new when something can be read. */
#define QW_READ_EVENTS (EPOLLIN | EPOLLPRI | EPOLLRDNORM | EPOLLRDBAND)

/* What a virtual descriptor stands for. Descriptors made by dup() share one. */
struct qw_object {
	enum qw_object_kind kind;
	unsigned int descriptors;
	struct qw_watch *watches;
	struct qw_endpoint own;
	struct qw_endpoint peer;
	/* A stream, or a client of a socket for datagrams. */
	uint64_t connection;
	/* Bytes that are not read yet; of datagrams, each behind a `struct qw_packet`. */
	uint8_t *bytes;
	size_t at, end, room;
	bool ended, reset, reported_reset, shut_read, shut_write;
	/* As SO_RCVLOWAT says; 0: 1. */
	uint32_t least;
	/* How often the program has looked for something in this turn, in vain. */
	unsigned int looks;
	uint64_t looked_in;
	/* How often something has become of it. */
	uint64_t news;
	/* Accepted and not taken yet: a listener's queue, and the next in it. */
	struct qw_object *first_waiting, *last_waiting, *next_waiting;
	/* In the table of connections, or of listeners. */
	struct qw_object *next;
	/* Of a socket with a name: as `SO_REUSEADDR` and `SO_REUSEPORT` allow. */
	bool may_share, shares_port, is_v6only;
	/* Options that those inherit who are accepted: bits of `inherited` in sockets.c. */
	uint32_t inherited;
	/* A socket for datagrams that speaks with `peer` only; and what it tells beside a datagram:
	 * bits of `told` in controls.c. */
	bool has_peer;
	uint32_t told;
	/* Of an epoll instance. */
	struct qw_epoll *epoll;
	/* Of a timer. */
	uint64_t expires_ns, every_ns, expired;
	clockid_t clock;
};

/* Of a datagram, before its bytes. */
struct qw_packet {
	uint64_t connection;
	struct qw_endpoint peer, own;
	uint32_t bytes;
	uint32_t reserved;
};

/* An object in an epoll instance, under one of its descriptors. */
struct qw_watch {
	struct qw_object *object;
	struct qw_epoll *epoll;
	int descriptor;
	uint32_t events;
	epoll_data_t data;
	bool is_ready, has_news;
	struct qw_watch *next_of_object;
	struct qw_watch *next_ready, *previous_ready;
	struct qw_watch *next_of_epoll, *previous_of_epoll;
};

/* What an epoll instance of the kernel's has beside. */
struct qw_epoll {
	struct qw_object *object;
	bool has_door, has_plain, has_nested;
	/* Waits in a row in which the kernel was not asked. */
	unsigned int passed_over;
	struct qw_watch *watches;
	struct qw_watch *first_ready, *last_ready;
};

struct qw_state {
	/* Whether anything is virtual; -1 before the first call. */
	int on;
	struct qw_control *control;
	uint8_t *given, *said;
	uint64_t given_at;
	/* The doorbells: the program's and the replica's. */
	int door, replica_door;
	/* What the program has inherited, with the doorbells. */
	int kept[QW_KEPT_COUNT];
	int process, thread;
	/* Who made this process, with which it ends; 0: nobody known. And who makes another. */
	int parent, maker;
	/* The turn that is carried out. */
	uint64_t turn;
	uint64_t now_ns, wall_ahead_ns;
	uint64_t chance_at;
	unsigned int idle_waits;
	/* The turn has run a handler of a signal; one after which calls go on. */
	bool interrupted, restarts;
};

extern struct qw_state qw;
/* The signal mask of a wait that has one of its own. */
extern _Thread_local const sigset_t *qw_mask;

/* state.c */
void qw_start(void);
/* This process is served. */
bool qw_is_on(void);
/* And this thread may move what all replicas have in common: the log's time, chance, turns. */
bool qw_is_in_turn(void);
_Noreturn void qw_refuse(enum qw_why why, uint64_t detail);
/* One that the program has not opened. */
bool qw_is_kept(int descriptor);
/* The program gives something else this number. */
void qw_keep_away(int descriptor);

/* Memory that is not of the program's heap; NULL: there is none. */
void *qw_pages(size_t bytes);

/* process.c */
void qw_forbid_children(void);
/* The thread that calls is the program's so manieth; 0: it ends. */
void qw_number_thread(unsigned int number);

/* real.c: the C library's calls. */
void *qw_real(const char *name);
/* The C library's own. */
#define QW_REAL(name) \
	({ \
		static __typeof__(&name) real_; \
		if (!real_) \
			real_ = (__typeof__(&name))qw_real(#name); \
		real_; \
	})
/* Conditions have had two forms; this is the one of today. */
void *qw_real_condition(const char *name);
#define QW_REAL_CONDITION(name) \
	({ \
		static __typeof__(&name) real_; \
		if (!real_) \
			real_ = (__typeof__(&name))qw_real_condition(#name); \
		real_; \
	})

/* descriptors.c */
struct qw_object *qw_object_of(int descriptor);
/* NULL: it is none, or, with `make`, errno says why it is none. */
struct qw_epoll *qw_epoll_of(int descriptor, bool make);
struct qw_object *qw_new_object(enum qw_object_kind kind);
void qw_set_object(int descriptor, struct qw_object *object);
/* The descriptor stands for nothing any more; the kernel still has it. */
void qw_drop_descriptor(int descriptor);
/* One descriptor fewer stands for it. */
void qw_let_go(struct qw_object *object);
bool qw_does_block(int descriptor);
struct qw_object *qw_connection(uint64_t number);
void qw_add_connection(struct qw_object *object);
/* Of sockets with a name. */
void qw_add_port(struct qw_object *object);
bool qw_is_taken(const struct qw_object *wanted);
bool qw_somebody_listens(const struct qw_object *bound);
/* Nobody comes to it any more, and who has come is sent away. */
void qw_listen_no_more(struct qw_object *listener);
void qw_forget_watch(struct qw_watch *watch);
void qw_say_listen(const struct qw_object *object, enum qw_said kind);
struct qw_object *qw_listener_for(const struct qw_endpoint *own, enum qw_object_kind kind);

/* ring.c */
bool qw_take_turn(void);
/* A signal, as if the kernel had sent it. */
void qw_deliver(int number, int code, union sigval value);
void qw_ring_replica(void);
void qw_count_unread(int64_t more);
void qw_say(enum qw_said kind, uint64_t connection, const void *bytes, size_t count);
void qw_say_in_parts(enum qw_said kind, uint64_t connection, const struct iovec *parts, int count);

/* wait.c */
enum qw_woken { QW_WOKEN_TURN, QW_WOKEN_KERNEL, QW_WOKEN_SIGNAL, QW_WOKEN_LATE };
/* The events of poll() that an object has now. */
uint32_t qw_events_of(const struct qw_object *object);
void qw_has_news(struct qw_object *object);
/* Only of these events. */
void qw_has_news_of(struct qw_object *object, uint32_t news);
bool qw_has_ready(const struct qw_epoll *epoll);
void qw_unready(struct qw_watch *watch);
bool qw_has_turn(void);
/* The kernel's ppoll(), at which no thread is cancelled. */
int qw_plain_poll(struct pollfd *wanted, nfds_t count, const struct timespec *wait, const sigset_t *mask);
bool qw_go_to_turn(void);
void qw_say_deadline(uint64_t deadline_ns);
void qw_relax(void);

/* What a thread waits for, until the log's time comes to `deadline_ns`. */
struct qw_wait {
	uint64_t deadline_ns;
	void *what;
	/* Asks for what the kernel has of it, for so long: how much, or -1 if a signal has come. */
	int (*kernel)(void *what, int wait_ms);
	/* Of serial/: whether something virtual is there; and the kernel's descriptors, of which
	 * `room` are written: how many there are. */
	bool (*has)(const void *what);
	nfds_t (*descriptors)(const void *what, struct pollfd *to, nfds_t room);
};

/* threads.c of alone/ and serial/ */
/* Only a thread whose turn it is may use what is virtual. */
void qw_enter(void);
bool qw_is_serving_thread(void);
/* Waits until there may be something. `QW_WOKEN_LATE`: the log's time came to the deadline. */
enum qw_woken qw_wait_for(const struct qw_wait *wait);
/* Waits until something has become of the object. */
enum qw_woken qw_wait(struct qw_object *object, uint64_t deadline_ns);

/* How long a call waits: begins with zeros. */
struct qw_patience {
	uint64_t deadline_ns;
	int over;
};
/* Nothing is there for the call. Whether to look again; otherwise errno says why not. */
bool qw_look_again(int descriptor, struct qw_object *object, bool may_wait, struct qw_patience *patience);

/* controls.c */
void qw_look_at_controls(int descriptor, struct qw_object *object);
/* What the program is told beside a datagram. */
void qw_put_controls(const struct qw_object *object, struct msghdr *message, const struct qw_packet *packet);
/* The address from which the program wants it to be sent. */
void qw_take_source(const struct msghdr *message, struct qw_endpoint *own);

/* clock.c */
bool qw_is_time(const struct timespec *time);
struct timespec qw_timespec(uint64_t ns);
uint64_t qw_as_ns(const struct timespec *time);
/* Of a wait; NULL: -1, without end. */
int64_t qw_wait_ns(const struct timespec *wait);
/* Whether a clock shows the time of day. */
bool qw_is_wall(clockid_t clock);
/* What the log's time is when a clock shows `at`. */
uint64_t qw_log_time_at(const struct timespec *at, clockid_t clock);
/* The log's time at which a timer ends; 0: it is none. */
uint64_t qw_end_of(const struct timespec *at, bool is_absolute, clockid_t clock);
/* A wait for the kernel's descriptors only has ended with `found`. If it was its time that is over,
 * that has passed. */
int qw_slept(int found, int64_t wait_ns);
uint64_t qw_look_at_clock(void);
/* When the next timer ends; QW_NEVER: none does. */
uint64_t qw_next_timer(void);
void qw_look_at_timers(void);
void qw_forget_timer(const struct qw_object *timer);

/* plain.c: on the kernel's descriptors. */
ssize_t qw_write_plain(int descriptor, const struct iovec *parts, int count);
ssize_t qw_send_plain(int descriptor, const struct msghdr *message, int flags);
ssize_t qw_send_file_plain(int descriptor, int file, off_t *at, size_t count);

/* transfer.c */
/* The kernel's limit. */
#define QW_PARTS_MAX 1024
size_t qw_bytes_of(const struct iovec *parts, int count);
/* The error that is reported once; 0: none. */
int qw_take_error(struct qw_object *object);

/* alarms.c */
uint64_t qw_next_alarm(void);
void qw_look_at_alarms(void);

/* chance.c */
void qw_chance(void *bytes, size_t count);

/* sockets.c */
bool qw_is_socket(const struct qw_object *object);
bool qw_has_option(int descriptor, int level, int option);
/* False: it is of another kind, or has no port. */
bool qw_endpoint_of(const struct sockaddr *address, socklen_t length, struct qw_endpoint *endpoint);
/* The program wanted something of another server. */
void qw_tell_outbound(uint32_t port);
/* The process ends with who made it, from now on. */
void qw_end_with_parent(void);
/* It may connect to other servers. */
bool qw_may_leave(void);
bool qw_is_elsewhere(const struct sockaddr *address, socklen_t length);
void qw_of_family(struct qw_endpoint *endpoint, bool is_ipv6);
void qw_put_address(const struct qw_endpoint *from, struct sockaddr *address, socklen_t *length);

#include "order.h"

#endif
