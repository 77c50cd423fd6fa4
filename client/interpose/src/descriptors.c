/* Which descriptors are virtual, and what they stand for. */
#include "interpose.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* Untouched pages of these take no memory. */
static struct qw_object *objects[QW_DESCRIPTORS_MAX];

#define CONNECTION_LISTS 65536
static struct qw_object *connections[CONNECTION_LISTS];
/* Sockets with a name: bound, listening, or for datagrams. */
static struct qw_object *ports;

static bool may_be_virtual(int descriptor)
{
	if (qw.on < 0)
		qw_start();
	return qw.on > 0 && descriptor >= 0 && descriptor < QW_DESCRIPTORS_MAX;
}

struct qw_object *qw_object_of(int descriptor)
{
	return may_be_virtual(descriptor) ? objects[descriptor] : NULL;
}

struct qw_epoll *qw_epoll_of(int descriptor, bool make)
{
	struct qw_object *object = qw_object_of(descriptor);

	if (!may_be_virtual(descriptor))
		return NULL;
	if (object)
		return object->kind == QW_EPOLL ? object->epoll : NULL;
	/* The kernel knows which ones are: the doorbell is in none that was not used here. */
	if (!make || QW_REAL(epoll_ctl)(descriptor, EPOLL_CTL_DEL, qw.door, NULL) == 0 || errno != ENOENT)
		return NULL;
	object = qw_new_object(QW_EPOLL);
	object->epoll = calloc(1, sizeof(*object->epoll));
	if (!object->epoll)
		qw_refuse(QW_WHY_OUT_OF_MEMORY, 0);
	object->epoll->object = object;
	qw_set_object(descriptor, object);
	return object->epoll;
}

struct qw_object *qw_new_object(enum qw_object_kind kind)
{
	struct qw_object *object = calloc(1, sizeof(*object));

	if (!object)
		qw_refuse(QW_WHY_OUT_OF_MEMORY, 0);
	object->kind = kind;
	return object;
}

void qw_set_object(int descriptor, struct qw_object *object)
{
	if (descriptor < 0 || descriptor >= QW_DESCRIPTORS_MAX)
		qw_refuse(QW_WHY_OUT_OF_MEMORY, (uint64_t)descriptor);
	objects[descriptor] = object;
	object->descriptors++;
}

static struct qw_object **list_of(uint64_t number)
{
	return &connections[(number * 0x9e3779b97f4a7c15ULL) >> 48];
}

struct qw_object *qw_connection(uint64_t number)
{
	struct qw_object *object = *list_of(number);

	while (object && object->connection != number)
		object = object->next;
	return object;
}

static void add(struct qw_object **list, struct qw_object *object)
{
	object->next = *list;
	*list = object;
}

static void take_out(struct qw_object **list, const struct qw_object *object)
{
	while (*list && *list != object)
		list = &(*list)->next;
	if (*list)
		*list = object->next;
}

void qw_add_connection(struct qw_object *object)
{
	add(list_of(object->connection), object);
}

static bool is_any(const struct qw_endpoint *at)
{
	static const uint8_t mapped[16] = { [10] = 0xff, [11] = 0xff };
	static const uint8_t zero[16];

	return !memcmp(at->ip, zero, 16) || !memcmp(at->ip, mapped, 16);
}

/* How well a listener suits who has connected to `own`; 0: not at all. */
static int suits(const struct qw_object *listener, const struct qw_endpoint *own)
{
	if (listener->own.port != own->port)
		return 0;
	if (!memcmp(listener->own.ip, own->ip, 16))
		return 4;
	if (is_any(&listener->own))
		return listener->own.is_ipv6 == own->is_ipv6 ? 3 : 2;
	return 1;
}

struct qw_object *qw_listener_for(const struct qw_endpoint *own, enum qw_object_kind kind)
{
	struct qw_object *best = NULL;

	for (struct qw_object *one = ports; one; one = one->next) {
		if (one->kind == kind && suits(one, own) && (!best || suits(one, own) > suits(best, own)))
			best = one;
	}
	return best;
}

