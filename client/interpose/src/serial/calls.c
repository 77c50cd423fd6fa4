/* How threads are made and ended, and calls that wait for something that is not ordered. */
#include "interpose.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

QW_CALL int pthread_create(pthread_t *handle, const pthread_attr_t *attributes, void *(*begin)(void *), void *argument)
{
	struct qw_thread *thread;
	int detached = PTHREAD_CREATE_JOINABLE, error;

	if (!qw_is_on() || !qw_holds_token())
		return QW_REAL(pthread_create)(handle, attributes, begin, argument);
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return EAGAIN;
	if (attributes)
		pthread_attr_getdetachstate(attributes, &detached);
	thread->begin = begin;
	thread->argument = argument;
	thread->is_detached = detached == PTHREAD_CREATE_DETACHED;
	qw_add_thread(thread);
	error = QW_REAL(pthread_create)(&thread->handle, attributes, qw_first_steps, thread);
	if (error)
		qw_remove_thread(thread);
	else
		*handle = thread->handle;
	return error;
}

/* Waits for its end. */
static int join(struct qw_thread *thread, void **result, uint64_t deadline_ns)
{
	struct qw_rest rest = { .deadline_ns = deadline_ns, .at = thread, .is_cancellable = true };
	pthread_t handle = thread->handle;
	int error;

	while (!thread->is_finished) {
		enum qw_woken woken = qw_rest(&rest);

		qw_end_if_cancelled();
		if (woken == QW_WOKEN_LATE)
			return ETIMEDOUT;
		rest.is_woken = false;
	}
	error = QW_REAL(pthread_join)(handle, result);
	if (!error)
		qw_remove_thread(thread);
	return error;
}

QW_CALL int pthread_join(pthread_t handle, void **result)
{
	struct qw_thread *thread = qw_holds_token() ? qw_thread_of(handle) : NULL;

	if (!thread || thread == qw_self || thread->is_detached)
		return QW_REAL(pthread_join)(handle, result);
	return join(thread, result, QW_NEVER);
}

QW_CALL int pthread_tryjoin_np(pthread_t handle, void **result)
{
	struct qw_thread *thread = qw_holds_token() ? qw_thread_of(handle) : NULL;

	if (!thread || thread == qw_self || thread->is_detached)
		return QW_REAL(pthread_tryjoin_np)(handle, result);
	return thread->is_finished ? join(thread, result, QW_NEVER) : EBUSY;
}

QW_CALL int pthread_timedjoin_np(pthread_t handle, void **result, const struct timespec *until)
{
	struct qw_thread *thread = qw_holds_token() ? qw_thread_of(handle) : NULL;

	if (!until)
		return pthread_join(handle, result);
	if (!thread || thread == qw_self || thread->is_detached)
		return QW_REAL(pthread_timedjoin_np)(handle, result, until);
	return join(thread, result, qw_log_time_at(until, CLOCK_REALTIME));
}

QW_CALL int pthread_detach(pthread_t handle)
{
	struct qw_thread *thread = qw_holds_token() ? qw_thread_of(handle) : NULL;

	if (thread) {
		thread->is_detached = true;
		if (thread->is_finished)
			qw_remove_thread(thread);
	}
	return QW_REAL(pthread_detach)(handle);
}

QW_CALL int pthread_cancel(pthread_t handle)
{
	struct qw_thread *thread = qw_holds_token() ? qw_thread_of(handle) : NULL;

	if (thread)
		thread->is_cancelled = true;
	return QW_REAL(pthread_cancel)(handle);
}

QW_CALL int pthread_setcancelstate(int state, int *before)
{
	int error = QW_REAL(pthread_setcancelstate)(state, before);

	if (!error && qw_self)
		qw_self->is_uncancellable = state == PTHREAD_CANCEL_DISABLE;
	return error;
}

/* It comes to a thread that rests when that is chosen. */
QW_CALL int pthread_kill(pthread_t handle, int signal)
{
	struct qw_thread *thread = qw_holds_token() ? qw_thread_of(handle) : NULL;

	if (!thread || !thread->rest || thread->is_finished || signal <= 0 || signal >= 64)
		return QW_REAL(pthread_kill)(handle, signal);
	thread->signals |= 1ULL << signal;
	return 0;
}

QW_CALL int sched_yield(void)
{
	struct qw_rest rest = { .is_interruptible = true };

	if (!qw_holds_token())
		return QW_REAL(sched_yield)();
	if (!qw_may_look()) {
		rest.deadline_ns = qw_idle_deadline();
		qw_rest(&rest);
	}
	return 0;
}

/* --- what ends by real time, or by another process: others go on meanwhile, and when it ends is
 * not ordered */

QW_CALL pid_t waitpid(pid_t process, int *status, int options)
{
	if (options & WNOHANG || !qw_holds_token())
		return QW_REAL(waitpid)(process, status, options);
	return QW_OUTSIDE(QW_REAL(waitpid)(process, status, options));
}

QW_CALL pid_t wait(int *status)
{
	return waitpid(-1, status, 0);
}
