/* Several threads serve, one at a time: the one that holds the token. It holds it from its
 * return out of a wait to its next one. So what is shared here needs no lock, and who is next
 * follows from the log alone. */
#ifndef QW_THREADS_H
#define QW_THREADS_H

/* Only the thread that waits for a turn hears the doorbell. */
#define QW_DOOR_IN_EPOLLS 0

/* Why a thread does not hold the token, and when it may again. */
struct qw_rest {
	/* Never: QW_NEVER. */
	uint64_t deadline_ns;
	/* What it waits for: descriptors, or none. */
	const struct qw_wait *wait;
	/* A lock, a condition variable, a barrier or a thread, or none. */
	const void *at;
	/* A thread without the token may let it go, too: then whoever rests at any looks again. */
	bool is_lock;
	/* A signal ends it, and so does the thread's cancellation; or only that, on which the
	 * caller acts. */
	bool is_interruptible, is_cancellable;
	/* It lets others go first. */
	bool yields;
	/* It was outside, and goes on when nobody else can. */
	bool is_back;
	/* It was told to go on. */
	bool is_woken;
	/* The kernel has something; its descriptors among those that it is asked for. */
	bool kernel_has;
	nfds_t first, count;
	/* Who began to rest first has a lower number. */
	uint64_t since;
};

struct qw_thread {
	/* In the order in which they were made. */
	struct qw_thread *next;
	unsigned int number;
	int kernel_number;
	pthread_t handle;
	void *(*begin)(void *);
	void *argument;
	/* A futex: 1: the token is handed to it. */
	uint32_t go;
	/* It is to go on; if not, it is to look who is. */
	bool is_chosen;
	/* None: it has the token, or it waits for something that is not ordered. */
	struct qw_rest *rest;
	struct qw_rest first_rest;
	/* Signals that it is sent. */
	uint64_t signals;
	bool is_interrupted, is_cancelled, is_uncancellable, is_detached, is_finished;
	/* What it waits for, which another thread may close; and what one has closed meanwhile, let
	 * go at its next wait. */
	struct qw_object *awaited, *limbo;
	/* How often it looked in this turn without a wait. */
	uint64_t looks_turn;
	unsigned int looks;
	/* Rounds of what is done at a thread's end. */
	unsigned int rounds;
};

/* None: of a thread that the library has not made. */
extern __thread struct qw_thread *qw_self __attribute__((tls_model("initial-exec")));
extern struct qw_thread *qw_holder;

static inline bool qw_holds_token(void)
{
	return qw_self && __atomic_load_n(&qw_holder, __ATOMIC_RELAXED) == qw_self;
}

void qw_begin_threads(void);
void qw_end_threads(void);

/* Gives the token back until something of `rest` has come. */
enum qw_woken qw_rest(struct qw_rest *rest);
/* Has up to `most` of those go on that rest at this, who came first first. */
void qw_wake(const void *at, unsigned int most);
/* How many rest at something. */
extern unsigned int qw_resting_at;
/* A lock was let go without the token. */
void qw_wake_from_outside(void);
/* Gives the token back for a call that may wait for something that is not ordered; and takes it
 * again. */
void qw_leave(void);
void qw_come_back(void *unused);
#define QW_OUTSIDE(call) \
	({ \
		__typeof__(call) result_; \
		qw_leave(); \
		pthread_cleanup_push(qw_come_back, NULL); \
		result_ = call; \
		pthread_cleanup_pop(1); \
		result_; \
	})
/* Where a thread may be cancelled. */
void qw_end_if_cancelled(void);
struct qw_thread *qw_thread_of(pthread_t handle);
void qw_add_thread(struct qw_thread *thread);
void qw_remove_thread(struct qw_thread *thread);
void *qw_first_steps(void *thread);

static inline bool qw_takes_part(bool has_virtual)
{
	return has_virtual || qw_holds_token();
}

#define QW_SLEEPS_BY_TURNS 1

int qw_sleep_until(uint64_t until_ns, uint64_t *left_ns);
int qw_pause(const sigset_t *mask);
int qw_await_signal(const sigset_t *set, siginfo_t *info, const struct timespec *wait);
/* Whether a signal of the log is another thread's, which gets it when it goes on. */
bool qw_leaves_signal(int number, int code, union sigval value);
bool qw_may_look(void);

/* When a wait ends that is one look too many. */
static inline uint64_t qw_idle_deadline(void)
{
	return qw.now_ns + 1000000;
}

/* Before a call on one of the kernel's descriptors, which may wait. False: a signal has come. */
bool qw_await_descriptor(int descriptor, short events);

/* Whether others could go on while a call on one of the kernel's descriptors waits. */
static inline bool qw_may_wait(int descriptor)
{
	return qw_holds_token() && qw_does_block(descriptor);
}

/* A signal to this process; false: as the kernel does it. */
bool qw_signals_itself(int signal);

#endif
