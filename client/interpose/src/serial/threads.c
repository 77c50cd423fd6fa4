/* Who holds the token. A thread that gives it back looks who is next: in the order in which
 * threads were made, behind the last one that had it, the first that can go on by what is
 * virtual, by the log's time or by another thread. If there is none, the first for which the
 * kernel has something, such as another thread's byte in a pipe. If there is none either, one
 * that yields; then one that was outside, since when it comes back is not in the log. If there is
 * none at all, the turn is over, and whoever looked waits for the next one. */
#include "interpose.h"

#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

__thread struct qw_thread *qw_self __attribute__((tls_model("initial-exec")));
struct qw_thread *qw_holder;
unsigned int qw_resting_at;

static struct qw_thread main_thread = { .number = 1 };
static struct qw_thread *first_thread = &main_thread, *last_thread = &main_thread;
static unsigned int thread_count = 1;
/* Who had the token last, in this turn. */
static unsigned int last_number;
static uint64_t rests;
static bool is_woken_from_outside;
static pthread_key_t at_end;
/* A thread gets its signals. */
static bool is_delivering;

/* --- sleeping until the token is handed over */

static void ring_own_door(void)
{
	uint64_t one = 1;

	if (syscall(SYS_write, qw.door, &one, sizeof(one)) < 0)
		return; /* its count is at the most there is */
}

/* False: not in so long. */
static bool sleep_for_token(struct qw_thread *self, time_t most_s, long most_ns)
{
	/* With an end, since a call with one is not begun again behind a signal's handler. */
	struct timespec most = { .tv_sec = most_s, .tv_nsec = most_ns };

	while (!__atomic_exchange_n(&self->go, 0, __ATOMIC_ACQUIRE)) {
		if (!syscall(SYS_futex, &self->go, FUTEX_WAIT_PRIVATE, 0, &most, NULL, 0))
			continue;
		if (errno == ETIMEDOUT)
			return false;
		if (errno == EINTR) {
			__atomic_store_n(&self->is_interrupted, true, __ATOMIC_SEQ_CST);
			ring_own_door();
		}
	}
	__atomic_store_n(&qw.control->holder, (uint32_t)self->kernel_number, __ATOMIC_RELAXED);
	return true;
}

#define LONG_S 1000000000

