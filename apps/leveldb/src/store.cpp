// Keys of LevelDB: `f` the format, `a` the last instance that was applied, `s` and a number a
// session, `u` and a key what clients wrote.
#include "store.hpp"

#include "bytes.hpp"
#include "descriptor.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>
#include <system_error>
#include <unistd.h>

namespace qwldb {

namespace {

constexpr const char *FORMAT_KEY = "f";
constexpr const char *APPLIED_KEY = "a";
constexpr char SESSION_PREFIX = 's';
constexpr char USER_PREFIX = 'u';
constexpr const char *FORMAT = "quorumwire-leveldb 1";
constexpr int FILTER_BITS = 10;
constexpr int OPEN_FILES_MAX = 500;

void must(const leveldb::Status &status, const std::string &folder)
{
	if (!status.ok())
		throw std::runtime_error(folder + ": LevelDB says: " + status.ToString());
}

std::string user_key(std::string_view key)
{
	std::string full(1, USER_PREFIX);

	return full.append(key);
}

std::string session_key(std::uint64_t number)
{
	std::string full(1, SESSION_PREFIX);

	append_number(full, number);
	return full;
}

leveldb::Slice slice(std::string_view text)
{
	return leveldb::Slice(text.data(), text.size());
}

std::string_view view(const leveldb::Slice &slice)
{
	return std::string_view(slice.data(), slice.size());
}

[[noreturn]] void fail(const std::string &path)
{
	throw std::system_error(errno, std::generic_category(), path);
}

} // namespace

Store::Store(const std::string &folder, std::size_t sessions_max)
	: folder_(folder + "/db"), sessions_max_(sessions_max),
	  filter_(leveldb::NewBloomFilterPolicy(FILTER_BITS))
{
	leveldb::Options options;
	leveldb::DB *db = nullptr;

	std::filesystem::create_directories(folder_);
	options.create_if_missing = true;
	options.paranoid_checks = true;
	options.filter_policy = filter_.get();
	options.max_open_files = OPEN_FILES_MAX;
	leveldb::Status status = leveldb::DB::Open(options, folder_, &db);
	db_.reset(db);
	if (status.IsCorruption())
		throw FolderLost(folder_ + " is damaged: " + status.ToString());
	must(status, folder_);
	load();
}

Store::~Store() = default;

void Store::load()
{
	std::string format, applied;
	leveldb::Status status = db_->Get({}, FORMAT_KEY, &format);
	std::unique_ptr<leveldb::Iterator> all(db_->NewIterator({}));

	if (status.IsNotFound()) {
		all->SeekToFirst();
		if (all->Valid())
			throw std::runtime_error(folder_ + " holds LevelDB's files of another program");
		leveldb::WriteBatch batch;
		batch.Put(FORMAT_KEY, FORMAT);
		write(&batch, 0);
		return;
	}
	must(status, folder_);
	if (format != FORMAT)
		throw std::runtime_error(folder_ + " has the format \"" + format +
					 "\"; this program reads \"" + FORMAT + "\"");
	must(db_->Get({}, APPLIED_KEY, &applied), folder_);
	applied_ = Left(applied).number<std::uint64_t>();
	std::string first(1, SESSION_PREFIX);
	for (all->Seek(first); all->Valid() && all->key().starts_with(first); all->Next()) {
		Left key(view(all->key()).substr(1)), value(view(all->value()));
		Session session;
		std::uint64_t number = key.number<std::uint64_t>();
		session.sequence = value.number<std::uint64_t>();
		session.used = value.number<std::uint64_t>();
		session.status = static_cast<Status>(value.number<std::uint8_t>());
		if (!key.is_exact() || !value.is_exact())
			throw FolderLost(folder_ + " is damaged: a session makes no sense");
		sessions_.emplace(number, session);
		by_use_.emplace(session.used, number);
	}
	must(all->status(), folder_);
}

void Store::write(leveldb::WriteBatch *batch, std::uint64_t instance)
{
	std::string applied;

	append_number(applied, instance);
	batch->Put(APPLIED_KEY, applied);
	must(db_->Write({}, batch), folder_);
}

void Store::write_applied(std::uint64_t instance)
{
	leveldb::WriteBatch batch;

	write(&batch, instance);
	applied_ = instance;
}

void Store::remember(leveldb::WriteBatch *batch, std::uint64_t number, const Session &session)
{
	std::string value;

	append_number(value, session.sequence);
	append_number(value, session.used);
	append_number(value, static_cast<std::uint8_t>(session.status));
	batch->Put(session_key(number), value);
	auto [known, is_new] = sessions_.try_emplace(number);
	if (!is_new)
		by_use_.erase(known->second.used);
	known->second = session;
	by_use_.emplace(session.used, number);
}

Outcome Store::open_session(std::uint64_t instance)
{
	leveldb::WriteBatch batch;
	Outcome outcome;
	Session session;

	if (sessions_.size() >= sessions_max_) {
		auto oldest = by_use_.begin();
		batch.Delete(session_key(oldest->second));
		sessions_.erase(oldest->second);
		by_use_.erase(oldest);
	}
	session.used = instance;
	remember(&batch, instance, session);
	write(&batch, instance);
	append_number(outcome.body, instance); // its number: no other session has it
	return outcome;
}

Outcome Store::change(std::uint64_t instance, const Operation &operation)
{
	auto known = sessions_.find(operation.session);
	leveldb::WriteBatch batch;
	Outcome outcome;

	if (known == sessions_.end())
		return { Status::no_session, {} };
	if (operation.sequence == known->second.sequence)
		return { known->second.status, {} };
	if (operation.sequence < known->second.sequence)
		return { Status::superseded, {} };
	std::string key = user_key(operation.key);
	if (operation.kind == Kind::put) {
		batch.Put(key, slice(operation.value));
	} else {
		outcome.status = get(operation.key).status;
		batch.Delete(key);
	}
	remember(&batch, operation.session, { operation.sequence, instance, outcome.status });
	write(&batch, instance);
	return outcome;
}

Outcome Store::apply(std::uint64_t instance, const Operation &operation)
{
	Outcome outcome;

	switch (operation.kind) {
	case Kind::open_session:
		outcome = open_session(instance);
		break;
	case Kind::put:
	case Kind::remove:
		outcome = change(instance, operation);
		break;
	case Kind::echo:
		outcome.status = Status::refused;
		break;
	case Kind::read:
	case Kind::get:
	case Kind::status:
	case Kind::marker:
		break;
	}
	applied_ = instance;
	return outcome;
}

Outcome Store::get(std::string_view key) const
{
	Outcome outcome;
	leveldb::Status status = db_->Get({}, user_key(key), &outcome.body);

	if (status.IsNotFound())
		return { Status::not_found, {} };
	must(status, folder_);
	return outcome;
}

void sync_folder(const std::string &folder)
{
	Descriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));

	if (opened.is_none() || fsync(opened.number()) != 0)
		fail(folder);
}

// LevelDB syncs only the log that it writes to. The one before is closed without a sync, and is
// removed once a table that holds the same is on disk; until then a power cut could leave a hole in
// the middle. So all logs that there are are synced. One that is gone meanwhile is on disk as a
// table.
void Store::sync() const
{
	for (const auto &entry : std::filesystem::directory_iterator(folder_)) {
		if (entry.path().extension() != ".log")
			continue;
		Descriptor log(open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
		if (log.is_none() && errno == ENOENT)
			continue;
		if (log.is_none() || fdatasync(log.number()) != 0)
			fail(entry.path());
	}
	sync_folder(folder_);
}

} // namespace qwldb
