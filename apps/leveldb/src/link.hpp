// A client's connection to a server.
#pragma once

#include "protocol.hpp"

#include <chrono>
#include <deque>
#include <stdexcept>
#include <string>

namespace qwldb {

// The connection has ended, or cannot begin, or the answer takes too long.
struct Gone : std::runtime_error {
	using std::runtime_error::runtime_error;
};

struct Reply {
	Status status = Status::ok;
	std::uint64_t number = 0;
	std::string body;
};

class Link {
public:
	using Deadline = std::chrono::steady_clock::time_point;

	explicit Link(const std::string &address);
	~Link();
	Link(const Link &) = delete;
	Link &operator=(const Link &) = delete;

	int descriptor() const
	{
		return descriptor_;
	}

	bool wants_to_send() const
	{
		return !out_.empty();
	}

	void ask(const Request &request);
	// Sends and receives what goes without waiting. Throws Gone.
	void pump();
	void send_some();
	// The next answer that has come, if one has.
	bool next(Reply *reply);
	// Asks, and waits for the answer. Throws Gone.
	Reply ask_and_wait(const Request &request, Deadline deadline);

private:
	std::string address_;
	int descriptor_;
	std::string out_;
	std::string in_;
	std::deque<Reply> replies_;
};

} // namespace qwldb
