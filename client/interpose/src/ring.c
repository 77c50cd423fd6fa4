/* The two rings: turns are taken out of the one, what the program says goes into the other. What
 * the replica writes is checked, so that a fault of it is named and not executed. */
#include "interpose.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t up_to_eight(uint64_t bytes)
{
	return (bytes + 7) & ~7ULL;
}

_Noreturn static void broken(void)
{
	qw_refuse(QW_WHY_BROKEN_RING, qw.given_at);
}

void qw_ring_replica(void)
{
	uint64_t one = 1;

	if (__atomic_load_n(&qw.control->replica_sleeps, __ATOMIC_SEQ_CST) &&
	    __atomic_exchange_n(&qw.control->replica_sleeps, 0, __ATOMIC_SEQ_CST) &&
	    syscall(SYS_write, qw.replica_door, &one, sizeof(one)) < 0)
		return; /* its count is at the most there is: it is awake */
}

void qw_count_unread(int64_t more)
{
	uint64_t unread = qw.control->unread_bytes + (uint64_t)more;

	__atomic_store_n(&qw.control->unread_bytes, unread, __ATOMIC_RELAXED);
}

/* The next record that is no padding; NULL: none is there. */
static const struct qw_record *next_record(uint64_t head)
{
	uint64_t size = qw.control->given_bytes;

	while (qw.given_at != head) {
		uint64_t place = qw.given_at & (size - 1), room = size - place;
		const struct qw_record *record = (const struct qw_record *)(qw.given + place);

		if (head - qw.given_at > size)
			broken();
		if (room >= sizeof(*record) && record->kind != QW_GIVEN_PAD) {
			if (record->bytes > QW_RECORD_BYTES_MAX ||
			    sizeof(*record) + up_to_eight(record->bytes) > room)
				broken();
			return record;
		}
		qw.given_at += room;
	}
	return NULL;
}

static void step_over(const struct qw_record *record)
{
	qw.given_at += sizeof(*record) + up_to_eight(record->bytes);
}

static void keep(struct qw_object *object, const void *bytes, size_t count)
{
	if (object->at == object->end)
		object->at = object->end = 0;
	if (object->end + count > object->room && object->at > 0) {
		memmove(object->bytes, object->bytes + object->at, object->end - object->at);
		object->end -= object->at;
		object->at = 0;
	}
	if (object->end + count > object->room) {
		size_t room = (object->end + count) * 2;
		uint8_t *bigger = realloc(object->bytes, room);

		if (!bigger)
			qw_refuse(QW_WHY_OUT_OF_MEMORY, object->connection);
		object->bytes = bigger;
		object->room = room;
	}
	memcpy(object->bytes + object->end, bytes, count);
	object->end += count;
	qw_count_unread((int64_t)count);
}

static void take_accept(const struct qw_record *record)
{
	const struct qw_accept *accept = (const struct qw_accept *)(record + 1);
	struct qw_object *listener, *object;

	if (record->bytes != sizeof(*accept) || qw_connection(record->connection))
		broken();
	listener = qw_listener_for(&accept->own, QW_LISTENER);
	if (!listener) {
		/* It has stopped to listen. */
		qw_say(QW_SAID_CLOSE, record->connection, NULL, 0);
		return;
	}
	object = qw_new_object(QW_STREAM);
	object->connection = record->connection;
	object->peer = accept->peer;
	object->own = accept->own;
	qw_of_family(&object->peer, listener->own.is_ipv6);
	qw_of_family(&object->own, listener->own.is_ipv6);
	qw_add_connection(object);
	if (listener->last_waiting)
		listener->last_waiting->next_waiting = object;
	else
		listener->first_waiting = object;
	listener->last_waiting = object;
	qw_has_news_of(listener, QW_READ_EVENTS);
}

static void take_datagram(const struct qw_record *record)
{
	const struct qw_accept *accept = (const struct qw_accept *)(record + 1);
	struct qw_packet packet = { .connection = record->connection };
	struct qw_object *object;

	if (record->bytes < sizeof(*accept))
		broken();
	object = qw_listener_for(&accept->own, QW_DATAGRAMS);
	if (!object)
		return; /* as the network would: it is lost */
	packet.peer = accept->peer;
	if (object->has_peer && (packet.peer.port != object->peer.port || memcmp(packet.peer.ip, object->peer.ip, 16)))
		return;
	packet.own = accept->own;
	qw_of_family(&packet.peer, object->own.is_ipv6);
	qw_of_family(&packet.own, object->own.is_ipv6);
	packet.bytes = record->bytes - (uint32_t)sizeof(*accept);
	if (object->end - object->at + sizeof(packet) + packet.bytes > QW_DATAGRAMS_BYTES_MAX) {
		__atomic_add_fetch(&qw.control->lost_datagrams, 1, __ATOMIC_RELAXED);
		return;
	}
	keep(object, &packet, sizeof(packet));
	keep(object, accept + 1, packet.bytes);
	qw_has_news_of(object, QW_READ_EVENTS);
}

