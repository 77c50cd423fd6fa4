/* Locks, condition variables and semaphores. Whoever would wait gives the token back; who is
 * woken goes on when it is chosen. Condition variables are the library's alone: the C library's
 * are only begun and ended. */
#include "interpose.h"

#include <semaphore.h>
#include <string.h>

static bool is_served(void)
{
	return qw_is_on() && qw_holds_token();
}

/* A thread that the library has not made takes no part, and what it does here would have no
 * order. */
static bool is_served_condition(void)
{
	if (qw_is_on() && !qw_self)
		qw_refuse(QW_WHY_STRANGER, 0);
	return qw_holds_token();
}

/* Waits until the lock is let go. False: the log's time came to the deadline. */
static bool rest_at(const void *lock, uint64_t deadline_ns)
{
	struct qw_rest rest = { .deadline_ns = deadline_ns, .at = lock, .is_lock = true };

	return qw_rest(&rest) != QW_WOKEN_LATE;
}

static void let_go(const void *lock)
{
	if (!qw_holds_token())
		qw_wake_from_outside();
	else if (qw_resting_at)
		qw_wake(lock, ~0U);
}

/* --- pthread_mutex_t */

static int lock_until(pthread_mutex_t *mutex, uint64_t deadline_ns)
{
	int result = pthread_mutex_trylock(mutex);

	/* Twice by one thread is told to it, if it wants that. */
	if (result == EBUSY && (mutex->__data.__kind & 3) == PTHREAD_MUTEX_ERRORCHECK &&
	    mutex->__data.__owner == qw_self->kernel_number)
		return EDEADLK;
	while (result == EBUSY) {
		if (!rest_at(mutex, deadline_ns))
			return ETIMEDOUT;
		result = pthread_mutex_trylock(mutex);
	}
	return result;
}

QW_CALL int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	if (!is_served())
		return QW_REAL(pthread_mutex_lock)(mutex);
	return lock_until(mutex, QW_NEVER);
}

QW_CALL int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
	if (!is_served())
		return QW_REAL(pthread_mutex_timedlock)(mutex, until);
	return lock_until(mutex, qw_log_time_at(until, CLOCK_REALTIME));
}

QW_CALL int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until)
{
	if (!is_served())
		return QW_REAL(pthread_mutex_clocklock)(mutex, clock, until);
	return lock_until(mutex, qw_log_time_at(until, clock));
}

QW_CALL int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	int result = QW_REAL(pthread_mutex_unlock)(mutex);

	if (qw.on == 1 && !result)
		let_go(mutex);
	return result;
}

/* --- pthread_cond_t */

static int wait_at(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t deadline_ns)
{
	struct qw_rest rest = { .deadline_ns = deadline_ns, .at = condition, .is_cancellable = true };
	int result = pthread_mutex_unlock(mutex);
	enum qw_woken woken;

	if (result)
		return result;
	woken = qw_rest(&rest);
	result = lock_until(mutex, QW_NEVER);
	qw_end_if_cancelled();
	return result ? result : woken == QW_WOKEN_LATE ? ETIMEDOUT : 0;
}

QW_CALL int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	if (!is_served_condition())
		return QW_REAL_CONDITION(pthread_cond_wait)(condition, mutex);
	return wait_at(condition, mutex, QW_NEVER);
}

QW_CALL int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
	/* Where the C library keeps which clock it was begun with. */
	bool is_monotonic = condition->__data.__wrefs & 2;

	if (!is_served_condition())
		return QW_REAL_CONDITION(pthread_cond_timedwait)(condition, mutex, until);
	return wait_at(condition, mutex, qw_log_time_at(until, is_monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME));
}

QW_CALL int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
				   const struct timespec *until)
{
	if (!is_served_condition())
		return QW_REAL(pthread_cond_clockwait)(condition, mutex, clock, until);
	return wait_at(condition, mutex, qw_log_time_at(until, clock));
}

QW_CALL int pthread_cond_signal(pthread_cond_t *condition)
{
	if (!is_served_condition())
		return QW_REAL_CONDITION(pthread_cond_signal)(condition);
	qw_wake(condition, 1);
	return 0;
}

QW_CALL int pthread_cond_broadcast(pthread_cond_t *condition)
{
	if (!is_served_condition())
		return QW_REAL_CONDITION(pthread_cond_broadcast)(condition);
	qw_wake(condition, ~0U);
	return 0;
}

/* --- pthread_rwlock_t */

#define UNTIL(try_lock, lock, deadline_ns) \
	({ \
		int result_ = try_lock(lock); \
		while (result_ == EBUSY) \
			result_ = rest_at((const void *)(uintptr_t)lock, deadline_ns) ? try_lock(lock) : ETIMEDOUT; \
		result_; \
	})

QW_CALL int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
	if (!is_served())
		return QW_REAL(pthread_rwlock_rdlock)(lock);
	return UNTIL(pthread_rwlock_tryrdlock, lock, QW_NEVER);
}

