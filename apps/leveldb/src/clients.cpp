// Connections, each with what it has sent, what it is owed, and how long it has been waited for.
#include "clients.hpp"

#include <algorithm>
#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

namespace qwldb {

namespace {

constexpr std::size_t RECEIVED_AT_ONCE = 64 << 10;
constexpr int ACCEPTED_AT_ONCE = 64;
// A connection that rests for this long may make room for another one.
constexpr std::chrono::seconds REST{ 1 };

void watch(int epoll, int action, int descriptor, std::uint32_t events, std::uint64_t tag)
{
	epoll_event event = {};

	event.events = events;
	event.data.u64 = tag;
	if (epoll_ctl(epoll, action, descriptor, &event) != 0)
		throw std::system_error(errno, std::generic_category(), "epoll_ctl");
}

} // namespace

Clients::Clients(int epoll, const Listener &listener, std::size_t connections_max,
		 OnRequest on_request, OnGone on_gone)
	: epoll_(epoll), listener_(listener), connections_max_(connections_max),
	  on_request_(std::move(on_request)), on_gone_(std::move(on_gone))
{
	watch(epoll_, EPOLL_CTL_ADD, listener_.descriptor, EPOLLIN, LISTENER);
}

Clients::~Clients()
{
	for (auto &[client, connection] : connections_)
		close(connection.descriptor);
	close(listener_.descriptor);
	if (!listener_.path.empty())
		unlink(listener_.path.c_str());
}

// The one that has rested for longest goes, if one rests.
bool Clients::make_room()
{
	auto now = Clock::now();
	auto longest = connections_.end();

	for (auto it = connections_.begin(); it != connections_.end(); ++it) {
		const Connection &one = it->second;
		if (one.requests == 0 && one.untaken() == 0 && now - one.active >= REST &&
		    (longest == connections_.end() || one.active < longest->second.active))
			longest = it;
	}
	if (longest == connections_.end())
		return false;
	drop(longest->first);
	return true;
}

void Clients::accept_some()
{
	for (int count = 0; count < ACCEPTED_AT_ONCE; count++) {
		int on = 1, taken = accept4(listener_.descriptor, nullptr, nullptr,
					    SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (taken < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
				// It would be said again at once: it is looked at again in a
				// second.
				watch(epoll_, EPOLL_CTL_MOD, listener_.descriptor, 0, LISTENER);
				is_paused_ = true;
			}
			return;
		}
		counters_.accepted++;
		if (connections_.size() >= connections_max_ && !make_room()) {
			std::string said;
			append_answer(said, { Status::refused, 0,
					      "too many connections, see --connections-max: try another server" });
			counters_.refused++;
			if (send(taken, said.data(), said.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
				said.clear(); // it is refused all the same
			close(taken);
			continue;
		}
		setsockopt(taken, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); // not of unix sockets
		Connection &connection = connections_[next_client_];
		connection.descriptor = taken;
		connection.active = connection.begun = Clock::now();
		connection.interest = EPOLLIN;
		watch(epoll_, EPOLL_CTL_ADD, taken, EPOLLIN, next_client_);
		next_client_++;
	}
}

bool Clients::may_read(const Connection &connection) const
{
	return !is_stopped_ && !connection.has_ended && !connection.is_closing &&
	       connection.requests < REQUESTS_MAX && connection.request_bytes < REQUEST_BYTES_MAX &&
	       connection.untaken() < UNTAKEN_BYTES;
}

void Clients::ready(std::uint64_t client, std::uint32_t events)
{
	auto found = connections_.find(client);

	if (found == connections_.end())
		return;
	Connection *connection = &found->second;
	if (events & (EPOLLERR | EPOLLHUP)) {
		drop(client);
		return;
	}
	if (events & EPOLLIN)
		receive(connection);
	touched_.push_back(client);
}

void Clients::receive(Connection *connection)
{
	char bytes[RECEIVED_AT_ONCE];
	ssize_t count = recv(connection->descriptor, bytes, sizeof(bytes), 0);

	if (count < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (count <= 0) {
		connection->has_ended = true;
		return;
	}
	if (connection->is_closing)
		return; // nobody reads that
	if (connection->in.empty())
		connection->begun = Clock::now();
	connection->active = Clock::now();
	connection->in.append(bytes, static_cast<std::size_t>(count));
}

void Clients::refuse(Connection *connection, const std::string &why)
{
	std::size_t before = connection->out.size();

	append_answer(connection->out, { Status::refused, 0, why });
	untaken_bytes_ += connection->out.size() - before;
	connection->is_closing = true;
	connection->in = std::string();
	connection->active = Clock::now();
	counters_.nonsense++;
}

void Clients::take_requests(std::uint64_t client, Connection *connection)
{
	std::string_view left = connection->in;

	if (!connection->is_greeted && may_read(*connection) && !left.empty()) {
		std::string_view said = left.substr(0, GREETING.size());
		if (said != GREETING.substr(0, said.size()))
			return refuse(connection, "a connection has to begin with \"qwldb/1\" and a newline");
		if (said.size() < GREETING.size())
			return;
		connection->is_greeted = true;
		left.remove_prefix(GREETING.size());
	}
	while (connection->is_greeted && may_read(*connection)) {
		std::string_view body;
		Framing framing = frame(left, &body);
		if (framing == Framing::part)
			break;
		if (framing == Framing::too_long)
			return refuse(connection, "a request's length; allowed: 9 to " +
							  std::to_string(FRAME_BYTES_MAX));
		std::string why;
		auto request = read_request(body, &why);
		if (!request)
			return refuse(connection, why);
		left.remove_prefix(FRAME_HEAD_BYTES + body.size());
		Ticket ticket{ client, request->number, body.size() };
		connection->requests++;
		connection->request_bytes += ticket.bytes;
		on_request_(ticket, request->operation);
	}
	if (left.size() < connection->in.size()) {
		connection->in.erase(0, connection->in.size() - left.size());
		connection->begun = Clock::now();
		if (connection->in.empty())
			connection->in.shrink_to_fit();
	}
}

bool Clients::has_room(const Ticket &ticket, std::size_t bytes) const
{
	auto found = connections_.find(ticket.client);

	return found != connections_.end() && found->second.untaken() + bytes <= ANSWER_BYTES_MAX &&
	       untaken_bytes_ + bytes <= ALL_ANSWER_BYTES_MAX;
}

void Clients::answer(const Ticket &ticket, Status status, std::string_view body)
{
	auto found = connections_.find(ticket.client);

	if (found == connections_.end())
		return;
	Connection *connection = &found->second;
	connection->requests--;
	connection->request_bytes -= ticket.bytes;
	if (status != Status::ok)
		body = body.substr(0, TEXT_BYTES_MAX);
	if (body.size() > TEXT_BYTES_MAX && !has_room(ticket, body.size())) {
		status = Status::busy;
		body = status_text(status);
	}
	if (status == Status::busy)
		counters_.busy++;
	std::size_t before = connection->out.size();
	if (before == 0)
		connection->active = Clock::now(); // from now on it may take it
	append_answer(connection->out, { status, ticket.number, body });
	untaken_bytes_ += connection->out.size() - before;
	touched_.push_back(ticket.client);
}

// Sends what goes; false: it is gone.
bool Clients::flush(Connection *connection)
{
	while (connection->untaken() > 0) {
		ssize_t count = send(connection->descriptor, connection->out.data() + connection->sent,
				     connection->untaken(), MSG_NOSIGNAL);
		if (count < 0) {
			// What was sent goes, also where the rest never does.
			if (connection->sent >= connection->untaken()) {
				connection->out.erase(0, connection->sent);
				connection->sent = 0;
			}
			return errno == EAGAIN || errno == EINTR;
		}
		connection->sent += static_cast<std::size_t>(count);
		untaken_bytes_ -= static_cast<std::size_t>(count);
		connection->active = Clock::now();
	}
	connection->out.clear();
	connection->sent = 0;
	if (connection->out.capacity() > UNTAKEN_BYTES)
		connection->out.shrink_to_fit();
	if (connection->is_closing)
		shutdown(connection->descriptor, SHUT_WR);
	return true;
}

// Looks after one connection; false: it is to be dropped.
bool Clients::settle(std::uint64_t client, Connection *connection)
{
	take_requests(client, connection);
	bool had_no_room = connection->untaken() >= UNTAKEN_BYTES;
	if (!flush(connection))
		return false;
	// Requests that came already wait for this, though nothing may come any more.
	if (had_no_room && may_read(*connection))
		touched_.push_back(client);
	if (connection->has_ended && connection->untaken() == 0 && connection->requests == 0)
		return false;
	bool reads = may_read(*connection) || (connection->is_closing && !connection->has_ended);
	std::uint32_t interest = (reads ? EPOLLIN : 0U) | (connection->untaken() > 0 ? EPOLLOUT : 0U);
	if (interest != connection->interest) {
		watch(epoll_, EPOLL_CTL_MOD, connection->descriptor, interest, client);
		connection->interest = interest;
	}
	return true;
}

void Clients::turn()
{
	// What is taken up here may be answered at once, and is touched again.
	while (!touched_.empty()) {
		std::vector<std::uint64_t> touched;
		touched.swap(touched_);
		std::sort(touched.begin(), touched.end());
		touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
		for (std::uint64_t client : touched) {
			auto found = connections_.find(client);
			if (found != connections_.end() && !settle(client, &found->second))
				drop(client);
		}
	}
}

void Clients::tick()
{
	auto now = Clock::now();
	std::vector<std::uint64_t> late;

	if (is_paused_ && !is_stopped_) {
		watch(epoll_, EPOLL_CTL_MOD, listener_.descriptor, EPOLLIN, LISTENER);
		is_paused_ = false;
	}
	for (auto &[client, connection] : connections_) {
		bool sends_late = (!connection.in.empty() || !connection.is_greeted) &&
				  may_read(connection) && now - connection.begun >= PATIENCE;
		bool takes_late = connection.untaken() > 0 && now - connection.active >= PATIENCE;
		bool closes_late = connection.is_closing && now - connection.active >= REST;
		if (sends_late || takes_late)
			counters_.slow++;
		if (sends_late || takes_late || closes_late)
			late.push_back(client);
	}
	for (std::uint64_t client : late)
		drop(client);
}

void Clients::stop()
{
	if (is_stopped_)
		return;
	is_stopped_ = true;
	watch(epoll_, EPOLL_CTL_DEL, listener_.descriptor, 0, LISTENER);
	for (auto &[client, connection] : connections_)
		touched_.push_back(client);
}

bool Clients::is_quiet() const
{
	return untaken_bytes_ == 0;
}

void Clients::drop(std::uint64_t client)
{
	auto found = connections_.find(client);

	if (found == connections_.end())
		return;
	untaken_bytes_ -= found->second.untaken();
	close(found->second.descriptor);
	bool has_requests = found->second.requests > 0;
	connections_.erase(found);
	if (has_requests)
		on_gone_(client);
}

} // namespace qwldb
