/* See events.h. */
#include "events.h"
#include <stdlib.h>
#include <string.h>

#define VALUE_BYTES (1 << 20)

/* Where the quorumwire_poll of this thread puts what it calls back. */
static _Thread_local qwpy_events *polled;

static qwpy_event *qwpy_append(void *token, uint64_t instance, const void *bytes, size_t size)
{
	qwpy_events *events = polled;
	qwpy_event *event = events->is_out_of_memory ? NULL : malloc(sizeof(*event) + size);

	if (event == NULL) {
		events->is_out_of_memory = 1;
		return NULL;
	}
	*event = (qwpy_event){ .token = (uintptr_t)token, .instance = instance, .size = size };
	if (size > 0)
		memcpy(event->bytes, bytes, size);
	if (events->last == NULL)
		events->first = event;
	else
		events->last->next = event;
	events->last = event;
	return event;
}

/* What became of it, with the text of the error if it is one. */
static qwpy_event *qwpy_outcome(void *token, int error, uint64_t instance)
{
	char text[1024];
	size_t size = error == QUORUMWIRE_OK ? 0 : quorumwire_last_error(NULL, text, sizeof(text));
	qwpy_event *event;

	if (size >= sizeof(text))
		size = sizeof(text) - 1; /* it was cut */
	event = qwpy_append(token, instance, text, size);
	if (event != NULL)
		event->error = error;
	return event;
}

static void qwpy_submitted(void *token, int error, uint64_t instance)
{
	qwpy_outcome(token, error, instance);
}

static void qwpy_delivered(void *token, uint64_t instance, const void *value, size_t size)
{
	qwpy_event *event = qwpy_append(token, instance, value, size);

	if (event != NULL)
		event->is_value = 1;
	polled->value_bytes += size;
	if (event == NULL || polled->value_bytes >= VALUE_BYTES)
		quorumwire_hold(polled->handle, 1);
}

int qwpy_submit(quorumwire_t *handle, const void *value, size_t size, uintptr_t token)
{
	return quorumwire_submit(handle, value, size, qwpy_submitted, (void *)token);
}

int qwpy_deliver(quorumwire_t *handle, uint16_t learner, uint64_t from, uintptr_t token)
{
	return quorumwire_deliver(handle, learner, from, qwpy_delivered, (void *)token);
}

void qwpy_poll(quorumwire_t *handle, qwpy_events *events, int are_values_wanted,
	       uintptr_t deliveries)
{
	qwpy_event *end;
	int called;

	quorumwire_hold(handle, !are_values_wanted);
	events->handle = handle;
	events->value_bytes = 0;
	polled = events;
	called = quorumwire_poll(handle, 0);
	if (called < 0) {
		end = qwpy_outcome((void *)deliveries, called, 0);
		if (end != NULL)
			end->is_end = 1;
	}
	polled = NULL;
}

void qwpy_drop_first(qwpy_events *events)
{
	qwpy_event *first = events->first;

	if (first == NULL)
		return;
	events->first = first->next;
	if (events->first == NULL)
		events->last = NULL;
	free(first);
}

void qwpy_drop_all(qwpy_events *events)
{
	while (events->first != NULL)
		qwpy_drop_first(events);
}
