// What is replicated: keys and values in LevelDB, with the sessions of clients and how far it is.
// One thread uses it, but for `sync`.
#pragma once

#include "protocol.hpp"

#include <cstdint>
#include <leveldb/db.h>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>

namespace leveldb {
class FilterPolicy;
class WriteBatch;
} // namespace leveldb

namespace qwldb {

// Sessions that are remembered. A new one takes the place of the one that was not used for longest.
// It follows from the log alone which, so the number is the same on all servers.
constexpr std::size_t SESSIONS_MAX = 16384;

// The folder cannot be used, or lacks what nobody keeps any more: begin from another server's.
struct FolderLost : std::runtime_error {
	using std::runtime_error::runtime_error;
};

struct Outcome {
	Status status = Status::ok;
	std::string body;
};

class Store {
public:
	// Opens the folder, or makes it.
	explicit Store(const std::string &folder, std::size_t sessions_max = SESSIONS_MAX);
	~Store();

	// The last instance whose effect is here.
	std::uint64_t applied() const
	{
		return applied_;
	}

	std::size_t sessions() const
	{
		return sessions_.size();
	}

	// Carries out what stands at the next instance. Its effect, what its session has to
	// remember and the instance are written at once, or not at all. What changes nothing is not
	// written.
	Outcome apply(std::uint64_t instance, const Operation &operation);
	Outcome get(std::string_view key) const;
	// Writes that it is as far as this instance: the last ones changed nothing.
	void write_applied(std::uint64_t instance);
	// All that was written so far is on disk when it returns. Any thread may call it.
	void sync() const;

private:
	struct Session {
		std::uint64_t sequence = 0; // of its last request
		std::uint64_t used = 0;     // the instance of that
		Status status = Status::ok; // what it was told
	};

	void load();
	void remember(leveldb::WriteBatch *batch, std::uint64_t number, const Session &session);
	Outcome open_session(std::uint64_t instance);
	Outcome change(std::uint64_t instance, const Operation &operation);
	void write(leveldb::WriteBatch *batch, std::uint64_t instance);

	std::string folder_;
	std::size_t sessions_max_;
	std::unique_ptr<const leveldb::FilterPolicy> filter_;
	std::unique_ptr<leveldb::DB> db_;
	std::uint64_t applied_ = 0;
	std::unordered_map<std::uint64_t, Session> sessions_;
	std::map<std::uint64_t, std::uint64_t> by_use_; // the instance of its last request, and its number
};

// What is on disk when a call has returned.
void sync_folder(const std::string &folder);

} // namespace qwldb
