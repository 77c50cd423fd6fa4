// Addresses, looked up and opened.
#include "address.hpp"

#include "descriptor.hpp"

#include <cerrno>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/un.h>
#include <system_error>
#include <unistd.h>

namespace qwldb {

namespace {

constexpr const char *UNIX_PREFIX = "unix:";
constexpr int BACKLOG = 128;

[[noreturn]] void fail(const std::string &address)
{
	throw std::system_error(errno, std::generic_category(), address);
}

int open_socket(int family)
{
	return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

bool is_unix(const std::string &address)
{
	return address.rfind(UNIX_PREFIX, 0) == 0;
}

sockaddr_un unix_address(const std::string &address)
{
	std::string path = address.substr(std::strlen(UNIX_PREFIX));
	sockaddr_un place = {};

	if (path.empty() || path.size() >= sizeof(place.sun_path))
		throw std::invalid_argument("'" + address + "' is given; allowed: HOST:PORT, or unix:PATH with a path of 1 to " +
					    std::to_string(sizeof(place.sun_path) - 1) + " bytes");
	place.sun_family = AF_UNIX;
	std::memcpy(place.sun_path, path.data(), path.size());
	return place;
}

struct Freed {
	void operator()(addrinfo *list) const
	{
		freeaddrinfo(list);
	}
};

std::unique_ptr<addrinfo, Freed> look_up(const std::string &address, int flags)
{
	std::size_t colon = address.rfind(':');
	addrinfo hints = {}, *found = nullptr;

	if (colon == std::string::npos || colon == 0 || colon + 1 == address.size())
		throw std::invalid_argument("'" + address + "' is given; allowed: HOST:PORT, or unix:PATH");
	std::string host = address.substr(0, colon), port = address.substr(colon + 1);
	if (host.size() > 2 && host.front() == '[' && host.back() == ']')
		host = host.substr(1, host.size() - 2);
	hints.ai_socktype = SOCK_STREAM;
	hints.ai_flags = flags | AI_NUMERICSERV;
	int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
	if (error != 0)
		throw std::invalid_argument("'" + address + "' is given: " + gai_strerror(error) +
					    "; allowed: HOST:PORT, or unix:PATH");
	return std::unique_ptr<addrinfo, Freed>(found);
}

std::string bound_address(int descriptor)
{
	sockaddr_storage place = {};
	socklen_t bytes = sizeof(place);
	char host[NI_MAXHOST], port[NI_MAXSERV];

	getsockname(descriptor, reinterpret_cast<sockaddr *>(&place), &bytes);
	getnameinfo(reinterpret_cast<sockaddr *>(&place), bytes, host, sizeof(host), port,
		    sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
	return place.ss_family == AF_INET6 ? "[" + std::string(host) + "]:" + port :
					     std::string(host) + ":" + port;
}

// Whether nobody listens there: a server that was killed leaves its socket behind.
bool is_left_over(const sockaddr_un &place)
{
	Descriptor probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
	const sockaddr *named = reinterpret_cast<const sockaddr *>(&place);

	return !probe.is_none() && connect(probe.number(), named, sizeof(place)) != 0 &&
	       errno == ECONNREFUSED;
}

Listener listen_on_unix(const std::string &address)
{
	sockaddr_un place = unix_address(address);
	const sockaddr *named = reinterpret_cast<const sockaddr *>(&place);
	Descriptor opened(open_socket(AF_UNIX));

	if (opened.is_none())
		fail(address);
	int bound = bind(opened.number(), named, sizeof(place));
	if (bound != 0 && errno == EADDRINUSE && is_left_over(place)) {
		unlink(place.sun_path);
		bound = bind(opened.number(), named, sizeof(place));
	}
	if (bound != 0 || listen(opened.number(), BACKLOG) != 0)
		fail(address);
	return { opened.release(), address, place.sun_path };
}

} // namespace

Listener listen_on(const std::string &address)
{
	if (is_unix(address))
		return listen_on_unix(address);
	auto found = look_up(address, AI_PASSIVE);
	Descriptor opened(open_socket(found->ai_family));
	int on = 1;

	if (opened.is_none())
		fail(address);
	setsockopt(opened.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(opened.number(), found->ai_addr, found->ai_addrlen) != 0 ||
	    listen(opened.number(), BACKLOG) != 0)
		fail(address);
	std::string address_bound = bound_address(opened.number());
	return { opened.release(), address_bound, {} };
}

int connect_to(const std::string &address)
{
	sockaddr_un path = {};
	std::unique_ptr<addrinfo, Freed> found;
	const sockaddr *place = reinterpret_cast<const sockaddr *>(&path);
	socklen_t bytes = sizeof(path);
	int on = 1;

	if (is_unix(address)) {
		path = unix_address(address);
	} else {
		found = look_up(address, 0);
		place = found->ai_addr;
		bytes = found->ai_addrlen;
	}
	Descriptor opened(open_socket(place->sa_family));
	if (opened.is_none())
		fail(address);
	setsockopt(opened.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); // not of unix sockets
	if (connect(opened.number(), place, bytes) != 0 && errno != EINPROGRESS)
		fail(address);
	return opened.release();
}

} // namespace qwldb
