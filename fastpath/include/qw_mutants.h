/* SPDX-License-Identifier: Apache-2.0 */
/* How a check is written: under its name of the list (checks.toml), so that a test build can leave
 * it out and show that it is needed. In every other build qw_mutant() is the constant 0 and nothing
 * of this remains. */
#ifndef QW_MUTANTS_H
#define QW_MUTANTS_H

#include "qw_checks.h"

#ifdef QW_MUTANTS
/* The check left out on this thread, and whether its place was reached. */
extern _Thread_local int qw_mutant_active;
extern _Thread_local int qw_mutant_reached;

static inline int qw_mutant(enum qw_check check)
{
	if (qw_mutant_active != (int)check)
		return 0;
	qw_mutant_reached = 1;
	return 1;
}
#else
#define qw_mutant(check) 0
#endif

/* Whether the condition holds, which it must not. */
#define QW_BAD(condition, name) ((condition) && !qw_mutant(QW_CHECK_##name))

/* The right value; the wrong one where the check is left out. */
#define QW_VALUE(right, wrong, name) (qw_mutant(QW_CHECK_##name) ? (wrong) : (right))

#endif
