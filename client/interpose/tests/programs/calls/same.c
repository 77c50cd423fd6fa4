/* What is not as with the kernel, and the same on every replica: times, chance, numbers. */
#include "cases.h"

#include <pthread.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/times.h>

static unsigned char bytes[64];

static void say_drawn(const char *what)
{
	say("%s:", what);
	for (size_t i = 0; i < 16; i++)
		say(" %02x", bytes[i]);
	say("\n");
}

static void draw(void)
{
	FILE *stream = fopen("/dev/urandom", "r");
	int made = open("/dev/random", O_RDONLY);

	getrandom(bytes, 16, 0);
	say_drawn("getrandom");
	getentropy(bytes, 16);
	say_drawn("getentropy");
	arc4random_buf(bytes, 16);
	say_drawn("arc4random_buf");
	say("arc4random: %u, %u of 1000\n", arc4random(), arc4random_uniform(1000));
	read(made, bytes, 16);
	say_drawn("/dev/random");
	fread(bytes, 1, 16, stream);
	say_drawn("/dev/urandom");
	srand((unsigned int)time(NULL));
	say("rand: %d\n", rand());
	close(made);
	fclose(stream);
}

static void look_at_clocks(void)
{
	static const clockid_t clocks[] = { CLOCK_REALTIME,	CLOCK_MONOTONIC,       CLOCK_MONOTONIC_RAW,
					    CLOCK_BOOTTIME,	CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE };
	struct timespec now;

	for (size_t i = 0; i < sizeof(clocks) / sizeof(*clocks); i++) {
		clock_gettime(clocks[i], &now);
		say("clock %d: %ld.%09ld\n", clocks[i], (long)now.tv_sec, now.tv_nsec);
	}
	say("time %ld, ticks %ld\n", (long)time(NULL), (long)times(NULL));
}

CASE(same, every_replica_sees_the_same)
{
	struct timespec wait = { .tv_nsec = 1234567 };
	int listener = listening(0), made, timer = timerfd_create(CLOCK_MONOTONIC, 0);
	struct itimerspec when = { .it_value = { 3, 0 } }, left;
	struct pollfd wanted = { .events = POLLIN };
	void *somewhere = malloc(100);

	memcpy(bytes, (void *)getauxval(AT_RANDOM), 16);
	say_drawn("AT_RANDOM");
	draw();
	look_at_clocks();
	nanosleep(&wait, NULL);
	look_at_clocks();
	made = client(listener, 1);
	say("descriptors %d %d %d, process %d, thread %d\n", listener, made, timer, getpid(), gettid());
	say("places %p %p %p\n", somewhere, (void *)&wait, (void *)draw);
	timerfd_settime(timer, 0, &when, NULL);
	draw();
	ask("send 1 hello");
	draw();
	look_at_clocks();
	timerfd_gettime(timer, &left);
	say("left: %ld.%09ld\n", (long)left.it_value.tv_sec, left.it_value.tv_nsec);
	wanted.fd = made;
	read(made, bytes, 10);
	say("poll: %d\n", poll(&wanted, 1, 777));
	look_at_clocks();
	draw();
}

/* Held while something is said. */
static pthread_mutex_t floor_is_taken = PTHREAD_MUTEX_INITIALIZER;

static void *says_its_number(void *unused)
{
	cpu_set_t processors;

	pthread_mutex_lock(&floor_is_taken);
	pthread_mutex_unlock(&floor_is_taken);
	say("process %d, thread %d\n", getpid(), gettid());
	GOT(tgkill(getpid(), gettid(), 0));
	GOT(sched_getaffinity(gettid(), sizeof(processors), &processors));
	GOT(setpriority(PRIO_PROCESS, (id_t)gettid(), 7));
	GOT(getpriority(PRIO_PROCESS, (id_t)gettid()));
	return unused;
}

CASE(same, every_replica_numbers_its_threads_the_same)
{
	pthread_t thread;

	for (int i = 0; i < 3; i++) {
		pthread_mutex_lock(&floor_is_taken);
		GOT(pthread_create(&thread, NULL, says_its_number, NULL));
		pthread_mutex_unlock(&floor_is_taken);
		GOT(pthread_join(thread, NULL));
	}
	GOT(getpriority(PRIO_PROCESS, 0));
	GOT(tgkill(getpid(), getpid() + 1, 0));
}
