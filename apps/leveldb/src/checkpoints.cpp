// Sync first, then say so: what is checkpointed may be forgotten by everybody else.
#include "checkpoints.hpp"

#include <cstdlib>
#include <unistd.h>

namespace qwldb {

namespace {

constexpr std::chrono::seconds PAUSE_AFTER_ERROR{ 1 };

} // namespace

Checkpoints::Checkpoints(quorumwire_t *handle, std::uint16_t learner, const Store *store)
	: handle_(handle), learner_(learner), store_(store)
{
	thread_ = std::thread([this] { run(); });
}

Checkpoints::~Checkpoints()
{
	{
		std::lock_guard<std::mutex> guard(mutex_);
		is_stopped_ = true;
	}
	changed_.notify_all();
	thread_.join();
}

void Checkpoints::want(std::uint64_t upto)
{
	{
		std::lock_guard<std::mutex> guard(mutex_);
		wanted_ = upto;
	}
	changed_.notify_all();
}

bool Checkpoints::wait_for(std::chrono::milliseconds at_most)
{
	std::unique_lock<std::mutex> guard(mutex_);

	return changed_.wait_for(guard, at_most, [this] { return done_ >= wanted_; });
}

void Checkpoints::make(std::uint64_t upto)
{
	std::uint64_t trimmed = 0;

	try {
		if (store_)
			store_->sync();
	} catch (const std::exception &error) {
		// What a disk could not write once it may have dropped: what is in memory is no
		// proof any more.
		say("cannot sync, and ends: " + std::string(error.what()));
		_exit(EXIT_FAILURE);
	}
	int error = quorumwire_checkpoint(handle_, learner_, upto, &trimmed);
	std::unique_lock<std::mutex> guard(mutex_);
	if (error == QUORUMWIRE_OK) {
		done_ = upto;
		trimmed_ = trimmed;
		changed_.notify_all();
	} else if (!is_stopped_) {
		// A deployment takes it only when it has delivered that again, which it does after
		// a start.
		if (error != QUORUMWIRE_ERROR_NOT_DECIDED)
			say("checkpoint " + std::to_string(upto) + " is tried again in a second: " +
			    quorumwire_error_text(error));
		changed_.wait_for(guard, PAUSE_AFTER_ERROR, [this] { return is_stopped_; });
	}
}

void Checkpoints::run()
{
	for (;;) {
		std::uint64_t upto;
		{
			std::unique_lock<std::mutex> guard(mutex_);
			changed_.wait(guard, [this] { return is_stopped_ || wanted_ > done_; });
			if (is_stopped_)
				return;
			upto = wanted_;
		}
		make(upto);
	}
}

} // namespace qwldb
