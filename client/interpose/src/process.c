/* What else a program sees of itself: a number of its own that is the same everywhere. */
#include "interpose.h"

#include <signal.h>
#include <unistd.h>

/* What getpid() says on every replica. */
#define PROCESS 4242

QW_CALL pid_t getpid(void)
{
	if (qw.on < 0)
		qw_start();
	return qw.on == 1 ? PROCESS : QW_REAL(getpid)();
}

static pid_t real_of(pid_t process)
{
	if (qw.on != 1)
		return process;
	if (process == PROCESS)
		return qw.process;
	return process == -PROCESS ? -qw.process : process;
}

QW_CALL int kill(pid_t process, int signal)
{
	return QW_REAL(kill)(real_of(process), signal);
}

QW_CALL int sigqueue(pid_t process, int signal, const union sigval value)
{
	return QW_REAL(sigqueue)(real_of(process), signal, value);
}
