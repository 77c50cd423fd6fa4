// A command line's options.
#include "options.hpp"

#include <algorithm>
#include <charconv>

namespace qwldb {

Options::Options(int argc, char **argv, const std::vector<std::string> &names)
{
	for (int place = 1; place < argc; place++) {
		std::string word = argv[place];
		if (word.rfind("--", 0) != 0 || word == "--") {
			words_.push_back(word);
			continue;
		}
		std::size_t equals = word.find('=');
		std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
		if (std::find(names.begin(), names.end(), name) == names.end())
			throw UsageError("--" + name + ": there is no such option; see --help");
		if (given_.count(name))
			throw UsageError("--" + name + " is given twice");
		if (equals == std::string::npos && place + 1 == argc)
			throw UsageError("--" + name + " needs a value");
		given_[name] = equals == std::string::npos ? argv[++place] : word.substr(equals + 1);
	}
}

bool Options::has(const std::string &name) const
{
	return given_.count(name) > 0;
}

std::string Options::text(const std::string &name) const
{
	auto found = given_.find(name);

	if (found == given_.end() || found->second.empty())
		throw UsageError("--" + name + " is needed; see --help");
	return found->second;
}

std::string Options::text(const std::string &name, const std::string &otherwise) const
{
	return has(name) ? text(name) : otherwise;
}

std::uint64_t Options::number(const std::string &name, std::uint64_t least,
			      std::uint64_t most) const
{
	std::string given = text(name);
	std::uint64_t number = 0;
	const char *end = given.data() + given.size();
	auto [read, error] = std::from_chars(given.data(), end, number);

	if (error != std::errc() || read != end || number < least || number > most)
		throw UsageError("--" + name + ": '" + given + "' is given; allowed: " +
				 std::to_string(least) + " to " + std::to_string(most));
	return number;
}

std::uint64_t Options::number(const std::string &name, std::uint64_t least, std::uint64_t most,
			      std::uint64_t otherwise) const
{
	return has(name) ? number(name, least, most) : otherwise;
}

} // namespace qwldb
