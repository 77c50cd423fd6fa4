/*
 * libquorumwire: values that many submit are decided in one order, and delivered to
 * learners in that order, whichever replica dies meanwhile. See quorumwire(3).
 *
 * Replicas decide them, or a Paxos deployment does: the configuration file says which.
 * What differs for the latter is in quorumwire(3).
 *
 * C99, and C++. All functions may be called from any thread, unless it is said
 * otherwise. None calls exit or abort, and none takes over a signal.
 *
 * While nobody leads, what is asked waits: submissions, recover and checkpoint until
 * the deadline of the configuration is over, deliveries for as long as it takes.
 */
#ifndef QUORUMWIRE_H
#define QUORUMWIRE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What a function returns that fails; see quorumwire_error_text. They never get another
 * meaning.
 */
#define QUORUMWIRE_OK 0
/*
 * An argument makes no sense: a null pointer, instance 0 where there is none, and so
 * on.
 */
#define QUORUMWIRE_ERROR_ARGUMENT (-1)
/* The handle is none, or is closed. */
#define QUORUMWIRE_ERROR_HANDLE (-2)
/* The configuration file cannot be read, or says something that makes no sense. */
#define QUORUMWIRE_ERROR_CONFIGURATION (-3)
/* The value is longer than quorumwire_value_bytes_max. */
#define QUORUMWIRE_ERROR_TOO_LARGE (-4)
/* It was not carried out, and will not be: mostly, nobody led until the deadline. */
#define QUORUMWIRE_ERROR_NOT_CARRIED_OUT (-5)
/* Nobody knows whether it was carried out, or may yet be, though not twice. */
#define QUORUMWIRE_ERROR_OUTCOME_UNKNOWN (-6)
/* It was carried out; the answer is lost. */
#define QUORUMWIRE_ERROR_ANSWER_GONE (-7)
/*
 * As many bytes of values are kept as may be. The text names the learner that is
 * furthest behind.
 */
#define QUORUMWIRE_ERROR_FULL (-8)
/* Some of what was asked for is trimmed. The text says up to which instance. */
#define QUORUMWIRE_ERROR_TRIMMED (-9)
/* There is no learner of this number. */
#define QUORUMWIRE_ERROR_NO_LEARNER (-10)
/* The instance is beyond the last that is decided. */
#define QUORUMWIRE_ERROR_NOT_DECIDED (-11)
/* Not this name with this password. */
#define QUORUMWIRE_ERROR_NOT_LET_IN (-12)
/*
 * Too much waits already: poll first. Or another thread polls, or it is called from a
 * callback.
 */
#define QUORUMWIRE_ERROR_BUSY (-13)
/* A fault of the library, or of the system: no thread, no descriptor. */
#define QUORUMWIRE_ERROR_INTERNAL (-14)

/* A client of a deployment. */
typedef struct quorumwire quorumwire_t;

/*
 * What became of a submitted value: QUORUMWIRE_OK and its instance, or an error and 0.
 * Runs within quorumwire_poll. It may call all functions but quorumwire_poll and
 * quorumwire_close. It must return: no exception and no longjmp may leave it.
 */
typedef void (*quorumwire_submitted_fn)(void *context, int error, uint64_t instance);

/*
 * A value and its instance. The value is the library's, and is gone when this returns;
 * of a value of 0 bytes it points nowhere useful. Otherwise as quorumwire_submitted_fn.
 * Meanwhile nothing more is delivered to this learner; nobody else waits.
 */
typedef void (*quorumwire_delivered_fn)(void *context, uint64_t instance, const void *value,
					size_t size);

/* What is known of an instance. */
#define QUORUMWIRE_DECIDED 1     /* it holds `value` */
#define QUORUMWIRE_NO_OP 2       /* it is decided, and holds no value */
#define QUORUMWIRE_TRIMMED 3     /* nothing up to `instance` is kept by anybody any more */
#define QUORUMWIRE_NOT_DECIDED 4 /* it is beyond `instance`, the last that is decided */

typedef struct quorumwire_recovered {
	uint64_t instance; /* the one asked for, unless `state` says otherwise */
	void *value;       /* the caller's, until quorumwire_recovered_free; NULL unless decided */
	size_t size;
	int state;
} quorumwire_recovered_t;

/*
 * Connects as the configuration file says, and sets `*handle`. Blocks until a replica
 * has let it in, at most until the deadline; on an error `*handle` is NULL, and
 * quorumwire_last_error(NULL, ...) says more. The handle is the caller's, until
 * quorumwire_close. It has a thread of its own, and survives no fork. A replica that the
 * file puts into this program is started first, and ended by quorumwire_close.
 */
int quorumwire_open(const char *configuration_file, quorumwire_t **handle);

/*
 * Ends what waits, without calling back, and frees the handle. A submitted value may
 * still be decided. Not from a callback (QUORUMWIRE_ERROR_BUSY). A second call is an
 * error (QUORUMWIRE_ERROR_HANDLE), as is any other call with the handle from then on.
 * Calls of other threads that are under way return at once, with that error, or with
 * QUORUMWIRE_ERROR_OUTCOME_UNKNOWN.
 */
