/* What all cases share, and which of them is run. */
#include "cases.h"

#include <stdarg.h>

static struct one_case *first_case, **last_case = &first_case;
static FILE *print_out;
static int control = -1;

in_addr_t host;
uint16_t first_port;
volatile sig_atomic_t signals;

void add_case(struct one_case *added)
{
	*last_case = added;
	last_case = &added->next;
}

static void stop(const char *why)
{
	fprintf(print_out ? print_out : stderr, "stopped: %s: %s\n", why, strerror(errno));
	exit(3);
}

void say(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vfprintf(print_out, format, list);
	va_end(list);
	fflush(print_out);
}

void say_result(const char *what, long result, int error)
{
	if (result < 0)
		say("%s = %ld %s\n", what, result, error ? strerrorname_np(error) : "without an error");
	else
		say("%s = %ld\n", what, result);
}

void say_bytes(const void *bytes, ssize_t count)
{
	const unsigned char *at = bytes;
	uint32_t sum = 2166136261U;

	if (count < 0)
		return;
	for (ssize_t i = 0; i < count; i++)
		sum = (sum ^ at[i]) * 16777619U;
	if (count > 64)
		say("\t%zd bytes, sum %08x\n", count, sum);
	else if (count > 0)
		say("\t\"%.*s\"\n", (int)count, (const char *)bytes);
}

void say_events(uint32_t events)
{
	static const struct {
		uint32_t bit;
		const char *name;
	} names[] = {
		{ EPOLLIN, "IN" },	   { EPOLLPRI, "PRI" },	      { EPOLLOUT, "OUT" },
		{ EPOLLERR, "ERR" },	   { EPOLLHUP, "HUP" },	      { EPOLLRDHUP, "RDHUP" },
		{ EPOLLRDNORM, "RDNORM" }, { EPOLLRDBAND, "RDBAND" }, { EPOLLWRNORM, "WRNORM" },
		{ EPOLLWRBAND, "WRBAND" }, { POLLNVAL, "NVAL" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (events & names[i].bit)
			say(" %s", names[i].name);
		events &= ~names[i].bit;
	}
	if (events)
		say(" and %x", events);
}

void say_address(const char *what, const struct sockaddr_in *address)
{
	say("%s: family %d, %s:%d\n", what, address->sin_family, inet_ntoa(address->sin_addr),
	    ntohs(address->sin_port));
}

void say_found(const struct epoll_event *events, int count)
{
	for (int i = 0; i < count; i++) {
		say("\t%llu:", (unsigned long long)events[i].data.u64);
		say_events(events[i].events);
		say("\n");
	}
}

void say_polled(const struct pollfd *wanted, int count, int result)
{
	for (int i = 0; i < count && result >= 0; i++) {
		say("\t%d:", i);
		say_events((uint32_t)(uint16_t)wanted[i].revents);
		say("\n");
	}
}

static void send_line(const char *how, const char *format, va_list list)
{
	char line[512];
	int count = snprintf(line, sizeof(line), "%s ", how);

	count += vsnprintf(line + count, sizeof(line) - (size_t)count - 1, format, list);
	line[count++] = '\n';
	if (write(control, line, (size_t)count) != count)
		stop("the test does not listen");
}

void ask(const char *format, ...)
{
	va_list list;
	char answer;
	ssize_t got;

	va_start(list, format);
	send_line("ask", format, list);
	va_end(list);
	do
		got = read(control, &answer, 1);
	while (got < 0 && errno == EINTR);
	if (got != 1 || answer != 'k')
		stop("the test does not answer");
}

void tell(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	send_line("tell", format, list);
	va_end(list);
}

struct sockaddr_in address_at(int port_offset)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)(first_port + port_offset)) };

	at.sin_addr.s_addr = host;
	return at;
}

static int bound(int port_offset, int type)
{
	struct sockaddr_in at = address_at(port_offset);
	int made = socket(AF_INET, type, 0), yes = 1;

	if (made < 0 || setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) ||
	    bind(made, (struct sockaddr *)&at, sizeof(at)))
		stop("no socket");
	return made;
}

int listening_at(int port_offset, int flags)
{
	int made = bound(port_offset, SOCK_STREAM | flags);

	if (listen(made, 64))
		stop("listen");
	return made;
}

int listening(int flags)
{
	return listening_at(0, flags);
}

int bound_datagrams(int flags)
{
	return bound(0, SOCK_DGRAM | flags);
}

int client(int listener, int number)
{
	int made;

	ask("connect %d 0", number);
	made = accept(listener, NULL, NULL);
	if (made < 0)
		stop("accept");
	return made;
}

int unseen(int number)
{
	return number;
}

int set_nonblocking(int descriptor)
{
	return fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

void count_signal(int number)
{
	(void)number;
	signals++;
}

void handle(int number, int flags)
{
	struct sigaction action = { .sa_handler = count_signal, .sa_flags = flags };

	if (sigaction(number, &action, NULL))
		stop("sigaction");
}

/* Where descriptors of the cases are not. */
static int moved(int descriptor, int to)
{
	if (dup2(descriptor, to) != to || close(descriptor))
		stop("dup2");
	return to;
}

static void begin(char **arguments)
{
	int listener, file = open(arguments[3], O_WRONLY | O_CREAT | O_TRUNC, 0600);

	print_out = fdopen(moved(file, 200), "w");
	if (!print_out)
		exit(4);
	host = inet_addr(arguments[1]);
	first_port = (uint16_t)atoi(arguments[2]);
	listener = listening_at(9, 0);
	control = accept(listener, NULL, NULL);
	if (control < 0)
		stop("accept");
	control = moved(control, 201);
	close(listener);
}

/* The case, the address, the first port, and the file for the print-out; without: says which cases
 * there are. */
int main(int count, char **arguments)
{
	for (struct one_case *each = first_case; each; each = each->next) {
		if (count == 1) {
			printf("%s %s\n", each->group, each->name);
		} else if (count == 5 && !strcmp(each->name, arguments[1])) {
			begin(arguments + 1);
			each->run();
			say("done\n");
			return 0;
		}
	}
	return count == 1 ? 0 : 2;
}
