// Checkpoints, on a thread of their own: a sync, and a call that waits for others, keep no client
// waiting.
#pragma once

#include "library.hpp"
#include "store.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace qwldb {

class Checkpoints {
public:
	// Without a store there is nothing to sync.
	Checkpoints(quorumwire_t *handle, std::uint16_t learner, const Store *store);
	~Checkpoints();
	Checkpoints(const Checkpoints &) = delete;
	Checkpoints &operator=(const Checkpoints &) = delete;

	// What was written up to this instance is to be synced, and then checkpointed.
	void want(std::uint64_t upto);
	// Waits until what was wanted is done; false: not in this time.
	bool wait_for(std::chrono::milliseconds at_most);

	std::uint64_t done() const
	{
		return done_;
	}

	std::uint64_t trimmed() const
	{
		return trimmed_;
	}

private:
	void run();
	void make(std::uint64_t upto);

	quorumwire_t *handle_;
	std::uint16_t learner_;
	const Store *store_;
	std::mutex mutex_;
	std::condition_variable changed_;
	std::uint64_t wanted_ = 0;
	std::atomic<std::uint64_t> done_{ 0 };
	std::atomic<std::uint64_t> trimmed_{ 0 };
	bool is_stopped_ = false;
	std::thread thread_;
};

} // namespace qwldb
