// Bytes to a server and back.
#include "link.hpp"

#include "address.hpp"

#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

namespace qwldb {

namespace {

constexpr std::size_t RECEIVED_AT_ONCE = 64 << 10;

int connected(const std::string &address)
{
	try {
		return connect_to(address);
	} catch (const std::system_error &error) {
		throw Gone(error.what());
	}
}

} // namespace

Link::Link(const std::string &address)
	: address_(address), descriptor_(connected(address)), out_(GREETING)
{
}

Link::~Link()
{
	close(descriptor_);
}

void Link::ask(const Request &request)
{
	append_request(out_, request);
}

void Link::send_some()
{
	if (out_.empty())
		return;
	ssize_t sent = send(descriptor_, out_.data(), out_.size(), MSG_NOSIGNAL);
	if (sent > 0)
		out_.erase(0, static_cast<std::size_t>(sent));
	else if (errno != EAGAIN && errno != EINTR && errno != ENOTCONN)
		throw Gone(address_ + ": " + std::strerror(errno));
}

void Link::pump()
{
	char bytes[RECEIVED_AT_ONCE];
	std::string_view left, body;

	send_some();
	ssize_t received = recv(descriptor_, bytes, sizeof(bytes), 0);
	if (received == 0)
		throw Gone(address_ + ": the server has ended the connection");
	if (received < 0 && errno != EAGAIN && errno != EINTR && errno != ENOTCONN)
		throw Gone(address_ + ": " + std::strerror(errno));
	if (received > 0)
		in_.append(bytes, static_cast<std::size_t>(received));
	left = in_;
	for (;;) {
		Framing framing = frame(left, &body);
		if (framing == Framing::part)
			break;
		auto answer = framing == Framing::whole ? read_answer(body) : std::nullopt;
		if (!answer)
			throw Gone(address_ + ": that is no answer of quorumwire-leveldb");
		replies_.push_back({ answer->status, answer->number, std::string(answer->body) });
		left.remove_prefix(FRAME_HEAD_BYTES + body.size());
	}
	in_.erase(0, in_.size() - left.size());
}

bool Link::next(Reply *reply)
{
	if (replies_.empty())
		return false;
	*reply = std::move(replies_.front());
	replies_.pop_front();
	return true;
}

Reply Link::ask_and_wait(const Request &request, Deadline deadline)
{
	Reply reply;

	ask(request);
	for (;;) {
		auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
			deadline - std::chrono::steady_clock::now());
		if (left.count() <= 0)
			throw Gone(address_ + ": no answer in time");
		pollfd waited = { descriptor_, static_cast<short>(POLLIN | (wants_to_send() ? POLLOUT : 0)), 0 };
		if (poll(&waited, 1, static_cast<int>(left.count())) <= 0)
			continue;
		pump();
		while (next(&reply)) {
			if (reply.number == request.number)
				return reply;
			if (reply.number == 0) // of the connection: it was refused
				throw Gone(address_ + ": " + reply.body);
		}
	}
}

} // namespace qwldb
