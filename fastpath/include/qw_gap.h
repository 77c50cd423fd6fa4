/* SPDX-License-Identifier: Apache-2.0 */
/* A follower's questions for what is missing: how often it asks, and when it asks for more.
 * Questions must not breed questions: each brings up to QW_RESEND_ENTRIES_MAX packets, all behind
 * the gap if the first of them is lost. Losing what stands here costs repeated packets, never an
 * entry. */
#ifndef QW_GAP_H
#define QW_GAP_H

#include "qw_step.h"

/* Packets behind one gap that are not answered after one was: a leader with much on its way would
 * send everything again for each of them. Several times as many as one question brings: where the
 * first of these is lost or late, the others are behind the gap, too, and each question must lead
 * to less than one more, however often packets are repeated. The next heartbeat is answered in any
 * case. */
#define QW_GAPS_QUIET_MAX (8 * QW_RESEND_ENTRIES_MAX)

/* What to do about a packet beyond what qw_step says. */
enum qw_asking {
	QW_ASKING_AS_SAID = 0,
	QW_ASKING_NOT = 1, /* the question that qw_step made has just been asked: say nothing */
	QW_ASKING_MORE = 2, /* the last entry of those that were asked for has come: ask for the next */
};

/* How many packets behind a gap are not answered after what is missing was asked for; 0: it has to
 * be asked for. */
static inline __attribute__((always_inline)) __u64
qw_gap_patience(const struct qw_gap *gap, const struct qw_header *in, const struct qw_outcome *out)
{
	__u64 missing = out->header.index;

	if (gap->asked_index == missing)
		return QW_GAPS_QUIET_MAX;
	/* Some of what was asked for has come. If this is not of it, the rest is still on its way;
	 * if it is, the one before it was lost. */
	if (gap->asked_index != 0 && missing > gap->asked_index &&
	    missing - gap->asked_index < QW_RESEND_ENTRIES_MAX &&
	    in->index - gap->asked_index >= QW_RESEND_ENTRIES_MAX)
		return QW_RESEND_ENTRIES_MAX;
	return 0;
}

/* After a step of a follower: what was stored or asked for. */
static inline __attribute__((always_inline)) enum qw_asking
qw_gap_after(struct qw_gap *gap, const struct qw_header *in, const struct qw_outcome *out)
{
	if (in->kind != QW_KIND_APPEND && in->kind != QW_KIND_HEARTBEAT)
		return QW_ASKING_AS_SAID;
	if (out->actions == 0 || (out->actions & QW_TO_SOFTWARE) != 0)
		return QW_ASKING_AS_SAID;
	gap->leader_last = qw_max(gap->leader_last, in->index);
	if (out->reason == QW_REASON_GAP) {
		if (in->kind == QW_KIND_APPEND && gap->quiet < qw_gap_patience(gap, in, out)) {
			gap->quiet++;
			return QW_ASKING_NOT;
		}
		gap->asked_index = out->header.index;
		gap->quiet = 0;
		return QW_ASKING_AS_SAID;
	}
	if ((out->actions & QW_STORE) == 0 || gap->asked_index == 0)
		return QW_ASKING_AS_SAID;
	gap->quiet = 0;
	if (out->index != gap->asked_index + QW_RESEND_ENTRIES_MAX - 1 ||
	    gap->leader_last <= out->index)
		return QW_ASKING_AS_SAID;
	gap->asked_index = out->index + 1;
	return QW_ASKING_MORE;
}

#endif
