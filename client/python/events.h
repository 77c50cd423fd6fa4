/*
 * What quorumwire_poll calls back, as a list from which Python takes it afterwards. No Python
 * runs within a callback: so no exception can be raised there, that of a signal neither, and
 * nothing that was given is lost.
 */
#ifndef QWPY_EVENTS_H
#define QWPY_EVENTS_H

#include <quorumwire.h>

typedef struct qwpy_event {
	struct qwpy_event *next;
	uintptr_t token; /* of a submission, or of deliveries */
	uint64_t instance;
	int is_value;
	int is_end; /* of deliveries, or of all: an error of quorumwire_poll */
	int error;
	size_t size;
	char bytes[]; /* a value, or the text of the error */
} qwpy_event;

typedef struct qwpy_events {
	qwpy_event *first;
	qwpy_event *last;
	quorumwire_t *handle;
	size_t value_bytes;   /* that the quorumwire_poll which runs has given */
	int is_out_of_memory; /* something is lost */
} qwpy_events;

/* quorumwire_submit and quorumwire_deliver, for whom this token says. */
int qwpy_submit(quorumwire_t *handle, const void *value, size_t size, uintptr_t token);
int qwpy_deliver(quorumwire_t *handle, uint16_t learner, uint64_t from, uintptr_t token);

/*
 * The archive's, for this wheel: whether values that a callback was given never come again, to
 * later deliveries neither.
 */
int qw_gives_once(quorumwire_t *handle);

/*
 * quorumwire_poll without waiting. What it calls back goes to the end of `events`, and so does an
 * error of its own, with the token of the deliveries that are under way. Values only if they are
 * wanted, and no more once they have 1 MiB.
 */
void qwpy_poll(quorumwire_t *handle, qwpy_events *events, int are_values_wanted,
	       uintptr_t deliveries);

/* Frees the first one, or all. */
void qwpy_drop_first(qwpy_events *events);
void qwpy_drop_all(qwpy_events *events);

#endif
