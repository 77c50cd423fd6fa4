// Copies file by file beside the place, syncs, and renames.
#include "copy.hpp"

#include "descriptor.hpp"
#include "store.hpp"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <stdexcept>
#include <system_error>

namespace qwldb {

namespace fs = std::filesystem;

namespace {

// LevelDB's own lock, held: no server runs on the folder, and none begins to.
class Locked {
public:
	explicit Locked(const fs::path &db) : descriptor_(open((db / "LOCK").c_str(), O_RDWR | O_CLOEXEC))
	{
		struct flock lock = {};

		if (descriptor_.is_none())
			throw std::system_error(errno, std::generic_category(), (db / "LOCK").string());
		lock.l_type = F_WRLCK;
		lock.l_whence = SEEK_SET;
		if (fcntl(descriptor_.number(), F_SETLK, &lock) != 0)
			throw std::runtime_error(db.string() + ": a server runs on it: stop that one first");
	}

private:
	Descriptor descriptor_;
};

void sync_file(const fs::path &path)
{
	Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));

	if (file.is_none() || fsync(file.number()) != 0)
		throw std::system_error(errno, std::generic_category(), path.string());
}

} // namespace

void copy_folder(const std::string &from, const std::string &to)
{
	fs::path made = to + ".copying";

	if (!fs::is_directory(fs::path(from) / "db"))
		throw std::runtime_error(from + " is no folder of a server: it has no folder db");
	if (fs::exists(to) && !fs::is_empty(to))
		throw std::runtime_error(to + " is there, and is not empty: move it away first");
	Locked locked(fs::path(from) / "db");
	fs::remove_all(made);
	fs::copy(from, made, fs::copy_options::recursive);
	for (const auto &entry : fs::recursive_directory_iterator(made)) {
		if (entry.is_regular_file())
			sync_file(entry.path());
		else if (entry.is_directory())
			sync_folder(entry.path());
	}
	sync_folder(made);
	fs::rename(made, to);
	fs::path parent = fs::absolute(to).parent_path();
	sync_folder(parent);
}

} // namespace qwldb
