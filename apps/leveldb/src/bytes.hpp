// Numbers as bytes, big-endian: what goes over the network, into the log and into LevelDB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace qwldb {

template <typename Number> void append_number(std::string &out, Number number)
{
	for (std::size_t shift = 8 * sizeof(Number); shift > 0; shift -= 8)
		out.push_back(static_cast<char>(static_cast<std::uint8_t>(number >> (shift - 8))));
}

// What is left of some bytes. Whoever takes more than there is gets nothing, and all is gone then.
class Left {
public:
	explicit Left(std::string_view bytes) : bytes_(bytes)
	{
	}

	std::string_view take(std::size_t count)
	{
		if (count > bytes_.size()) {
			short_of_ = true;
			bytes_ = {};
			return {};
		}
		std::string_view taken = bytes_.substr(0, count);
		bytes_.remove_prefix(count);
		return taken;
	}

	template <typename Number> Number number()
	{
		std::uint64_t number = 0;

		for (char byte : take(sizeof(Number)))
			number = number << 8 | static_cast<std::uint8_t>(byte);
		return static_cast<Number>(number);
	}

	std::string_view rest()
	{
		return take(bytes_.size());
	}

	// All was there, and nothing more.
	bool is_exact() const
	{
		return !short_of_ && bytes_.empty();
	}

private:
	std::string_view bytes_;
	bool short_of_ = false;
};

} // namespace qwldb