void qw_add_port(struct qw_object *object)
{
	add(&ports, object);
}

/* Whether both could be meant by who comes. */
static bool overlap(const struct qw_object *one, const struct qw_object *other)
{
	const struct qw_object *newer = one->own.is_ipv6 ? one : other;

	if (one->own.port != other->own.port)
		return false;
	if (!memcmp(one->own.ip, other->own.ip, 16))
		return true;
	if (one->own.is_ipv6 == other->own.is_ipv6)
		return is_any(&one->own) || is_any(&other->own);
	return is_any(&newer->own) && !newer->is_v6only;
}

bool qw_is_taken(const struct qw_object *wanted)
{
	for (struct qw_object *one = ports; one; one = one->next) {
		if ((one->kind == QW_DATAGRAMS) != (wanted->kind == QW_DATAGRAMS) || !overlap(one, wanted))
			continue;
		if (!wanted->may_share || !one->may_share || (one->kind == QW_LISTENER && !one->shares_port))
			return true;
	}
	return false;
}

bool qw_somebody_listens(const struct qw_object *bound)
{
	for (struct qw_object *one = ports; one; one = one->next) {
		if (one->kind == QW_LISTENER && overlap(one, bound) &&
		    !(one->shares_port && bound->shares_port))
			return true;
	}
	return false;
}

void qw_forget_watch(struct qw_watch *watch)
{
	struct qw_watch **link = &watch->object->watches;

	while (*link != watch)
		link = &(*link)->next_of_object;
	*link = watch->next_of_object;
	qw_unready(watch);
	if (watch->previous_of_epoll)
		watch->previous_of_epoll->next_of_epoll = watch->next_of_epoll;
	else
		watch->epoll->watches = watch->next_of_epoll;
	if (watch->next_of_epoll)
		watch->next_of_epoll->previous_of_epoll = watch->previous_of_epoll;
	free(watch);
}

void qw_say_listen(const struct qw_object *object, enum qw_said kind)
{
	struct qw_listen listen = { .at = object->own, .is_datagrams = object->kind == QW_DATAGRAMS };

	qw_say(kind, 0, &listen, sizeof(listen));
}

static void end(struct qw_object *object)
{
	switch (object->kind) {
	case QW_LISTENER:
		qw_listen_no_more(object);
		take_out(&ports, object);
		break;
	case QW_DATAGRAMS:
		take_out(&ports, object);
		if (qw.on == 1)
			qw_say_listen(object, QW_SAID_UNLISTEN);
		break;
	case QW_STREAM:
		if (qw.on == 1) {
			qw_count_unread(-(int64_t)(object->end - object->at));
			qw_say(QW_SAID_CLOSE, object->connection, NULL, 0);
		}
		take_out(list_of(object->connection), object);
		break;
	case QW_TIMER:
		qw_forget_timer(object);
		break;
	case QW_BOUND:
		take_out(&ports, object);
		break;
	case QW_EPOLL:
		while (object->epoll->watches)
			qw_forget_watch(object->epoll->watches);
		free(object->epoll);
		break;
	case QW_RANDOM:
		break;
	}
	while (object->watches)
		qw_forget_watch(object->watches);
	free(object->bytes);
	free(object);
}

void qw_listen_no_more(struct qw_object *listener)
{
	struct qw_object *waiting;

	while ((waiting = listener->first_waiting)) {
		listener->first_waiting = waiting->next_waiting;
		end(waiting);
	}
	listener->last_waiting = NULL;
	listener->kind = QW_BOUND;
	if (qw.on == 1)
		qw_say_listen(listener, QW_SAID_UNLISTEN);
}

void qw_let_go(struct qw_object *object)
{
	if (--object->descriptors == 0)
		end(object);
}

void qw_drop_descriptor(int descriptor)
{
	struct qw_object *object = qw_object_of(descriptor);

	if (!object)
		return;
	objects[descriptor] = NULL;
	qw_let_go(object);
}

bool qw_does_block(int descriptor)
{
	return !(QW_REAL(fcntl)(descriptor, F_GETFL) & O_NONBLOCK);
}
