// The handle, and what its errors say.
#include "library.hpp"

#include <cstdio>

namespace qwldb {

namespace {

constexpr std::size_t TEXT_BYTES = 1024;

std::string error_text(quorumwire_t *handle, int error)
{
	char more[TEXT_BYTES] = {};
	std::string text = quorumwire_error_text(error);

	if (quorumwire_last_error(handle, more, sizeof(more)) > 0)
		text = text + ": " + more;
	return text;
}

} // namespace

Library::Library(const std::string &configuration)
{
	int error = quorumwire_open(configuration.c_str(), &handle_);

	if (error != QUORUMWIRE_OK)
		throw LibraryError(error_text(nullptr, error), error);
}

Library::~Library()
{
	close();
}

void Library::close()
{
	if (handle_)
		quorumwire_close(handle_);
	handle_ = nullptr;
}

std::string Library::text(int error) const
{
	return error_text(handle_, error);
}

void Library::must(int result, const char *what) const
{
	if (result < 0)
		throw LibraryError(std::string(what) + ": " + text(result), result);
}

void say(const std::string &line)
{
	std::string whole = "quorumwire-leveldb: " + line + "\n";

	std::fwrite(whole.data(), 1, whole.size(), stderr);
}

} // namespace qwldb
