/* The C library's own calls, behind ours. */
#include "interpose.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *checked(void *found, const char *name)
{
	if (!found) {
		static const char words[] = "quorumwire: the C library lacks a call: ";
		struct iovec line[3] = {
			{ (void *)(uintptr_t)words, sizeof(words) - 1 },
			{ (void *)(uintptr_t)name, strlen(name) },
			{ (void *)(uintptr_t) "\n", 1 },
		};

		syscall(SYS_writev, 2, line, 3);
		_exit(125);
	}
	return found;
}

void *qw_real(const char *name)
{
	return checked(dlsym(RTLD_NEXT, name), name);
}

void *qw_real_condition(const char *name)
{
	void *found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");

	return found ? found : qw_real(name); /* where there was never another form */
}
