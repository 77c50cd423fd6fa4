/* Chance, and what a program sees of itself. */
#include "cases.h"

#include <netdb.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

int __open_2(const char *, int);
int __open64_2(const char *, int);
int __openat_2(int, const char *, int);
int __openat64_2(int, const char *, int);

static unsigned char bytes[1024], other[1024];

/* Whether two draws look like chance: they differ, and are no zeros. */
static void say_chance(size_t count)
{
	static const unsigned char zeros[sizeof(bytes)];

	say("\t%s, %s\n", memcmp(bytes, other, count) ? "differ" : "equal",
	    memcmp(bytes, zeros, count) && memcmp(other, zeros, count) ? "drawn" : "zeros");
	memset(bytes, 0, sizeof(bytes));
	memset(other, 0, sizeof(other));
}

CASE(chance, calls_that_draw)
{
	GOT(getrandom(bytes, 100, 0));
	GOT(getrandom(other, 100, GRND_NONBLOCK));
	say_chance(100);
	GOT(getrandom(bytes, 16, GRND_RANDOM));
	GOT(getrandom(other, 16, GRND_INSECURE));
	say_chance(16);
	GOT(getrandom(bytes, 0, 0));
	GOT(getrandom(bytes, 10, 99));
	GOT(getentropy(bytes, 256));
	GOT(getentropy(other, 256));
	say_chance(256);
	GOT(getentropy(bytes, 257));
	arc4random_buf(bytes, 100);
	arc4random_buf(other, 100);
	say_chance(100);
	GOT(arc4random() != arc4random() || arc4random() != arc4random());
	for (int i = 0; i < 5; i++)
		GOT(arc4random_uniform(7) < 7);
	GOT(arc4random_uniform(0));
	GOT(arc4random_uniform(1));
}

static void drawn(int made)
{
	struct iovec parts[2] = { { other, 10 }, { other + 10, 90 } };

	if (made < 0)
		return;
	GOT(read(made, bytes, 100));
	GOT(readv(made, parts, 2));
	say_chance(100);
	GOT(read(made, bytes, 0));
	GOT(close(made));
	GOT(read(made, bytes, 10));
}

CASE(chance, files_of_chance)
{
	drawn((int)GOT(open("/dev/urandom", O_RDONLY)));
	drawn((int)GOT(open("/dev/random", O_RDONLY | O_NONBLOCK)));
	drawn((int)GOT(openat(AT_FDCWD, "/dev/urandom", O_RDONLY | O_CLOEXEC)));
	drawn((int)GOT(openat(3, "/dev/random", O_RDONLY)));
	drawn((int)GOT(open64("/dev/urandom", O_RDWR)));
	drawn((int)GOT(openat64(AT_FDCWD, "/dev/urandom", O_RDONLY)));
	drawn((int)GOT(__open_2("/dev/urandom", O_RDONLY)));
	drawn((int)GOT(__open64_2("/dev/urandom", O_RDONLY)));
	drawn((int)GOT(__openat_2(AT_FDCWD, "/dev/urandom", O_RDONLY)));
	drawn((int)GOT(__openat64_2(AT_FDCWD, "/dev/urandom", O_RDONLY)));
	GOT(fcntl((int)GOT(open("/dev/urandom", O_RDONLY | O_CLOEXEC)), F_GETFD));
	GOT(open("/dev/urandom", O_RDONLY | O_DIRECTORY));
	GOT(open("/dev/urandom", O_CREAT | O_EXCL | O_RDONLY, 0600));
}

CASE(chance, streams_of_chance)
{
	const char *names[] = { "/dev/urandom", "/dev/random" };

	for (int i = 0; i < 2; i++) {
		FILE *stream = i ? fopen64(names[i], "rb") : fopen(names[i], "r");

		GOT(fread(bytes, 1, 100, stream));
		GOT(fread(other, 1, 100, stream));
		say_chance(100);
		GOT(fclose(stream));
	}
	FILE *stream = fdopen(open("/dev/urandom", O_RDONLY), "r");

	GOT(fread(bytes, 1, 100, stream));
	GOT(fread(other, 1, 100, stream));
	say_chance(100);
	GOT(fileno(stream) >= 0);
	GOT(fclose(stream));
}

