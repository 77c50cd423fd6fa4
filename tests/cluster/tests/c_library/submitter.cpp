// Submits COUNT values of up to 64 KiB, many at once, in an event loop around the library's
// descriptor, and prints what became of each. Then it does what nobody should, and looks whether
// the library notices.
//
//   submitter CONFIGURATION COUNT LEARNER
#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <map>
#include <poll.h>
#include <quorumwire.h>
#include <string>

namespace {

struct Loop {
	quorumwire_t *handle;
	long waiting;
	bool poll_was_refused;
	bool close_was_refused;
};

struct Value {
	Loop *loop;
	long number;
};

void submitted(void *context, int error, std::uint64_t instance)
{
	Value *value = static_cast<Value *>(context);
	Loop *loop = value->loop;

	std::cout << value->number << ' ' << error << ' ' << instance << std::endl;
	loop->waiting--;
	loop->poll_was_refused = quorumwire_poll(loop->handle, 0) == QUORUMWIRE_ERROR_BUSY;
	loop->close_was_refused = quorumwire_close(loop->handle) == QUORUMWIRE_ERROR_BUSY;
	delete value;
}

void fail(const char *what)
{
	std::cerr << what << std::endl;
	std::exit(EXIT_FAILURE);
}

void require(bool is_so, const char *what)
{
	if (!is_so)
		fail(what);
}

void turn(Loop *loop)
{
	struct pollfd descriptor = { quorumwire_fd(loop->handle), POLLIN, 0 };

	require(descriptor.fd >= 0, "no descriptor");
	if (poll(&descriptor, 1, 60000) < 1)
		fail("nothing to poll for in a minute");
	require(quorumwire_poll(loop->handle, 0) >= 0, "poll");
}

void misuse(quorumwire_t *handle, std::uint16_t learner)
{
	char text[512];
	quorumwire_recovered_t recovered;
	std::size_t longest = quorumwire_value_bytes_max(handle);
	std::string large(longest + 1, 'x');

	require(longest >= 1048576, "the longest value");
	int error = quorumwire_submit_wait(handle, large.data(), large.size(), NULL);
	require(error == QUORUMWIRE_ERROR_TOO_LARGE, "too large");
	quorumwire_last_error(handle, text, sizeof(text));
	require(std::string(text).find(std::to_string(longest)) != std::string::npos, "the limit is not named");
	require(quorumwire_last_error(handle, text, 4) > 4 && std::string(text).size() == 3, "cut");
	error = quorumwire_submit_wait(handle, NULL, 1, NULL);
	require(error == QUORUMWIRE_ERROR_ARGUMENT, "a null value");
	require(quorumwire_deliver(handle, 1, 0, NULL, NULL) == QUORUMWIRE_ERROR_ARGUMENT, "deliver");
	require(quorumwire_recover(handle, 1, NULL) == QUORUMWIRE_ERROR_ARGUMENT, "recover");
	require(quorumwire_recover(handle, 0, &recovered) == QUORUMWIRE_ERROR_ARGUMENT, "instance 0");
	require(quorumwire_checkpoint(handle, 99, 1, NULL) == QUORUMWIRE_ERROR_NO_LEARNER, "learner");
	error = quorumwire_checkpoint(handle, learner, UINT64_MAX, NULL);
	require(error == QUORUMWIRE_ERROR_NOT_DECIDED, "a checkpoint of what is not decided");
	require(quorumwire_poll(handle, -2) == QUORUMWIRE_ERROR_ARGUMENT, "poll");
	require(quorumwire_close(handle) == QUORUMWIRE_OK, "close");
	require(quorumwire_close(handle) == QUORUMWIRE_ERROR_HANDLE, "a second close");
	require(quorumwire_poll(handle, -1) == QUORUMWIRE_ERROR_HANDLE, "poll of a closed handle");
	require(quorumwire_fd(handle) == QUORUMWIRE_ERROR_HANDLE, "descriptor of a closed handle");
}

} // namespace

int main(int argc, char **argv)
{
	Loop loop = { NULL, 0, false, false };
	long count = argc == 4 ? std::atol(argv[2]) : 0;

	if (count < 1 || quorumwire_open(argv[1], &loop.handle) != QUORUMWIRE_OK)
		fail("submitter CONFIGURATION COUNT LEARNER");
	for (long number = 0; number < count; number++) {
		std::string value = std::to_string(number) + ';';
		if (number % 10 == 9)
			value.resize(65536, 'x');
		loop.waiting++;
		Value *context = new Value{ &loop, number };
		for (;;) {
			int error = quorumwire_submit(loop.handle, value.data(), value.size(), submitted, context);
			if (error == QUORUMWIRE_OK)
				break;
			require(error == QUORUMWIRE_ERROR_BUSY, "submit");
			turn(&loop);
		}
		// Some 32 at once, so that it takes a while.
		while (loop.waiting >= 32)
			turn(&loop);
	}
	while (loop.waiting > 0)
		turn(&loop);
	require(loop.poll_was_refused, "a callback could poll");
	require(loop.close_was_refused, "a callback could close");
	misuse(loop.handle, static_cast<std::uint16_t>(std::atoi(argv[3])));
	return EXIT_SUCCESS;
}
