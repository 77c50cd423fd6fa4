/* One thread takes turns; a second one that would is refused. The kernel's own events, such as
 * signals, pipes and other sockets, are looked at where no client has anything, and move no
 * turn. */
#include "interpose.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* --- who this thread is. The kernel is asked once, since it is looked at for each call. A child
 * has other numbers and the same memory, but for a page that is empty there. */

static const volatile uint32_t nothing;
static const volatile uint32_t *is_known = &nothing;
static __thread int own_kernel_number __attribute__((tls_model("initial-exec")));

void qw_begin_threads(void)
{
	uint32_t *page = qw_pages(QW_PAGE_BYTES);

	if (!page || madvise(page, QW_PAGE_BYTES, MADV_WIPEONFORK))
		return;
	*page = 1;
	is_known = page;
}

static int this_thread(void)
{
	if (!own_kernel_number || !*is_known)
		own_kernel_number = (int)syscall(SYS_gettid);
	return own_kernel_number;
}

/* Before a thread serves, the first one does: what it reads of clocks and chance is the same
 * everywhere. */
bool qw_is_serving_thread(void)
{
	int serving = qw.thread ? qw.thread : qw.process;

	return this_thread() == serving;
}

void qw_enter(void)
{
	int thread = this_thread();

	if (qw.on == 2)
		qw_refuse(QW_WHY_INHERITED, (uint64_t)thread);
	if (!qw.thread)
		qw.thread = thread;
	if (qw.thread != thread)
		qw_refuse(QW_WHY_SECOND_READER, (uint64_t)thread);
}

static enum qw_woken woken_by_turn(uint64_t deadline_ns)
{
	if (qw.interrupted) {
		errno = EINTR;
		return QW_WOKEN_SIGNAL;
	}
	return qw.now_ns >= deadline_ns ? QW_WOKEN_LATE : QW_WOKEN_TURN;
}

enum qw_woken qw_wait_for(const struct qw_wait *wait)
{
	qw.interrupted = qw.restarts = false;
	qw_say_deadline(wait->deadline_ns);
	if (qw.now_ns >= wait->deadline_ns)
		return QW_WOKEN_LATE;
	for (;;) {
		int found;

		for (int spin = 0; spin < QW_SPINS_MAX; spin++) {
			if (qw_go_to_turn())
				return woken_by_turn(wait->deadline_ns);
			qw_relax();
		}
		__atomic_store_n(&qw.control->program_sleeps, 1, __ATOMIC_SEQ_CST);
		if (qw_has_turn()) {
			__atomic_store_n(&qw.control->program_sleeps, 0, __ATOMIC_SEQ_CST);
			continue;
		}
		qw_ring_replica();
		found = wait->kernel(wait->what, -1);
		__atomic_store_n(&qw.control->program_sleeps, 0, __ATOMIC_SEQ_CST);
		if (found == 0)
			continue;
		/* It waits no longer. */
		__atomic_store_n(&qw.control->deadline_ns, QW_NEVER, __ATOMIC_RELAXED);
		return found < 0 ? QW_WOKEN_SIGNAL : QW_WOKEN_KERNEL;
	}
}

static int only_door(void *unused, int wait_ms)
{
	struct pollfd door = { .fd = qw.door, .events = POLLIN };
	uint64_t count;

	(void)unused;
	if (QW_REAL(poll)(&door, 1, wait_ms) < 0)
		return -1;
	if (door.revents && syscall(SYS_read, qw.door, &count, sizeof(count)) < 0 && errno != EAGAIN)
		return -1;
	return 0;
}

enum qw_woken qw_wait(struct qw_object *object, uint64_t deadline_ns)
{
	struct qw_wait wait = { .deadline_ns = deadline_ns, .what = object, .kernel = only_door };

	return qw_wait_for(&wait);
}

/* --- threads that the program makes, whose numbers it may see */

struct first_steps {
	void *(*begin)(void *);
	void *argument;
	unsigned int number;
};
/* Of those that have not begun yet. The program's heap stays as it is. */
#define BEGINNING_MAX 65536
static struct first_steps beginning[BEGINNING_MAX];
static unsigned int thread_count;

static void end_steps(void *unused)
{
	(void)unused;
	qw_number_thread(0);
}

static void *take_steps(void *argument)
{
	struct first_steps steps = *(struct first_steps *)argument;
	void *result;

	qw_number_thread(steps.number);
	pthread_cleanup_push(end_steps, NULL);
	result = steps.begin(steps.argument);
	pthread_cleanup_pop(1);
	return result;
}

QW_CALL int pthread_create(pthread_t *handle, const pthread_attr_t *attributes, void *(*begin)(void *),
			   void *argument)
{
	unsigned int number;
	struct first_steps *steps;

	if (!qw_is_on())
		return QW_REAL(pthread_create)(handle, attributes, begin, argument);
	number = __atomic_add_fetch(&thread_count, 1, __ATOMIC_RELAXED);
	steps = beginning + number % BEGINNING_MAX;
	*steps = (struct first_steps){ begin, argument, number };
	return QW_REAL(pthread_create)(handle, attributes, take_steps, steps);
}
