/* SPDX-License-Identifier: Apache-2.0 */
/* How a step says what shall be done, and how it refuses a packet.
 *
 * Actions are carried out in the order of their bits, so nothing is said before it is stored.
 * QW_TO_SOFTWARE comes alone and leaves the registers untouched; so does a drop (no action, a
 * reason). */
#ifndef QW_OUTCOME_H
#define QW_OUTCOME_H

#include "qw_mutants.h"
#include "qw_shared.h"
#include "qw_wire.h"

/* The larger of two numbers, which all steps ask for. */
static inline __attribute__((always_inline)) __u64 qw_max(__u64 one, __u64 other)
{
	return one > other ? one : other;
}

static inline __attribute__((always_inline)) void qw_clear(struct qw_outcome *out)
{
	const struct qw_outcome nothing = { .actions = 0 };

	*out = nothing;
}

static inline __attribute__((always_inline)) void
qw_to_software(struct qw_outcome *out, enum qw_reason reason)
{
	out->actions = QW_TO_SOFTWARE;
	out->reason = reason;
}

static inline __attribute__((always_inline)) void
qw_drop(struct qw_outcome *out, enum qw_reason reason)
{
	out->actions = 0;
	out->reason = reason;
}

/* A refusal: leaves a function of the step if the condition holds, with the reason that the list of
 * checks gives the name (checks.toml). `out` is the outcome. */
#define QW_TO_SOFTWARE_IF(condition, name) \
	do { \
		if (QW_BAD(condition, name)) \
			return qw_to_software(out, QW_REASON_OF_##name); \
	} while (0)
#define QW_DROP_IF(condition, name) \
	do { \
		if (QW_BAD(condition, name)) \
			return qw_drop(out, QW_REASON_OF_##name); \
	} while (0)

#endif
