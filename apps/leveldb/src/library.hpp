// libquorumwire's handle, closed at the end of its scope, and its errors as exceptions.
#pragma once

#include <cstdint>
#include <quorumwire.h>
#include <stdexcept>
#include <string>

namespace qwldb {

struct LibraryError : std::runtime_error {
	LibraryError(const std::string &what, int error) : std::runtime_error(what), code(error)
	{
	}

	int code;
};

class Library {
public:
	explicit Library(const std::string &configuration);
	~Library();
	Library(const Library &) = delete;
	Library &operator=(const Library &) = delete;

	quorumwire_t *handle() const
	{
		return handle_;
	}

	// Throws if it is one.
	void must(int result, const char *what) const;
	std::string text(int error) const;
	// Whoever waits in another thread returns.
	void close();

private:
	quorumwire_t *handle_ = nullptr;
};

// One line on the standard error.
void say(const std::string &line);

} // namespace qwldb
