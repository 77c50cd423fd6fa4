// Where a server listens, and how a client gets there: HOST:PORT, or unix:PATH.
#pragma once

#include <string>

namespace qwldb {

struct Listener {
	int descriptor = -1;
	std::string address; // with the port that it got
	std::string path;    // of a unix socket, to be removed at the end
};

// Throws std::invalid_argument where the text makes no sense, std::system_error where the system
// refuses.
Listener listen_on(const std::string &address);
// A connection that does not block, and may not be there yet.
int connect_to(const std::string &address);

} // namespace qwldb
