// Connections of clients: bytes in, requests out, answers back. What a client may have under way,
// and what waits for it, is bounded, so one that sends nonsense, or takes nothing, costs the others
// nothing.
#pragma once

#include "address.hpp"
#include "protocol.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace qwldb {

using Clock = std::chrono::steady_clock;

// Requests of one connection that may wait for their answers, and bytes of them. No more is read
// then.
constexpr std::size_t REQUESTS_MAX = 64;
constexpr std::size_t REQUEST_BYTES_MAX = 1 << 20;
// Answers that wait to be taken: no more requests are read of a connection that has so many.
constexpr std::size_t UNTAKEN_BYTES = 64 << 10;
// A value is given only where it has room within these: of one connection, and of all.
constexpr std::size_t ANSWER_BYTES_MAX = 4 << 20;
constexpr std::size_t ALL_ANSWER_BYTES_MAX = 64 << 20;
// A request that has begun comes within this time, and an answer is taken within it.
constexpr std::chrono::seconds PATIENCE{ 30 };

// Who gets an answer, and what its request counts.
struct Ticket {
	std::uint64_t client = 0; // none: 0
	std::uint64_t number = 0;
	std::size_t bytes = 0;
};

struct ClientCounters {
	std::uint64_t accepted = 0;
	std::uint64_t refused = 0;  // too many connections
	std::uint64_t nonsense = 0; // ended for what they sent
	std::uint64_t slow = 0;     // ended for what they did not take, or did not send
	std::uint64_t busy = 0;     // answers without room
};

class Clients {
public:
	using OnRequest = std::function<void(const Ticket &, const Operation &)>;
	// Nobody waits for what this client asked any more.
	using OnGone = std::function<void(std::uint64_t client)>;

	Clients(int epoll, const Listener &listener, std::size_t connections_max, OnRequest on_request,
		OnGone on_gone);
	~Clients();
	Clients(const Clients &) = delete;
	Clients &operator=(const Clients &) = delete;

	// What epoll says of the listener's tag, and of a connection, whose tags begin behind it.
	static constexpr std::uint64_t LISTENER = 15;
	void accept_some();
	void ready(std::uint64_t client, std::uint32_t events);
	// Whether an answer of so many bytes has room. If not, nothing needs to be read for it.
	bool has_room(const Ticket &ticket, std::size_t bytes) const;
	// Answers a request. Its client may be gone.
	void answer(const Ticket &ticket, Status status, std::string_view body);
	// At the end of each turn: sends, and takes up what may go on.
	void turn();
	// About every second: ends those that keep it waiting.
	void tick();
	// Nobody comes any more, and nothing more is read.
	void stop();
	// All answers are taken.
	bool is_quiet() const;

	std::size_t count() const
	{
		return connections_.size();
	}

	const ClientCounters &counters() const
	{
		return counters_;
	}

private:
	struct Connection {
		int descriptor = -1;
		std::string in;
		std::string out;
		std::size_t sent = 0; // of `out`
		std::size_t requests = 0;
		std::size_t request_bytes = 0;
		bool is_greeted = false;
		bool has_ended = false; // it sends nothing more
		bool is_closing = false; // after this answer
		std::uint32_t interest = 0;
		Clock::time_point active;  // when it last sent or took something
		Clock::time_point begun;   // when what it has not sent whole began

		std::size_t untaken() const
		{
			return out.size() - sent;
		}
	};

	bool may_read(const Connection &connection) const;
	void receive(Connection *connection);
	void take_requests(std::uint64_t client, Connection *connection);
	void refuse(Connection *connection, const std::string &why);
	bool flush(Connection *connection);
	bool settle(std::uint64_t client, Connection *connection);
	void drop(std::uint64_t client);
	bool make_room();

	int epoll_;
	Listener listener_;
	std::size_t connections_max_;
	OnRequest on_request_;
	OnGone on_gone_;
	std::map<std::uint64_t, Connection> connections_;
	std::vector<std::uint64_t> touched_; // to be looked at, at the end of the turn
	std::uint64_t next_client_ = LISTENER + 1;
	std::size_t untaken_bytes_ = 0; // of all
	bool is_stopped_ = false;
	bool is_paused_ = false; // no descriptor was left
	ClientCounters counters_;
};

} // namespace qwldb