static void hand_to(struct qw_thread *next, bool is_chosen)
{
	next->is_chosen = is_chosen;
	__atomic_store_n(&qw_holder, next, __ATOMIC_SEQ_CST);
	__atomic_store_n(&next->go, 1, __ATOMIC_RELEASE);
	syscall(SYS_futex, &next->go, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* --- who is next */

static struct qw_rest *rest_of(struct qw_thread *thread)
{
	return __atomic_load_n(&thread->rest, __ATOMIC_ACQUIRE);
}

/* What the log or another thread has sent to the process, in that order: as by qw_deliver(). */
struct sent {
	int signal, code;
	union sigval value;
};
/* Each timer is there once, and each signal that somebody sends. */
#define SENT_MAX 128
static struct sent sent[SENT_MAX];
static unsigned int sent_count;

/* The first thread gets those of the process. */
static bool has_signals(const struct qw_thread *thread)
{
	return thread->signals || (thread == &main_thread && sent_count > 0);
}

/* It is cancelled, and lets itself be. */
static bool is_to_end(const struct qw_thread *thread)
{
	return thread->is_cancelled && !thread->is_uncancellable;
}

static bool is_ready(struct qw_thread *thread, const struct qw_rest *rest)
{
	bool is_interrupted = has_signals(thread);

	if (rest->is_interruptible)
		is_interrupted |= __atomic_load_n(&thread->is_interrupted, __ATOMIC_SEQ_CST);
	if (rest->is_interruptible || rest->is_cancellable)
		is_interrupted |= is_to_end(thread);
	if (rest->is_back)
		return false;
	return rest->is_woken || is_interrupted || qw.now_ns >= rest->deadline_ns ||
	       (rest->wait && rest->wait->has && rest->wait->has(rest->wait->what));
}

static bool has_kernel(struct qw_thread *thread, const struct qw_rest *rest)
{
	(void)thread;
	return rest->kernel_has;
}

static bool does_yield(struct qw_thread *thread, const struct qw_rest *rest)
{
	(void)thread;
	return rest->yields;
}

/* The first behind the last one that had the token, of those that rest and of which this is
 * true. */
static struct qw_thread *first_that(bool (*is_true)(struct qw_thread *, const struct qw_rest *))
{
	struct qw_thread *first = NULL;

	for (struct qw_thread *thread = first_thread; thread; thread = thread->next) {
		const struct qw_rest *rest = rest_of(thread);

		if (!rest || (first && thread->number <= last_number) || !is_true(thread, rest))
			continue;
		if (thread->number > last_number)
			return thread;
		first = thread;
	}
	return first;
}

/* Asks the kernel for what all wait for, and for the doorbell: whether it has something; -1: a
 * signal has come. */
static int ask_kernel(bool waits)
{
	static struct pollfd *asked;
	static nfds_t room;
	struct timespec none = { 0 };
	nfds_t count = 1;
	int found;

	for (struct qw_thread *thread = first_thread; thread; thread = thread->next) {
		struct qw_rest *rest = rest_of(thread);

		if (!rest)
			continue;
		rest->first = count;
		rest->count = 0;
		if (rest->wait && rest->wait->descriptors)
			rest->count = rest->wait->descriptors(rest->wait->what, NULL, 0);
		count += rest->count;
	}
	/* Also where nothing is asked: when that first is so hangs on real time. */
	if (count > room) {
		if (asked)
			munmap(asked, room * sizeof(*asked));
		room = count * 2;
		asked = qw_pages(room * sizeof(*asked));
		if (!asked)
			qw_refuse(QW_WHY_OUT_OF_MEMORY, 0);
	}
	if (count == 1 && !waits)
		return 0;
	asked[0] = (struct pollfd){ .fd = qw.door, .events = POLLIN };
	for (struct qw_thread *thread = first_thread; thread; thread = thread->next) {
		struct qw_rest *rest = rest_of(thread);

		if (rest && rest->count > 0)
			rest->wait->descriptors(rest->wait->what, asked + rest->first, rest->count);
	}
	found = qw_plain_poll(asked, count, waits ? NULL : &none, NULL);
	for (struct qw_thread *thread = first_thread; thread; thread = thread->next) {
		struct qw_rest *rest = rest_of(thread);

		if (!rest)
			continue;
		rest->kernel_has = false;
		for (nfds_t i = 0; found > 0 && i < rest->count; i++)
			rest->kernel_has |= asked[rest->first + i].revents != 0;
	}
	return found;
}

static void wake_all_at_locks(void)
{
	for (struct qw_thread *thread = first_thread; thread; thread = thread->next) {
		struct qw_rest *rest = rest_of(thread);

		if (rest && rest->is_lock)
			rest->is_woken = true;
	}
}

static bool is_back(struct qw_thread *thread, const struct qw_rest *rest)
{
	(void)thread;
	return rest->is_back;
}

static struct qw_thread *choose(void)
{
	struct qw_thread *next;

	if (__atomic_exchange_n(&is_woken_from_outside, false, __ATOMIC_SEQ_CST))
		wake_all_at_locks();
	next = first_that(is_ready);
	if (!next && ask_kernel(false) > 0)
		next = first_that(has_kernel);
	if (!next)
		next = first_that(does_yield);
	return next ? next : first_that(is_back);
}

/* --- the turn is over */

static uint64_t first_deadline(void)
{
	uint64_t first = QW_NEVER;

	for (struct qw_thread *thread = first_thread; thread; thread = thread->next) {
		const struct qw_rest *rest = rest_of(thread);

		if (rest && rest->deadline_ns < first)
			first = rest->deadline_ns;
	}
	return first;
}

/* Waits until somebody may go on: by the next turn, which is taken, or by the kernel's. */
static void await_turn(struct qw_thread *self)
{
	uint64_t count;
	int found;

	qw_say_deadline(first_deadline());
	for (int spin = 0; spin < QW_SPINS_MAX; spin++) {
		if (qw_go_to_turn()) {
			last_number = 0; /* what came from outside meanwhile changes nothing of it */
			return;
		}
		qw_relax();
	}
	__atomic_store_n(&qw.control->program_sleeps, 1, __ATOMIC_SEQ_CST);
	if (qw_has_turn() || first_that(is_ready)) {
		__atomic_store_n(&qw.control->program_sleeps, 0, __ATOMIC_SEQ_CST);
		return;
	}
	qw_ring_replica();
	found = ask_kernel(true);
	__atomic_store_n(&qw.control->program_sleeps, 0, __ATOMIC_SEQ_CST);
	if (found < 0)
		__atomic_store_n(&self->is_interrupted, true, __ATOMIC_SEQ_CST);
	else if (syscall(SYS_read, qw.door, &count, sizeof(count)) < 0 && errno != EAGAIN)
		qw_refuse(QW_WHY_CALL, (uint64_t)errno);
}

/* When one comes from outside changes nothing of the order of the others. */
static void count_in(const struct qw_thread *next)
{
	if (!next->rest->is_back)
		last_number = next->number;
}

/* Returns with the token, when this thread may go on. */
static void until_chosen(struct qw_thread *self)
{
	self->is_chosen = false;
	while (!self->is_chosen) {
		struct qw_thread *next = choose();

		if (!next) {
			await_turn(self);
			continue;
		}
		count_in(next);
		if (next == self)
			return;
		hand_to(next, true);
		while (!sleep_for_token(self, LONG_S, 0))
			;
	}
}

/* The thread goes away, or waits for something that is not ordered: another one looks who is
 * next. */
static void pass_on(void)
{
	struct qw_thread *next = choose(), *thread;

	if (next) {
		count_in(next);
		hand_to(next, true);
		return;
	}
	for (thread = first_thread; thread && !rest_of(thread); thread = thread->next)
		;
	if (thread)
		hand_to(thread, false);
	else
		__atomic_store_n(&qw_holder, NULL, __ATOMIC_SEQ_CST); /* for whoever comes back first */
}

/* --- resting */

/* The signals of a set of 64 bits. The last one there is goes to the kernel. */
#define SIGNALS_KEPT_MAX 63

/* To the kernel, for whoever waits for it. */
static void send_on(const struct sent *one)
{
	siginfo_t info = { .si_signo = one->signal, .si_code = one->code };

	info.si_pid = getpid();
	info.si_value = one->value;
	syscall(SYS_rt_sigqueueinfo, qw.process, one->signal, &info);
}

static void deliver(struct qw_thread *self)
{
	unsigned int count = self == &main_thread ? sent_count : 0;
	uint64_t own = self->signals;
	struct sent all[SENT_MAX];
	sigset_t blocked;

	is_delivering = true;
	qw.interrupted = false;
	self->signals = 0;
	memcpy(all, sent, count * sizeof(*all)); /* handlers send more */
	sent_count -= count;
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	for (int signal = 1; signal <= SIGNALS_KEPT_MAX; signal++) {
		if (own & 1ULL << signal)
			qw_deliver(signal, SI_TKILL, (union sigval){ 0 });
		for (unsigned int i = 0; i < count; i++) {
			if (all[i].signal != signal)
				continue;
			if (sigismember(qw_mask ? qw_mask : &blocked, signal))
				send_on(all + i);
			else
				qw_deliver(signal, all[i].code, all[i].value);
		}
	}
	is_delivering = false;
}

static enum qw_woken how(struct qw_thread *self, const struct qw_rest *rest, bool has_signal)
{
	if (rest->is_woken || rest->kernel_has ||
	    (rest->wait && rest->wait->has && rest->wait->has(rest->wait->what)))
		return QW_WOKEN_TURN;
	if (has_signal || (rest->is_interruptible && self->is_interrupted) ||
	    ((rest->is_interruptible || rest->is_cancellable) && is_to_end(self)))
		return QW_WOKEN_SIGNAL;
	return qw.now_ns >= rest->deadline_ns ? QW_WOKEN_LATE : QW_WOKEN_TURN;
}

static void let_go(struct qw_object **held)
{
	struct qw_object *object = *held;

	*held = NULL;
	if (object)
		qw_let_go(object);
}

enum qw_woken qw_rest(struct qw_rest *rest)
{
	struct qw_thread *self = qw_self;
	enum qw_woken woken;
	int error = errno;

	let_go(&self->limbo);
	rest->since = ++rests;
	__atomic_store_n(&self->is_interrupted, false, __ATOMIC_SEQ_CST);
	qw_resting_at += rest->at != NULL;
	for (;;) {
		bool has_signal;

		__atomic_store_n(&self->rest, rest, __ATOMIC_RELEASE);
		until_chosen(self);
		__atomic_store_n(&self->rest, NULL, __ATOMIC_RELEASE);
		has_signal = has_signals(self);
		qw.interrupted = qw.restarts = false;
		if (has_signal)
			deliver(self);
		woken = how(self, rest, qw.interrupted && rest->is_interruptible);
		if (!has_signal || (qw.interrupted && rest->is_interruptible) || is_ready(self, rest))
			break;
	}
	qw_resting_at -= rest->at != NULL;
	errno = error;
	if (rest->is_interruptible)
		qw_end_if_cancelled();
	return woken;
}

void qw_end_if_cancelled(void)
{
	if (is_to_end(qw_self))
		qw_self->is_cancelled = false; /* what it does at its end waits as ever */
	pthread_testcancel();
}

void qw_wake(const void *at, unsigned int most)
{
	while (most-- > 0) {
		struct qw_rest *first = NULL;

		for (struct qw_thread *thread = first_thread; thread; thread = thread->next) {
			struct qw_rest *rest = rest_of(thread);

			if (rest && rest->at == at && !rest->is_woken && (!first || rest->since < first->since))
				first = rest;
		}
		if (!first)
			return;
		first->is_woken = true;
	}
}

void qw_wake_from_outside(void)
{
	__atomic_store_n(&is_woken_from_outside, true, __ATOMIC_SEQ_CST);
	ring_own_door();
}

void qw_leave(void)
{
	pass_on();
}

void qw_come_back(void *unused)
{
	struct qw_rest rest = { .deadline_ns = QW_NEVER, .is_back = true };
	struct qw_thread *self = qw_self, *nobody = NULL;
	int error = errno;

	(void)unused;
	__atomic_store_n(&self->rest, &rest, __ATOMIC_SEQ_CST);
	ring_own_door();
	for (;;) {
		if (__atomic_compare_exchange_n(&qw_holder, &nobody, self, false, __ATOMIC_SEQ_CST,
						__ATOMIC_SEQ_CST)) {
			until_chosen(self);
			break;
		}
		nobody = NULL;
		if (sleep_for_token(self, 0, 10000000)) {
			if (!self->is_chosen)
				until_chosen(self);
			break;
		}
	}
	__atomic_store_n(&self->rest, NULL, __ATOMIC_SEQ_CST);
	errno = error;
}

/* --- what a thread that serves waits for */

bool qw_is_serving_thread(void)
{
	return qw_holds_token();
}

void qw_enter(void)
{
	if (qw.on == 2)
		qw_refuse(QW_WHY_INHERITED, (uint64_t)syscall(SYS_gettid));
	if (!qw_holds_token())
		qw_refuse(QW_WHY_STRANGER, (uint64_t)syscall(SYS_gettid));
}

enum qw_woken qw_wait_for(const struct qw_wait *wait)
{
	struct qw_rest rest = { .deadline_ns = wait->deadline_ns, .wait = wait, .is_interruptible = true };

	enum qw_woken woken = qw_rest(&rest);

	if (woken == QW_WOKEN_SIGNAL)
		errno = EINTR;
	return woken;
}

struct news_of {
	const struct qw_object *object;
	uint64_t seen;
};

static bool has_news(const void *what)
{
	const struct news_of *news = what;

	return news->object->news != news->seen;
}

enum qw_woken qw_wait(struct qw_object *object, uint64_t deadline_ns)
{
	struct news_of news = { object, object->news };
	struct qw_wait wait = { .deadline_ns = deadline_ns, .what = &news, .has = has_news };
	struct qw_thread *self = qw_self;
	/* Of what a handler has interrupted. */
	struct qw_object *outer = self->awaited;
	enum qw_woken woken;

	object->descriptors++; /* another thread may close it */
	self->awaited = object;
	woken = qw_wait_for(&wait);
	self->awaited = outer;
	if (object->descriptors > 1) {
		qw_let_go(object);
		return woken;
	}
	self->limbo = object;
	qw.interrupted = false;
	return QW_WOKEN_SIGNAL;
}

static nfds_t one_descriptor(const void *what, struct pollfd *to, nfds_t room)
{
	const struct pollfd *awaited = what;

	if (room > 0)
		*to = *awaited;
	return 1;
}

bool qw_await_descriptor(int descriptor, short events)
{
	struct pollfd awaited = { .fd = descriptor, .events = events };
	struct qw_wait wait = { .deadline_ns = QW_NEVER, .what = &awaited, .descriptors = one_descriptor };
	int error = errno;

	if (qw_holds_token() && QW_REAL(poll)(&awaited, 1, 0) == 0 && qw_does_block(descriptor)) {
		do {
			if (qw_wait_for(&wait) != QW_WOKEN_SIGNAL) {
				errno = error;
				return true;
			}
		} while (qw.interrupted && qw.restarts);
		errno = EINTR;
		return false;
	}
	errno = error;
	return true;
}

int qw_sleep_until(uint64_t until_ns, uint64_t *left_ns)
{
	struct qw_rest rest = { .deadline_ns = until_ns, .is_interruptible = true };

	if (qw_rest(&rest) != QW_WOKEN_SIGNAL)
		return 0;
	*left_ns = until_ns > qw.now_ns ? until_ns - qw.now_ns : 0;
	errno = EINTR;
	return -1;
}

/* Signals from outside end it, too, so it is not ordered. */
int qw_pause(const sigset_t *mask)
{
	return QW_OUTSIDE(mask ? QW_REAL(sigsuspend)(mask) : QW_REAL(pause)());
}

int qw_await_signal(const sigset_t *set, siginfo_t *info, const struct timespec *wait)
{
	return QW_OUTSIDE(QW_REAL(sigtimedwait)(set, info, wait));
}

/* A thread that looks again and again lets others go first, and turns come all the same. */
bool qw_may_look(void)
{
	struct qw_rest rest = { .deadline_ns = QW_NEVER, .yields = true };
	struct qw_thread *self = qw_self;

	if (self->looks_turn != qw.turn)
		self->looks = 0;
	self->looks_turn = qw.turn;
	if (++self->looks >= QW_IDLE_WAITS_MAX)
		return false;
	qw_rest(&rest);
	return true;
}

/* The first thread gets what is for the process, when it is its turn. */
static bool send_to_first(int signal, int code, union sigval value)
{
	if (main_thread.is_finished || !rest_of(&main_thread) || sent_count == SENT_MAX)
		return false;
	/* As the kernel has it: what is sent twice comes once, but each timer's comes. */
	for (unsigned int i = 0; i < sent_count; i++) {
		if (sent[i].signal == signal && sent[i].code == code && code != SI_TIMER)
			return true;
	}
	sent[sent_count++] = (struct sent){ signal, code, value };
	return true;
}

bool qw_leaves_signal(int number, int code, union sigval value)
{
	if (is_delivering || (qw_self == &main_thread && !main_thread.rest))
		return false;
	if (number > SIGNALS_KEPT_MAX || !send_to_first(number, code, value))
		send_on(&(struct sent){ number, code, value });
	return true;
}

bool qw_signals_itself(int signal)
{
	return qw_holds_token() && signal > 0 && signal < 64 && signal != SIGKILL && signal != SIGSTOP &&
	       send_to_first(signal, SI_USER, (union sigval){ 0 });
}

/* --- threads begin and end */

struct qw_thread *qw_thread_of(pthread_t handle)
{
	struct qw_thread *thread = first_thread;

	while (thread && !pthread_equal(thread->handle, handle))
		thread = thread->next;
	return thread;
}

void qw_add_thread(struct qw_thread *thread)
{
	thread->number = ++thread_count;
	thread->first_rest = (struct qw_rest){ .deadline_ns = QW_NEVER, .is_woken = true };
	thread->rest = &thread->first_rest;
	last_thread->next = thread;
	last_thread = thread;
}

void qw_remove_thread(struct qw_thread *thread)
{
	struct qw_thread **link = &first_thread, *before = NULL;

	while (*link != thread) {
		before = *link;
		link = &before->next;
	}
	*link = thread->next;
	if (last_thread == thread)
		last_thread = before;
	if (thread != &main_thread)
		free(thread);
}

void *qw_first_steps(void *argument)
{
	struct qw_thread *self = argument;

	qw_self = self;
	self->kernel_number = (int)syscall(SYS_gettid);
	qw_number_thread(self->number - 1);
	pthread_setspecific(at_end, self);
	while (!sleep_for_token(self, LONG_S, 0))
		;
	if (!self->is_chosen)
		until_chosen(self);
	__atomic_store_n(&self->rest, NULL, __ATOMIC_RELEASE);
	return self->begin(self->argument);
}

/* In the last round, behind what the program itself does at its thread's end. */
static void end_thread(void *argument)
{
	struct qw_thread *self = argument;

	if (qw_self != self)
		return;
	if (++self->rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
		pthread_setspecific(at_end, self);
		return;
	}
	if (!qw_holds_token())
		qw_come_back(NULL);
	let_go(&self->awaited); /* it was cancelled meanwhile */
	let_go(&self->limbo);
	if (self != &main_thread)
		qw_number_thread(0);
	self->is_finished = true;
	qw_wake(self, ~0U);
	if (self->is_detached)
		qw_remove_thread(self);
	qw_self = NULL;
	pass_on();
}

void qw_begin_threads(void)
{
	qw_self = &main_thread;
	qw_holder = &main_thread;
	main_thread.handle = pthread_self();
	main_thread.kernel_number = qw.process;
	__atomic_store_n(&qw.control->holder, (uint32_t)qw.process, __ATOMIC_RELAXED);
	if (pthread_key_create(&at_end, end_thread) || pthread_setspecific(at_end, &main_thread))
		qw_refuse(QW_WHY_OUT_OF_MEMORY, 0);
}

/* In a child, which has one thread and no client. */
void qw_end_threads(void)
{
	qw_self = NULL;
}