CASE(chance, a_file_of_chance_is_ready)
{
	int made = open("/dev/urandom", O_RDWR);
	struct pollfd wanted = { .fd = made, .events = POLLIN | POLLOUT };
	struct stat found;

	GOT(poll(&wanted, 1, -1));
	say_polled(&wanted, 1, 1);
	GOT(write(made, "seed", 4));
	GOT(lseek(made, 0, SEEK_CUR));
	GOT(fstat(made, &found));
	GOT(S_ISCHR(found.st_mode));
	GOT(send(made, "x", 1, 0));
	GOT(recv(made, bytes, 1, 0));
}

CASE(chance, numbers_of_the_c_library)
{
	unsigned int seed = 5;
	char state[64];

	GOT(rand());
	GOT(random());
	srand(42);
	GOT(rand());
	GOT(rand());
	srandom(42);
	GOT(random());
	GOT(rand_r(&seed));
	GOT(drand48() < 1);
	GOT(lrand48());
	GOT(initstate(7, state, sizeof(state)) != NULL);
	GOT(random());
}

CASE(chance, the_own_number)
{
	pid_t own = getpid();
	cpu_set_t processors;

	GOT(own > 0);
	GOT(getpid() == own);
	GOT(gettid() == own);
	GOT(kill(own, 0));
	GOT(tgkill(own, gettid(), 0));
	GOT(getpgid(own) == getpgid(0));
	GOT(getsid(own) == getsid(0));
	GOT(getpriority(PRIO_PROCESS, (id_t)own) == getpriority(PRIO_PROCESS, 0));
	GOT(sched_getaffinity(own, sizeof(processors), &processors));
	GOT(sched_getscheduler(own));
	GOT(prlimit(own, RLIMIT_NOFILE, NULL, NULL));
	handle(SIGUSR1, 0);
	GOT(kill(own, SIGUSR1));
	GOT(tgkill(own, gettid(), SIGUSR1));
	GOT(raise(SIGUSR1));
	GOT(sigqueue(own, SIGUSR1, (union sigval){ 0 }));
	say("%d signals\n", (int)signals);
	GOT(kill(own, 999));
}

CASE(chance, other_numbers)
{
	pid_t parent = getpid(), child = fork();

	if (child == 0)
		_exit(getpid() != parent && getppid() == parent && !kill(parent, 0) ? 0 : 1);
	GOT(getppid() > 0);
	GOT(kill(child, 0));
	int status;

	GOT(waitpid(child, &status, 0) == child);
	GOT(status);
}

CASE(chance, names_are_looked_up)
{
	struct addrinfo *found, wanted = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST };
	char name[100], service[100];
	struct sockaddr_in at = address_at(0);

	GOT(getaddrinfo("127.0.0.1", "80", &wanted, &found));
	say_address("found", (struct sockaddr_in *)found->ai_addr);
	freeaddrinfo(found);
	GOT(getaddrinfo(NULL, "80", &wanted, &found));
	freeaddrinfo(found);
	GOT(getaddrinfo("no number", "80", &wanted, &found));
	wanted.ai_flags = 0;
	wanted.ai_family = AF_INET;
	GOT(getaddrinfo("localhost", NULL, &wanted, &found));
	say_address("found", (struct sockaddr_in *)found->ai_addr);
	freeaddrinfo(found);
	at.sin_addr.s_addr = htonl(0x7f000001);
	GOT(getnameinfo((struct sockaddr *)&at, sizeof(at), name, sizeof(name), service, sizeof(service),
			NI_NUMERICHOST | NI_NUMERICSERV));
	say("%s\n", name);
}

CASE(chance, nobody_is_elsewhere)
{
	int listener = listening(0), made = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in to = address_at(5);

	(void)listener;
	GOT(connect(made, (struct sockaddr *)&to, sizeof(to)));
	GOT(connect(-1, (struct sockaddr *)&to, sizeof(to)));
}

CASE(chance, connecting_to_the_own_port)
{
	int listener = listening(SOCK_NONBLOCK), made = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in to = address_at(0);

	GOT(connect(made, (struct sockaddr *)&to, sizeof(to)));
	GOT(accept(listener, NULL, NULL) >= 0);
}

CASE(chance, a_datagram_to_elsewhere)
{
	int listener = listening(0), made = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in to = address_at(5);

	(void)listener;
	GOT(sendto(made, "hello", 5, 0, (struct sockaddr *)&to, sizeof(to)));
	GOT(connect(made, (struct sockaddr *)&to, sizeof(to)));
}