QW_CALL int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
	if (!is_served())
		return QW_REAL(pthread_rwlock_wrlock)(lock);
	return UNTIL(pthread_rwlock_trywrlock, lock, QW_NEVER);
}

QW_CALL int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *until)
{
	if (!is_served())
		return QW_REAL(pthread_rwlock_timedrdlock)(lock, until);
	return UNTIL(pthread_rwlock_tryrdlock, lock, qw_log_time_at(until, CLOCK_REALTIME));
}

QW_CALL int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *until)
{
	if (!is_served())
		return QW_REAL(pthread_rwlock_timedwrlock)(lock, until);
	return UNTIL(pthread_rwlock_trywrlock, lock, qw_log_time_at(until, CLOCK_REALTIME));
}

QW_CALL int pthread_rwlock_clockrdlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *until)
{
	if (!is_served())
		return QW_REAL(pthread_rwlock_clockrdlock)(lock, clock, until);
	return UNTIL(pthread_rwlock_tryrdlock, lock, qw_log_time_at(until, clock));
}

QW_CALL int pthread_rwlock_clockwrlock(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *until)
{
	if (!is_served())
		return QW_REAL(pthread_rwlock_clockwrlock)(lock, clock, until);
	return UNTIL(pthread_rwlock_trywrlock, lock, qw_log_time_at(until, clock));
}

QW_CALL int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
	int result = QW_REAL(pthread_rwlock_unlock)(lock);

	if (qw.on == 1 && !result)
		let_go(lock);
	return result;
}

/* --- pthread_spinlock_t */

QW_CALL int pthread_spin_lock(pthread_spinlock_t *lock)
{
	if (!is_served())
		return QW_REAL(pthread_spin_lock)(lock);
	return UNTIL(pthread_spin_trylock, lock, QW_NEVER);
}

QW_CALL int pthread_spin_unlock(pthread_spinlock_t *lock)
{
	int result = QW_REAL(pthread_spin_unlock)(lock);

	if (qw.on == 1)
		let_go((const void *)(uintptr_t)lock);
	return result;
}

/* --- pthread_barrier_t: what the library keeps in place of the C library's */

struct barrier {
	unsigned int count, waiting;
};
_Static_assert(sizeof(struct barrier) <= sizeof(pthread_barrier_t), "it fits");

QW_CALL int pthread_barrier_init(pthread_barrier_t *barrier, const pthread_barrierattr_t *attributes, unsigned int count)
{
	struct barrier own = { .count = count };
	int error = QW_REAL(pthread_barrier_init)(barrier, attributes, count);

	if (!error && is_served())
		memcpy(barrier, &own, sizeof(own));
	return error;
}

QW_CALL int pthread_barrier_wait(pthread_barrier_t *barrier)
{
	struct qw_rest rest = { .deadline_ns = QW_NEVER, .at = barrier };
	struct barrier *own = (struct barrier *)barrier;

	if (!is_served())
		return QW_REAL(pthread_barrier_wait)(barrier);
	if (++own->waiting == own->count) {
		own->waiting = 0;
		qw_wake(barrier, ~0U);
		return PTHREAD_BARRIER_SERIAL_THREAD;
	}
	while (!rest.is_woken)
		qw_rest(&rest);
	return 0;
}

QW_CALL int pthread_barrier_destroy(pthread_barrier_t *barrier)
{
	return is_served() ? 0 : QW_REAL(pthread_barrier_destroy)(barrier);
}

/* --- sem_t */

static int take_until(sem_t *semaphore, uint64_t deadline_ns)
{
	struct qw_rest rest = { .deadline_ns = deadline_ns, .at = semaphore, .is_lock = true, .is_interruptible = true };

	while (sem_trywait(semaphore)) {
		if (errno != EAGAIN)
			return -1;
		switch (qw_rest(&rest)) {
		case QW_WOKEN_TURN:
		case QW_WOKEN_KERNEL:
			rest.is_woken = false;
			continue;
		case QW_WOKEN_SIGNAL:
			errno = EINTR;
			return -1;
		case QW_WOKEN_LATE:
			errno = ETIMEDOUT;
			return -1;
		}
	}
	return 0;
}

QW_CALL int sem_wait(sem_t *semaphore)
{
	if (!is_served())
		return QW_REAL(sem_wait)(semaphore);
	return take_until(semaphore, QW_NEVER);
}

QW_CALL int sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
	if (!is_served())
		return QW_REAL(sem_timedwait)(semaphore, until);
	return take_until(semaphore, qw_log_time_at(until, CLOCK_REALTIME));
}

QW_CALL int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
	if (!is_served())
		return QW_REAL(sem_clockwait)(semaphore, clock, until);
	return take_until(semaphore, qw_log_time_at(until, clock));
}

QW_CALL int sem_post(sem_t *semaphore)
{
	int result = QW_REAL(sem_post)(semaphore);

	if (qw.on == 1 && !result)
		let_go(semaphore);
	return result;
}
