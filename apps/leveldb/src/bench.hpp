// Load for servers, with so many requests under way all the time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace qwldb {

enum class Mix { read, get, put, remove, get_and_put, echo };

struct Load {
	std::vector<std::string> servers;
	Mix mix = Mix::get_and_put;
	std::size_t outstanding = 1;
	std::uint64_t keys = 10000;
	std::size_t value_bytes = 100;
	std::chrono::milliseconds time{ 10000 };
	bool is_each_key_once = false; // then the time does not matter
	std::chrono::milliseconds patience{ 10000 };
};

struct Measured {
	std::uint64_t operations = 0;
	std::uint64_t errors = 0;
	std::string last_error;
	double seconds = 0;
	double p50_us = 0, p99_us = 0, mean_us = 0;
};

// Throws Gone when a server cannot be used.
Measured run_load(const Load &load);

} // namespace qwldb
