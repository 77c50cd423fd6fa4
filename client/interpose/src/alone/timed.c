/* Waits for other threads that end at a time. The program reads that off the log's clock; the
 * kernel knows only its own. In serial/ such waits are the library's. */
#include "interpose.h"

#include <pthread.h>
#include <semaphore.h>

static bool ends_by_log(const struct timespec *until)
{
	return qw_is_on() && qw_is_time(until);
}

/* How far the log's clock is from the end. */
static uint64_t left_until(clockid_t clock, const struct timespec *until)
{
	uint64_t end = qw_log_time_at(until, clock);

	return end > qw.now_ns ? end - qw.now_ns : 0;
}

/* The same end by the kernel's clock. */
static struct timespec end_by_kernel(clockid_t clock, uint64_t left_ns)
{
	struct timespec now;

	QW_REAL(clock_gettime)(clock, &now);
	return qw_timespec(qw_as_ns(&now) + left_ns);
}

/* Makes the call with `end` instead of `until`. If the time is over, it has passed. */
#define WAIT_BY_LOG(clock, until, call) \
	({ \
		uint64_t left_ = left_until(clock, until); \
		struct timespec end = end_by_kernel(clock, left_); \
		int result_ = (call); \
		if (result_ == ETIMEDOUT || (result_ < 0 && errno == ETIMEDOUT)) \
			qw_slept(0, (int64_t)left_); \
		result_; \
	})

QW_CALL int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until)
{
	if (!ends_by_log(until))
		return QW_REAL(pthread_mutex_timedlock)(mutex, until);
	return WAIT_BY_LOG(CLOCK_REALTIME, until, QW_REAL(pthread_mutex_timedlock)(mutex, &end));
}

QW_CALL int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until)
{
	if (!ends_by_log(until))
		return QW_REAL(pthread_mutex_clocklock)(mutex, clock, until);
	return WAIT_BY_LOG(clock, until, QW_REAL(pthread_mutex_clocklock)(mutex, clock, &end));
}

QW_CALL int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
				   const struct timespec *until)
{
	/* Where the C library keeps which clock it was begun with. */
	clockid_t clock = condition->__data.__wrefs & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;

	if (!ends_by_log(until))
		return QW_REAL_CONDITION(pthread_cond_timedwait)(condition, mutex, until);
	return WAIT_BY_LOG(clock, until, QW_REAL_CONDITION(pthread_cond_timedwait)(condition, mutex, &end));
}

QW_CALL int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
				   const struct timespec *until)
{
	if (!ends_by_log(until))
		return QW_REAL(pthread_cond_clockwait)(condition, mutex, clock, until);
	return WAIT_BY_LOG(clock, until, QW_REAL(pthread_cond_clockwait)(condition, mutex, clock, &end));
}

#define TIMED_LOCK(name, clocked) \
	QW_CALL int name(pthread_rwlock_t *lock, const struct timespec *until) \
	{ \
		if (!ends_by_log(until)) \
			return QW_REAL(name)(lock, until); \
		return WAIT_BY_LOG(CLOCK_REALTIME, until, QW_REAL(name)(lock, &end)); \
	} \
	QW_CALL int clocked(pthread_rwlock_t *lock, clockid_t clock, const struct timespec *until) \
	{ \
		if (!ends_by_log(until)) \
			return QW_REAL(clocked)(lock, clock, until); \
		return WAIT_BY_LOG(clock, until, QW_REAL(clocked)(lock, clock, &end)); \
	}

TIMED_LOCK(pthread_rwlock_timedrdlock, pthread_rwlock_clockrdlock)
TIMED_LOCK(pthread_rwlock_timedwrlock, pthread_rwlock_clockwrlock)

QW_CALL int sem_timedwait(sem_t *semaphore, const struct timespec *until)
{
	if (!ends_by_log(until))
		return QW_REAL(sem_timedwait)(semaphore, until);
	return WAIT_BY_LOG(CLOCK_REALTIME, until, QW_REAL(sem_timedwait)(semaphore, &end));
}

QW_CALL int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until)
{
	if (!ends_by_log(until))
		return QW_REAL(sem_clockwait)(semaphore, clock, until);
	return WAIT_BY_LOG(clock, until, QW_REAL(sem_clockwait)(semaphore, clock, &end));
}

QW_CALL int pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *until)
{
	if (!until || !ends_by_log(until))
		return QW_REAL(pthread_timedjoin_np)(thread, result, until);
	return WAIT_BY_LOG(CLOCK_REALTIME, until, QW_REAL(pthread_timedjoin_np)(thread, result, &end));
}
