/* One thread serves: whoever uses what is virtual first. */
#ifndef QW_THREADS_H
#define QW_THREADS_H

/* A thread that sleeps in the kernel for an epoll instance of its own is woken by the doorbell
 * in it. */
#define QW_DOOR_IN_EPOLLS 1

void qw_begin_threads(void);

static inline void qw_end_threads(void)
{
}

/* Whether a wait is ours: something virtual is in it. */
static inline bool qw_takes_part(bool has_virtual)
{
	return has_virtual;
}

/* A program that never waits is given turns all the same, everywhere after as many looks. */
static inline bool qw_may_look(void)
{
	return ++qw.idle_waits < QW_IDLE_WAITS_MAX;
}

/* When a wait ends that is one look too many. */
static inline uint64_t qw_idle_deadline(void)
{
	return QW_NEVER;
}

/* Before a call on one of the kernel's descriptors, which may wait. False: a signal has come. */
static inline bool qw_await_descriptor(int descriptor, short events)
{
	(void)descriptor;
	(void)events;
	return true;
}

/* Whether others could go on while a call on one of the kernel's descriptors waits. */
static inline bool qw_may_wait(int descriptor)
{
	(void)descriptor;
	return false;
}

/* A call that may wait for something that is not ordered. */
#define QW_OUTSIDE(call) (call)

#define QW_SLEEPS_BY_TURNS 0

static inline int qw_sleep_until(uint64_t until_ns, uint64_t *left_ns)
{
	(void)until_ns;
	*left_ns = 0;
	return 0;
}

static inline int qw_pause(const sigset_t *mask)
{
	(void)mask;
	return -1;
}

static inline int qw_await_signal(const sigset_t *set, siginfo_t *info, const struct timespec *wait)
{
	(void)set;
	(void)info;
	(void)wait;
	return -1;
}

/* Whether a signal of the log is another thread's, which gets it when it goes on. */
static inline bool qw_leaves_signal(int number, int code, union sigval value)
{
	(void)number;
	(void)code;
	(void)value;
	return false;
}

/* A signal to this process; false: as the kernel does it. */
static inline bool qw_signals_itself(int signal)
{
	(void)signal;
	return false;
}

#endif