/* The kernel says whether a handler has run: then whoever waits is interrupted. */
void qw_deliver(int number, int code, union sigval value)
{
	siginfo_t info = { .si_signo = number, .si_code = code };
	struct timespec none = { 0 };
	struct sigaction action;
	sigset_t all, before;

	if (qw_leaves_signal(number, code, value))
		return;
	sigaction(number, NULL, &action);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	info.si_pid = getpid();
	info.si_value = value;
	syscall(SYS_rt_tgsigqueueinfo, qw.process, syscall(SYS_gettid), number, &info);
	if (qw_plain_poll(NULL, 0, &none, qw_mask ? qw_mask : &before) < 0) {
		qw.interrupted = true;
		qw.restarts = action.sa_flags & SA_RESTART;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void take_event(const struct qw_record *record)
{
	struct qw_object *object;

	switch ((enum qw_given)record->kind) {
	case QW_GIVEN_ACCEPT:
		take_accept(record);
		return;
	case QW_GIVEN_DATAGRAM:
		take_datagram(record);
		return;
	case QW_GIVEN_SIGNAL:
		qw_deliver((int)record->connection, SI_USER, (union sigval){ 0 });
		return;
	case QW_GIVEN_DATA:
	case QW_GIVEN_END:
	case QW_GIVEN_RESET:
		break;
	case QW_GIVEN_PAD:
	case QW_GIVEN_TURN:
		broken();
	}
	object = qw_connection(record->connection);
	if (!object)
		return; /* the program has closed it */
	if (record->kind == QW_GIVEN_DATA && !object->reset)
		keep(object, record + 1, record->bytes);
	if (record->kind == QW_GIVEN_END)
		object->ended = true;
	if (record->kind == QW_GIVEN_RESET)
		object->reset = true;
	qw_has_news_of(object, record->kind == QW_GIVEN_DATA ? QW_READ_EVENTS : ~0U);
}

/* False: none is there. */
bool qw_take_turn(void)
{
	uint64_t head = __atomic_load_n(&qw.control->given_head, __ATOMIC_ACQUIRE);
	const struct qw_record *record = next_record(head);
	const struct qw_turn *turn;
	uint32_t events;

	if (!record)
		return false;
	turn = (const struct qw_turn *)(record + 1);
	if (record->kind != QW_GIVEN_TURN || record->bytes != sizeof(*turn) || record->turn <= qw.turn)
		broken();
	if (qw.turn == 0)
		qw_forbid_children();
	qw.turn = record->turn;
	qw.chance_at = 0;
	if (turn->log_time_ns > qw.now_ns)
		qw.now_ns = turn->log_time_ns;
	qw.wall_ahead_ns = turn->wall_ns - turn->log_time_ns;
	events = turn->events;
	step_over(record);
	while (events-- > 0) {
		record = next_record(head);
		if (!record)
			broken();
		take_event(record);
		step_over(record);
	}
	__atomic_store_n(&qw.control->given_tail, qw.given_at, __ATOMIC_RELEASE);
	qw_ring_replica();
	return true;
}

/* Waits until so much may be written. */
static uint64_t room_for(uint64_t bytes)
{
	uint64_t head = qw.control->said_head, size = qw.control->said_bytes;

	while (head + bytes - __atomic_load_n(&qw.control->said_tail, __ATOMIC_ACQUIRE) > size) {
		struct timespec short_time = { .tv_nsec = 20000 };

		qw_ring_replica();
		syscall(SYS_nanosleep, &short_time, NULL);
	}
	return head;
}

void qw_say_in_parts(enum qw_said kind, uint64_t connection, const struct iovec *parts, int count)
{
	uint64_t size = qw.control->said_bytes, bytes = 0, need, head, room;
	struct qw_record *record;
	uint8_t *to;

	for (int part = 0; part < count; part++)
		bytes += parts[part].iov_len;
	need = sizeof(*record) + up_to_eight(bytes);
	room = size - (qw.control->said_head & (size - 1));
	head = room_for(need + (room < need ? room : 0));
	if (room < need) {
		if (room >= sizeof(*record)) {
			record = (struct qw_record *)(qw.said + (head & (size - 1)));
			*record = (struct qw_record){ .kind = QW_SAID_PAD };
		}
		head += room;
	}
	record = (struct qw_record *)(qw.said + (head & (size - 1)));
	*record = (struct qw_record){
		.kind = kind, .bytes = (uint32_t)bytes, .connection = connection, .turn = qw.turn
	};
	to = (uint8_t *)(record + 1);
	for (int part = 0; part < count; part++) {
		memcpy(to, parts[part].iov_base, parts[part].iov_len);
		to += parts[part].iov_len;
	}
	memset(to, 0, up_to_eight(bytes) - bytes);
	__atomic_store_n(&qw.control->said_head, head + need, __ATOMIC_SEQ_CST);
	qw_ring_replica();
}

void qw_say(enum qw_said kind, uint64_t connection, const void *bytes, size_t count)
{
	struct iovec part = { (void *)(uintptr_t)bytes, count };

	qw_say_in_parts(kind, connection, &part, count > 0);
}
