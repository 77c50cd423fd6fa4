// Words of a command line, read strictly. What makes no sense is refused with the option's name,
// what was given, and what is allowed.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace qwldb {

struct UsageError : std::runtime_error {
	using std::runtime_error::runtime_error;
};

class Options {
public:
	// Reads `--name value` and `--name=value`, of these names; anything else is a word.
	Options(int argc, char **argv, const std::vector<std::string> &names);

	bool has(const std::string &name) const;
	// What was given, or this. Throws UsageError where nothing was, and there is no default.
	std::string text(const std::string &name) const;
	std::string text(const std::string &name, const std::string &otherwise) const;
	std::uint64_t number(const std::string &name, std::uint64_t least, std::uint64_t most) const;
	std::uint64_t number(const std::string &name, std::uint64_t least, std::uint64_t most,
			     std::uint64_t otherwise) const;

	const std::vector<std::string> &words() const
	{
		return words_;
	}

private:
	std::map<std::string, std::string> given_;
	std::vector<std::string> words_;
};

} // namespace qwldb
