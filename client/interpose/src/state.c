/* How the library begins, and how a program ends that may not go on. */
#include "interpose.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The exit code of a program that may not go on. */
#define QW_EXIT_REFUSED 125
/* What is kept has the first descriptors that are free from there, or from the next one if the
 * limit is lower. */
static const int doors_from[] = { 1000, 200, 50, 3 };

struct qw_state qw = { .on = -1 };
_Thread_local const sigset_t *qw_mask;

_Noreturn static void complain(const char *what)
{
	char line[160];
	int count = snprintf(line, sizeof(line), "quorumwire: the preloaded library cannot begin: %s\n",
			     what);

	if (count > 0 && syscall(SYS_write, 2, line, (size_t)count) < 0)
		_exit(QW_EXIT_REFUSED);
	_exit(QW_EXIT_REFUSED);
}

_Noreturn void qw_refuse(enum qw_why why, uint64_t detail)
{
	uint64_t one = 1;

	qw.control->detail = detail;
	__atomic_store_n(&qw.control->why, why, __ATOMIC_RELEASE);
	if (syscall(SYS_write, qw.replica_door, &one, sizeof(one)) < 0)
		_exit(QW_EXIT_REFUSED);
	_exit(QW_EXIT_REFUSED);
}

void qw_end_with_parent(void)
{
	if (qw.on > 0 && qw.parent &&
	    (prctl(PR_SET_PDEATHSIG, SIGKILL) || (int)syscall(SYS_getppid) != qw.parent))
		_exit(QW_EXIT_REFUSED);
}

/* To the kernel a child's maker is the thread that made it, and that may end early, but for the
 * first. */
static void before_child(void)
{
	int maker = (int)syscall(SYS_getpid);

	qw.maker = (int)syscall(SYS_gettid) == maker ? maker : 0;
}

/* A child process has no client: whatever it inherits is the parent's. */
static void in_child(void)
{
	if (qw.on == 1)
		qw.on = 2;
	qw.parent = qw.maker;
	qw_end_with_parent();
	qw_end_threads();
}

static bool is_ring_size(uint64_t bytes)
{
	return bytes >= QW_RECORD_BYTES_MAX * 4 && bytes <= (1ULL << 32) && (bytes & (bytes - 1)) == 0;
}

static void map(int memory)
{
	struct qw_control *control =
		mmap(NULL, QW_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	uint64_t given, said;
	uint8_t *whole;

	if (control == MAP_FAILED)
		complain("no rings are there");
	if (control->magic != QW_RINGS_MAGIC || control->version != QW_RINGS_VERSION)
		complain("the rings are of another version: server and library must come from one package");
	given = control->given_bytes;
	said = control->said_bytes;
	if (!is_ring_size(given) || !is_ring_size(said))
		complain("the rings have sizes that none has");
	munmap(control, QW_PAGE_BYTES);
	whole = mmap(NULL, QW_PAGE_BYTES + given + said, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (whole == MAP_FAILED)
		complain("the rings cannot be mapped");
	qw.control = (struct qw_control *)whole;
	qw.given = whole + QW_PAGE_BYTES;
	qw.said = qw.given + given;
}

static void forget(const char *name)
{
	size_t bytes = strlen(name);
	char **to = environ;

	for (char **from = environ; from && *from; from++) {
		if (strncmp(*from, name, bytes) || (*from)[bytes] != '=')
			*to++ = *from;
	}
	if (to)
		*to = NULL;
}

/* Programs that this one starts are served by nobody. Not by unsetenv(): bash has one of its own,
 * which does nothing so early. */
static void forget_environment(void)
{
	forget(QW_ENVIRONMENT);
	forget("LD_PRELOAD");
}

/* The program's descriptors have the numbers that they have without the library, whatever the
 * replica has inherited to it. */
static int out_of_the_way(int door)
{
	int to = -1;

	for (size_t i = 0; to < 0 && i < sizeof(doors_from) / sizeof(*doors_from); i++)
		to = fcntl(door, F_DUPFD_CLOEXEC, doors_from[i]);
	if (to < 0)
		complain("the descriptors are not there, or there are too few descriptors for them");
	syscall(SYS_close, door);
	return to;
}

bool qw_is_kept(int descriptor)
{
	for (size_t i = 0; qw.on == 1 && i < QW_KEPT_COUNT; i++) {
		if (descriptor == qw.kept[i])
			return true;
	}
	return false;
}

void qw_keep_away(int descriptor)
{
	for (size_t i = 0; qw.on == 1 && i < QW_KEPT_COUNT; i++) {
		if (descriptor == qw.kept[i])
			qw.kept[i] = out_of_the_way(descriptor);
	}
	qw.door = qw.kept[1];
	qw.replica_door = qw.kept[2];
}

void qw_start(void)
{
	const char *wanted;
	int *kept = qw.kept;

	if (qw.on >= 0)
		return;
	qw.on = 0;
	wanted = getenv(QW_ENVIRONMENT);
	if (!wanted)
		return;
	if (sscanf(wanted, "%d,%d,%d,%d", kept, kept + 1, kept + 2, kept + 3) != QW_KEPT_COUNT)
		complain(QW_ENVIRONMENT " is not four descriptors");
	map(kept[0]);
	for (size_t i = 0; i < QW_KEPT_COUNT; i++)
		kept[i] = out_of_the_way(kept[i]);
	qw.door = kept[1];
	qw.replica_door = kept[2];
	forget_environment();
	if (pthread_atfork(before_child, NULL, in_child))
		complain("no memory");
	qw.given_at = __atomic_load_n(&qw.control->given_tail, __ATOMIC_ACQUIRE);
	qw.now_ns = qw.control->start_log_time_ns;
	qw.wall_ahead_ns = qw.control->start_wall_ns - qw.now_ns;
	qw.process = (int)syscall(SYS_getpid);
	qw.parent = (int)syscall(SYS_getppid);
	qw.on = 1;
	/* What the kernel drew for the program: the C library has used it, programs look at it. */
	qw_chance((void *)getauxval(AT_RANDOM), 16);
	qw_begin_threads();
}

void *qw_pages(size_t bytes)
{
	void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return pages == MAP_FAILED ? NULL : pages;
}

bool qw_is_on(void)
{
	if (qw.on < 0)
		qw_start();
	return qw.on == 1;
}

bool qw_is_in_turn(void)
{
	return qw_is_on() && qw_is_serving_thread();
}

__attribute__((constructor)) static void begin(void)
{
	qw_start();
}
