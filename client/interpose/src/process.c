/* What else a program sees of itself: a number of its own that is the same everywhere, and no child
 * once it serves. */
#include "interpose.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* What getpid() says on every replica. */
#define PROCESS 4242

QW_CALL pid_t getpid(void)
{
	return qw_is_on() ? PROCESS : QW_REAL(getpid)();
}

/* A child that was made before the program served knows its parent by the same number. */
static pid_t real_of(pid_t process)
{
	if (qw.on <= 0)
		return process;
	if (process == PROCESS)
		return qw.process;
	return process == -PROCESS ? -qw.process : process;
}

/* --- threads are known by the order in which they were made */

#define THREADS_MAX 65536
static struct {
	unsigned int number;
	int kernel_number;
} threads[THREADS_MAX];
static __thread unsigned int own_number __attribute__((tls_model("initial-exec")));

void qw_number_thread(unsigned int number)
{
	unsigned int place = (number ? number : own_number) % THREADS_MAX;

	own_number = number;
	threads[place].kernel_number = (int)syscall(SYS_gettid);
	__atomic_store_n(&threads[place].number, number, __ATOMIC_RELEASE);
}

/* Of a process, or of one of its threads. */
static pid_t real_of_thread(pid_t thread)
{
	unsigned int number = thread > PROCESS ? (unsigned int)(thread - PROCESS) : 0;
	unsigned int place = number % THREADS_MAX;

	if (qw.on == 1 && number && __atomic_load_n(&threads[place].number, __ATOMIC_ACQUIRE) == number)
		return threads[place].kernel_number;
	return real_of(thread);
}

QW_CALL pid_t getppid(void)
{
	pid_t parent = QW_REAL(getppid)();

	return qw.on == 2 && parent == qw.process ? PROCESS : parent;
}

QW_CALL pid_t gettid(void)
{
	pid_t thread = QW_REAL(gettid)();

	if (qw.on != 1)
		return thread;
	return own_number ? PROCESS + (pid_t)own_number : thread == qw.process ? PROCESS : thread;
}

QW_CALL int tgkill(pid_t process, pid_t thread, int signal)
{
	return QW_REAL(tgkill)(real_of(process), real_of_thread(thread), signal);
}

QW_CALL int kill(pid_t process, int signal)
{
	if (qw.on == 1 && process == PROCESS && qw_signals_itself(signal))
		return 0;
	return QW_REAL(kill)(real_of(process), signal);
}

QW_CALL int sigqueue(pid_t process, int signal, const union sigval value)
{
	return QW_REAL(sigqueue)(real_of(process), signal, value);
}

/* --- calls that ask about a process by its number */

QW_CALL pid_t getpgid(pid_t process)
{
	return QW_REAL(getpgid)(real_of(process));
}

QW_CALL pid_t getsid(pid_t process)
{
	return QW_REAL(getsid)(real_of(process));
}

QW_CALL int setpgid(pid_t process, pid_t group)
{
	return QW_REAL(setpgid)(real_of(process), real_of(group));
}

QW_CALL int getpriority(__priority_which_t which, id_t who)
{
	return QW_REAL(getpriority)(which, (id_t)real_of_thread((pid_t)who));
}

QW_CALL int setpriority(__priority_which_t which, id_t who, int priority)
{
	return QW_REAL(setpriority)(which, (id_t)real_of_thread((pid_t)who), priority);
}

QW_CALL int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *processors)
{
	return QW_REAL(sched_getaffinity)(real_of_thread(process), bytes, processors);
}

QW_CALL int sched_setaffinity(pid_t process, size_t bytes, const cpu_set_t *processors)
{
	return QW_REAL(sched_setaffinity)(real_of_thread(process), bytes, processors);
}

QW_CALL int sched_getscheduler(pid_t process)
{
	return QW_REAL(sched_getscheduler)(real_of_thread(process));
}

QW_CALL int sched_setscheduler(pid_t process, int policy, const struct sched_param *how)
{
	return QW_REAL(sched_setscheduler)(real_of_thread(process), policy, how);
}

QW_CALL int prlimit(pid_t process, __rlimit_resource_t which, const struct rlimit *to, struct rlimit *from)
{
	return QW_REAL(prlimit)(real_of_thread(process), which, to, from);
}

QW_CALL int prlimit64(pid_t process, __rlimit_resource_t which, const struct rlimit64 *to, struct rlimit64 *from)
{
	return QW_REAL(prlimit64)(real_of_thread(process), which, to, from);
}

/* --- users: with another one the kernel forgets that the process ends with who made it */

#define AS_ANOTHER(name, parameters, arguments) \
	QW_CALL int name parameters \
	{ \
		int result = QW_REAL(name) arguments; \
\
		if (!result) \
			qw_end_with_parent(); \
		return result; \
	}

AS_ANOTHER(setuid, (uid_t user), (user))
AS_ANOTHER(seteuid, (uid_t user), (user))
AS_ANOTHER(setreuid, (uid_t real, uid_t effective), (real, effective))
AS_ANOTHER(setresuid, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved))
AS_ANOTHER(setgid, (gid_t group), (group))
AS_ANOTHER(setegid, (gid_t group), (group))
AS_ANOTHER(setregid, (gid_t real, gid_t effective), (real, effective))
AS_ANOTHER(setresgid, (gid_t real, gid_t effective, gid_t saved), (real, effective, saved))

/* Its child has memory of its own: otherwise what the child closes would be closed here. */
QW_CALL pid_t vfork(void)
{
	return fork();
}

/* --- children */

#define NUMBER_AT offsetof(struct seccomp_data, nr)
/* The low half of the first argument: the flags of clone(). */
#define FLAGS_AT offsetof(struct seccomp_data, args)
#define SAY(code, value) BPF_STMT(BPF_RET | BPF_K, (code) | (value))
#define IF_CALL(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1)

/* When a child ends is known by real time only, and a program may do other things while it has
 * one, as Redis does. So once the program is given turns the kernel makes no child of it, whoever
 * asks: the C library for system(), popen() or posix_spawn(), too. Threads are made. The flags of
 * clone3() cannot be seen: the C library takes clone() where there is none. */
void qw_forbid_children(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NUMBER_AT),
#ifdef SYS_fork
		IF_CALL(SYS_fork),
		SAY(SECCOMP_RET_ERRNO, EAGAIN),
		IF_CALL(SYS_vfork),
		SAY(SECCOMP_RET_ERRNO, EAGAIN),
#endif
		IF_CALL(SYS_clone3),
		SAY(SECCOMP_RET_ERRNO, ENOSYS),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
		SAY(SECCOMP_RET_ALLOW, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FLAGS_AT),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1),
		SAY(SECCOMP_RET_ALLOW, 0),
		SAY(SECCOMP_RET_ERRNO, EAGAIN),
	};
	struct sock_fprog program = { .len = sizeof(filter) / sizeof(*filter), .filter = filter };

	/* Of all threads. */
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program))
		qw_refuse(QW_WHY_CHILDREN, (uint64_t)errno);
}
