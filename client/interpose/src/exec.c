/* A program that has not served yet may become another one, as a script's `exec` does: that one is
 * served in its place. Children become what they like. */
#include "interpose.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PRELOAD "LD_PRELOAD="

/* Whether it is the served program itself that becomes another one. */
static bool follows(void)
{
	if (qw.on != 1 || (int)syscall(SYS_getpid) != qw.process)
		return false;
	if (qw.turn > 0 || qw.control->said_head > 0)
		qw_refuse(QW_WHY_CALL, SYS_execve); /* it has said something already */
	return true;
}

/* Programs without an interpreter do not load a library. Scripts have one. */
static bool loads_libraries(int file)
{
	Elf64_Ehdr head;
	Elf64_Phdr part;

	if (pread(file, &head, sizeof(head), 0) != sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG))
		return true; /* the kernel says what it is */
	for (unsigned int i = 0; i < head.e_phnum; i++) {
		off_t at = (off_t)(head.e_phoff + (uint64_t)i * head.e_phentsize);

		if (pread(file, &part, sizeof(part), at) == sizeof(part) && part.p_type == PT_INTERP)
			return true;
	}
	return false;
}

static void check(int file)
{
	bool loads = file < 0 || loads_libraries(file);

	if (file >= 0)
		syscall(SYS_close, file);
	if (!loads)
		qw_refuse(QW_WHY_CALL, SYS_execve);
}

static void check_path(const char *path)
{
	check((int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC));
}

/* Of the one that is found first. */
static void check_name(const char *name)
{
	const char *at = getenv("PATH"), *end;
	char path[PATH_MAX];

	if (strchr(name, '/')) {
		check_path(name);
		return;
	}
	for (at = at ? at : "/bin:/usr/bin"; *at; at = *end ? end + 1 : end) {
		end = strchrnul(at, ':');
		if ((size_t)snprintf(path, sizeof(path), "%.*s/%s", (int)(end - at), at, name) >= sizeof(path) ||
		    access(path, X_OK))
			continue;
		check_path(path);
		return;
	}
}

static void keep(bool is_kept)
{
	int flags = is_kept ? 0 : FD_CLOEXEC;

	for (size_t i = 0; i < QW_KEPT_COUNT; i++)
		fcntl(qw.kept[i], F_SETFD, flags);
}

static size_t count_of(char *const list[])
{
	size_t count = 0;

	while (list && list[count])
		count++;
	return count;
}

enum way { BY_PATH, BY_NAME, BY_DESCRIPTOR };

static int become(enum way way, const char *file, int descriptor, char *const arguments[], char *const environment[])
{
	size_t count = count_of(environment), kept = 0;
	const char *preload = NULL;
	char *with[count + 3], rings[sizeof(QW_ENVIRONMENT) + 64];
	int result;

	if (way == BY_DESCRIPTOR)
		check(dup(descriptor));
	else if (way == BY_NAME)
		check_name(file);
	else
		check_path(file);
	for (size_t i = 0; i < count; i++) {
		if (!strncmp(environment[i], PRELOAD, sizeof(PRELOAD) - 1))
			preload = environment[i] + sizeof(PRELOAD) - 1;
		else if (strncmp(environment[i], QW_ENVIRONMENT "=", sizeof(QW_ENVIRONMENT)))
			with[kept++] = environment[i];
	}
	char library[sizeof(PRELOAD) + 64 + (preload ? strlen(preload) : 0)];

	snprintf(rings, sizeof(rings), QW_ENVIRONMENT "=%07d,%07d,%07d,%07d", qw.kept[0], qw.kept[1], qw.kept[2],
		 qw.kept[3]);
	snprintf(library, sizeof(library), PRELOAD "/proc/self/fd/%d%s%s", qw.kept[3], preload ? ":" : "",
		 preload ? preload : "");
	with[kept++] = rings;
	with[kept++] = library;
	with[kept] = NULL;
	keep(true);
	if (way == BY_DESCRIPTOR)
		result = QW_REAL(fexecve)(descriptor, arguments, with);
	else
		result = way == BY_NAME ? QW_REAL(execvpe)(file, arguments, with) : QW_REAL(execve)(file, arguments, with);
	keep(false);
	return result;
}

QW_CALL int execve(const char *path, char *const arguments[], char *const environment[])
{
	if (!follows())
		return QW_REAL(execve)(path, arguments, environment);
	return become(BY_PATH, path, -1, arguments, environment);
}

QW_CALL int execvpe(const char *file, char *const arguments[], char *const environment[])
{
	if (!follows())
		return QW_REAL(execvpe)(file, arguments, environment);
	return become(BY_NAME, file, -1, arguments, environment);
}

QW_CALL int fexecve(int descriptor, char *const arguments[], char *const environment[])
{
	if (!follows())
		return QW_REAL(fexecve)(descriptor, arguments, environment);
	return become(BY_DESCRIPTOR, NULL, descriptor, arguments, environment);
}

QW_CALL int execv(const char *path, char *const arguments[])
{
	return execve(path, arguments, environ);
}

QW_CALL int execvp(const char *file, char *const arguments[])
{
	return execvpe(file, arguments, environ);
}

/* Arguments one by one. */
#define MAKE_LIST(first) \
	va_list list; \
	size_t count = 1; \
	va_start(list, first); \
	while (va_arg(list, char *)) \
		count++; \
	va_end(list); \
	char *arguments[count + 1]; \
	arguments[0] = (char *)(uintptr_t)(first); \
	va_start(list, first); \
	for (size_t i = 1; i <= count; i++) \
		arguments[i] = va_arg(list, char *)

QW_CALL int execl(const char *path, const char *first, ...)
{
	MAKE_LIST(first);
	va_end(list);
	return execve(path, arguments, environ);
}

QW_CALL int execlp(const char *file, const char *first, ...)
{
	MAKE_LIST(first);
	va_end(list);
	return execvpe(file, arguments, environ);
}

QW_CALL int execle(const char *path, const char *first, ...)
{
	char *const *environment;

	MAKE_LIST(first);
	environment = va_arg(list, char *const *);
	va_end(list);
	return execve(path, arguments, environment);
}
