/* SPDX-License-Identifier: Apache-2.0 */
/* The safety checks that a test build can leave out one at a time, to show that each is needed. In
 * every other build qw_mutant() is the constant 0 and nothing of this remains. */
#ifndef QW_MUTANTS_H
#define QW_MUTANTS_H

/* In the order of src/mutants.rs; README.md says what goes wrong without each. */
enum qw_mutants {
	QW_NO_MUTANT = 0,
	QW_WITHOUT_REQUEST_RING,
	QW_WITHOUT_REQUEST_WINDOW,
	QW_WITHOUT_APPEND_RING,
	QW_WITHOUT_LEADER_SENDER,
	QW_WITHOUT_OLD_TERM,
	QW_WITHOUT_NEW_TERM,
	QW_WITHOUT_GROUP,
	QW_WITHOUT_ROLE_OFF,
	QW_WITHOUT_HISTORY,
	QW_WITHOUT_NEXT_INDEX,
	QW_WITHOUT_REPEATED,
	QW_WITHOUT_BEFORE_START,
	QW_WITHOUT_MEMBER,
	QW_WITHOUT_NOT_MYSELF,
	QW_WITHOUT_COUNT_MEMBERS,
	QW_WITHOUT_QUORUM,
	QW_WITHOUT_OWN_TERM,
	QW_WITHOUT_BEYOND_LAST,
	QW_WITHOUT_MATCH_MONOTONE,
	QW_WITHOUT_ROUND_SENT,
	QW_WITHOUT_HEARD_MONOTONE,
	QW_WITHOUT_ROUND_MONOTONE,
	QW_WITHOUT_COMMIT_WITHIN_LAST,
	QW_WITHOUT_COMMIT_MONOTONE,
	QW_WITHOUT_HELD_FOLLOWER,
	QW_WITHOUT_HELD_REPLY,
	QW_WITHOUT_HELD_LEADER,
	QW_WITHOUT_CLIENT_SENDER,
	QW_WITHOUT_CLIENT_FLAGS,
	QW_WITHOUT_BEHIND_RING,
	QW_WITHOUT_RESEND_START,
	QW_WITHOUT_PERSISTED_WITHIN_LAST,
	QW_WITHOUT_PERSISTED_MONOTONE,
	QW_WITHOUT_RELEASED_WITHIN_LAST,
	QW_WITHOUT_LAST_INDEX_EVER,
	QW_WITHOUT_ASCENDING_ROUNDS,
	QW_WITHOUT_TAG,
	QW_WITHOUT_KEY_OF_KIND,
	QW_WITHOUT_EXACT_LENGTH,
	QW_WITHOUT_VERSION,
	QW_WITHOUT_FLAGS_KNOWN,
	QW_WITHOUT_CLIENT_PIECES,
};

#ifdef QW_MUTANTS
/* The check left out on this thread, and whether its place was reached. */
extern _Thread_local int qw_mutant_active;
extern _Thread_local int qw_mutant_reached;

static inline int qw_mutant(enum qw_mutants mutant)
{
	if (qw_mutant_active != (int)mutant)
		return 0;
	qw_mutant_reached = 1;
	return 1;
}
#else
#define qw_mutant(mutant) 0
#endif

#endif