int quorumwire_close(quorumwire_t *handle);

/*
 * Submits a value, which is copied. Returns at once; `done` is called by
 * quorumwire_poll, exactly once, unless this returns an error. `done` may be NULL.
 * Values submitted one after the other may be decided in another order: wait for the
 * first, if that matters. QUORUMWIRE_ERROR_BUSY: 1,024 of them, or 64 MiB, are not
 * called back for.
 */
int quorumwire_submit(quorumwire_t *handle, const void *value, size_t size,
		      quorumwire_submitted_fn done, void *context);

/*
 * Submits a value, and blocks until it is decided, at most until the deadline.
 * `instance` may be NULL.
 */
int quorumwire_submit_wait(quorumwire_t *handle, const void *value, size_t size,
			   uint64_t *instance);

/*
 * From now on quorumwire_poll delivers all values from the instance `from` on to the
 * learner with this number, in their order, each once; 0: behind its checkpoint. Blocks
 * until it is known whether they are kept, at most until the deadline. A second call
 * takes the place of the first. While no replica can be reached, quorumwire_poll
 * delivers nothing, and goes on with the next value when one can.
 *
 * A program that keeps a state begins behind the instance that it keeps with it. If the
 * state is too old, it is told: QUORUMWIRE_ERROR_TRIMMED.
 */
int quorumwire_deliver(quorumwire_t *handle, uint16_t learner, uint64_t from,
		       quorumwire_delivered_fn delivered, void *context);

/*
 * Calls back what there is, at most 256 times; waits for the first up to `timeout_ms`,
 * -1: for ever. Returns how many callbacks it made. An error, once, if deliveries have
 * ended: QUORUMWIRE_ERROR_TRIMMED and others. One thread at a time, and not from a
 * callback (QUORUMWIRE_ERROR_BUSY).
 */
int quorumwire_poll(quorumwire_t *handle, int timeout_ms);

/*
 * Until it is called with 0, quorumwire_poll delivers nothing: values wait where they
 * are, up to what the configuration allows. What was submitted is called back for as
 * ever. From a callback: the quorumwire_poll that called it delivers nothing more.
 */
int quorumwire_hold(quorumwire_t *handle, int is_held);

/*
 * A descriptor that is readable when quorumwire_poll has something to call back, for
 * event loops. It is the library's: nobody else reads, writes or closes it, and it ends
 * with the handle.
 */
int quorumwire_fd(quorumwire_t *handle);

/*
 * What is known of an instance, from 1 on, as of now. Blocks until a replica has
 * answered, at most until the deadline. Sets `*recovered` if it returns QUORUMWIRE_OK.
 * On a Paxos deployment it decides a no-op where nothing was proposed; an instance that
 * the handle's learner has had already is QUORUMWIRE_ERROR_ARGUMENT, and one too far
 * ahead to be asked for is QUORUMWIRE_NOT_DECIDED, beyond the last that it has had.
 */
int quorumwire_recover(quorumwire_t *handle, uint64_t instance, quorumwire_recovered_t *recovered);

/* Frees the value, and forgets it: a second call does nothing, as does NULL. */
void quorumwire_recovered_free(quorumwire_recovered_t *recovered);

/*
 * The learner needs nothing up to this instance any more. What no learner needs is
 * trimmed: up to which instance, `*trimmed` says, which may be NULL. Blocks as
 * quorumwire_recover.
 */
int quorumwire_checkpoint(quorumwire_t *handle, uint16_t learner, uint64_t upto,
			  uint64_t *trimmed);

/*
 * For an operator, when a learner is gone for good: nobody is given what stands up to
 * this instance any more, whoever may lack it. `*trimmed` and the time that it blocks
 * are as of quorumwire_checkpoint. A learner that lacks some of it is told so:
 * quorumwire_poll returns QUORUMWIRE_ERROR_TRIMMED, and it can begin with `upto` + 1. (A
 * Paxos deployment has no such call: docs/paxos.md, "When a learner stops".)
 */
int quorumwire_declare_lost(quorumwire_t *handle, uint64_t upto, uint64_t *trimmed);

/* The longest value of this deployment, in bytes; 0: no handle. */
size_t quorumwire_value_bytes_max(quorumwire_t *handle);

/* What an error means, in a few words. Never NULL; the text is static. */
const char *quorumwire_error_text(int error);

/*
 * Copies the whole text of the last error of a call with this handle (NULL: of any call
 * of this thread) into the buffer, cut if need be, and ends it with a 0. A submission's
 * error is one of the quorumwire_poll that calls back for it. Returns the text's length
 * without the 0; 0: none so far. With size 0 the buffer may be NULL.
 */
size_t quorumwire_last_error(quorumwire_t *handle, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif

#endif
