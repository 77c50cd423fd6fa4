/* A server that does what its client names, and says what came of it. The test compiles it. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <resolv.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int waited(pid_t child)
{
	int status = -1;

	if (child < 0)
		return errno;
	if (child == 0)
		_exit(0);
	return waitpid(child, &status, 0) == child ? status : -1;
}

static int in_clone(void *unused)
{
	(void)unused;
	return 0;
}

static void *in_thread(void *unused)
{
	return unused;
}

static int spawned(int (*spawn)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
				char *const[], char *const[]),
		   const char *file)
{
	char *arguments[] = { (char *)"true", NULL };
	pid_t child;
	int error = spawn(&child, file, NULL, NULL, arguments, arguments + 1);

	return error ? error : waited(child);
}

static int connected(int type, int sends)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(7999) };
	int made = socket(AF_INET, type, 0), result;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (sends)
		result = (int)sendto(made, "x", 1, 0, (struct sockaddr *)&to, sizeof(to));
	else
		result = connect(made, (struct sockaddr *)&to, sizeof(to));
	result = result < 0 ? errno : 0;
	close(made);
	return result;
}

static int looked_up(const char *name)
{
	struct addrinfo *found = NULL;
	int result = getaddrinfo(name, NULL, NULL, &found);

	if (!result)
		freeaddrinfo(found);
	return result == EAI_AGAIN ? ECONNREFUSED : result;
}

/* The names of calls; each says that somebody is to be asked. */
static int asked(const char *call)
{
	static const char name[] = "somewhere.example";
	struct gaicb wanted = { .ar_name = name }, *list[] = { &wanted };
	struct hostent host, *found = &host;
	unsigned char answer[512];
	char room[1024];
	int error = 0, result = -1;

	h_errno = 0;
	if (!strcmp(call, "name-r"))
		result = gethostbyname_r(name, &host, room, sizeof(room), &found, &error);
	else if (!strcmp(call, "name2-r"))
		result = gethostbyname2_r(name, AF_INET6, &host, room, sizeof(room), &found, &error);
	else if (!strcmp(call, "names"))
		return getaddrinfo_a(GAI_WAIT, list, 1, NULL) == EAI_AGAIN ? ECONNREFUSED : 0;
	else if (!strcmp(call, "query"))
		return res_query(name, 1, 1, answer, sizeof(answer)) < 0 ? errno : 0;
	else if (!strcmp(call, "search"))
		return res_search(name, 1, 1, answer, sizeof(answer)) < 0 ? errno : 0;
	return result == EAGAIN && error == TRY_AGAIN && !found ? ECONNREFUSED : result;
}

/* What is known without asking. */
static int known(void)
{
	struct in_addr here = { htonl(INADDR_LOOPBACK) };
	struct hostent host, *found = NULL;
	char room[1024];
	int error;

	if (gethostbyname_r("localhost", &host, room, sizeof(room), &found, &error) || !found)
		return 1;
	if (gethostbyname_r("127.0.0.1", &host, room, sizeof(room), &found, &error) || !found)
		return 2;
	if (gethostbyaddr_r(&here, sizeof(here), AF_INET, &host, room, sizeof(room), &found, &error) || found)
		return 3;
	return 0;
}

/* To another process, which would be at the other end. */
static int handed_over(int client)
{
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} control = { .head = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int)) } };
	struct iovec part = { (char *)"x", 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return errno;
	memcpy(CMSG_DATA(&control.head), &client, sizeof(client));
	return sendmsg(pair[0], &message, 0) < 0 ? errno : 0;
}

/* Goes into the background, by so many steps; the file says who is there. */
static int background(int steps)
{
	FILE *file;

	while (steps-- > 0) {
		if (fork())
			_exit(0);
		setsid();
	}
	file = fopen("background.new", "w");
	fprintf(file, "%d", (int)syscall(SYS_getpid));
	fclose(file);
	rename("background.new", "background");
	for (;;)
		pause();
}

/* 0, or an error's number. */
static int outcome(int client, const char *what)
{
	static char stack[1 << 16];
	int signal = 0;

	if (!strcmp(what, "fork"))
		return waited(fork());
	if (!strcmp(what, "vfork"))
		return waited(vfork());
	if (!strcmp(what, "clone"))
		return waited(clone(in_clone, stack + sizeof(stack), SIGCHLD, NULL));
	if (!strcmp(what, "syscall"))
		return waited((pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0UL));
	if (!strcmp(what, "spawn"))
		return spawned(posix_spawn, "/bin/true");
	if (!strcmp(what, "spawnp"))
		return spawned(posix_spawnp, "true");
	if (!strcmp(what, "system"))
		return system("true") ? errno : 0;
	if (!strcmp(what, "popen")) {
		FILE *stream = popen("true", "r");

		return stream ? pclose(stream) : EAGAIN; /* whatever the C library calls it */
	}
	if (!strcmp(what, "thread")) {
		pthread_t thread;
		int error = pthread_create(&thread, NULL, in_thread, NULL);

		return error ? error : pthread_join(thread, NULL);
	}
	if (!strcmp(what, "tcp"))
		return connected(SOCK_STREAM, 0);
	if (!strcmp(what, "udp"))
		return connected(SOCK_DGRAM, 0);
	if (!strcmp(what, "datagram"))
		return connected(SOCK_DGRAM, 1);
	if (!strcmp(what, "name"))
		return looked_up("somewhere.example");
	if (!strcmp(what, "number"))
		return looked_up("127.0.0.1") + looked_up("localhost");
	if (!strncmp(what, "ask ", 4))
		return asked(what + 4);
	if (!strcmp(what, "known"))
		return known();
	if (!strcmp(what, "background"))
		return background(1);
	if (!strcmp(what, "far"))
		return background(2);
	if (!strcmp(what, "daemon")) /* its child goes there */
		return fork() ? 0 : daemon(0, 0) ? errno : background(0);
	if (!strcmp(what, "nobody"))
		return setgid(65534) || setuid(65534) ? errno : 0;
	if (!strcmp(what, "ends"))
		return prctl(PR_GET_PDEATHSIG, &signal) ? errno : signal - SIGKILL;
	if (!strcmp(what, "hand"))
		return handed_over(client);
	if (!strcmp(what, "uring"))
		return syscall(SYS_io_uring_setup, 8, stack) < 0 ? errno : 0;
	if (!strcmp(what, "exec"))
		return execlp("true", "true", NULL) ? errno : 0;
	if (!strcmp(what, "async"))
		return fcntl(client, F_SETFL, O_ASYNC);
	return -1;
}

int main(int count, char **arguments)
{
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_port = htons(7000) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), client;
	char line[64];
	ssize_t got;

	/* Before it serves. */
	for (int each = 1; each < count; each++) {
		if (outcome(-1, arguments[each]))
			return 1;
	}
	own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, (struct sockaddr *)&own, sizeof(own)) || listen(listener, 8))
		return 2;
	client = accept(listener, NULL, NULL);
	while ((got = read(client, line, sizeof(line) - 1)) > 0) {
		line[got] = 0;
		got = snprintf(line, sizeof(line), "%d.", outcome(client, line));
		if (write(client, line, (size_t)got) != got)
			return 3;
	}
	return 0;
}
