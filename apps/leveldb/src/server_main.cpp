// The program `quorumwire-leveldb`: its command line, its end, and what it says when it cannot go
// on.
#include "copy.hpp"
#include "library.hpp"
#include "options.hpp"
#include "server.hpp"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace qwldb;

constexpr int EXIT_USAGE = 2;
// Starting it again does not help: a supervisor is not to.
constexpr int EXIT_FOLDER_LOST = 3;
constexpr std::chrono::seconds OPEN_PAUSE{ 1 };

constexpr const char *HELP =
	R"(quorumwire-leveldb: LevelDB, replicated: one server with its own copy (docs/leveldb.md)

  quorumwire-leveldb --configuration FILE --learner N --dir DIR --listen ADDRESS [OPTION...]
  quorumwire-leveldb --copy-from OTHER-DIR --dir DIR

  --configuration FILE     libquorumwire's: a replica group, or a Paxos deployment
  --learner N              which learner this server is, 0 to 65535
  --dir DIR                its folder, made if it is not there; not with --application echo
  --listen ADDRESS         for clients: HOST:PORT (port 0: any), or unix:PATH
  --application NAME       leveldb (the default), or echo: answers what was sent, and keeps nothing
  --checkpoint-values N    a checkpoint after so many instances, 1 to 1000000; 512
  --checkpoint-ms N        and after this time, if there was any, 1 to 3600000; 1000
  --connections-max N      of clients, 1 to 10000; 256
  --copy-from OTHER-DIR    makes DIR as a copy of another server's folder, which must not run, and ends

Exit codes: 0 it was told to end (SIGTERM, SIGINT); 1 it failed; 2 its options make no sense;
3 its folder lacks what nobody keeps any more, or is damaged: it has to begin with --copy-from.
)";

bool is_asked_for(int argc, char **argv, const char *word)
{
	for (int place = 1; place < argc; place++) {
		if (std::string(argv[place]) == word)
			return true;
	}
	return false;
}

Application application(const Options &given)
{
	std::string name = given.text("application", "leveldb");

	if (name == "leveldb")
		return Application::leveldb;
	if (name == "echo")
		return Application::echo;
	throw UsageError("--application: '" + name + "' is given; allowed: leveldb, echo");
}

ServerOptions server_options(const Options &given)
{
	ServerOptions options;

	options.configuration = given.text("configuration");
	options.listen = given.text("listen");
	options.learner = static_cast<std::uint16_t>(given.number("learner", 0, UINT16_MAX));
	options.application = application(given);
	if (options.application == Application::leveldb)
		options.dir = given.text("dir");
	else if (given.has("dir"))
		throw UsageError("--dir is given; with --application echo nothing is kept");
	options.checkpoint_values =
		given.number("checkpoint-values", 1, 1000000, options.checkpoint_values);
	options.checkpoint_pause = std::chrono::milliseconds(
		given.number("checkpoint-ms", 1, 3600000,
			     static_cast<std::uint64_t>(options.checkpoint_pause.count())));
	options.connections_max = given.number("connections-max", 1, 10000, options.connections_max);
	return options;
}

// LevelDB's files, and a connection each.
void allow_open_files()
{
	rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

// Waits for signals on a thread of its own. The first one ends it in order, the second at once.
int stop_at_signals()
{
	int stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sigset_t signals;

	if (stop < 0)
		throw std::system_error(errno, std::generic_category(), "eventfd");
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	pthread_sigmask(SIG_BLOCK, &signals, nullptr); // threads that come have it, too
	std::thread([signals, stop] {
		int signal;
		sigwait(&signals, &signal);
		if (eventfd_write(stop, 1) == 0)
			sigwait(&signals, &signal);
		_exit(EXIT_FAILURE);
	}).detach();
	return stop;
}

bool is_told_to_stop(int stop)
{
	eventfd_t count;

	return eventfd_read(stop, &count) == 0;
}

// Nobody can be reached, or leads, for a while: that is no reason to end.
bool may_pass(const LibraryError &error)
{
	return error.code == QUORUMWIRE_ERROR_NOT_CARRIED_OUT ||
	       error.code == QUORUMWIRE_ERROR_OUTCOME_UNKNOWN;
}

void serve(const ServerOptions &options)
{
	int stop = stop_at_signals();

	allow_open_files();
	for (;;) {
		try {
			Library library(options.configuration);
			Server(options, library, stop).run();
			return;
		} catch (const LibraryError &error) {
			if (!may_pass(error))
				throw;
			say(std::string(error.what()) + "; it tries again");
		}
		std::this_thread::sleep_for(OPEN_PAUSE);
		if (is_told_to_stop(stop))
			return;
	}
}

void copy(const Options &given)
{
	std::string from = given.text("copy-from"), to = given.text("dir");

	copy_folder(from, to);
	say(to + " is a copy of " + from + "; start the server without --copy-from");
	if (!std::filesystem::exists(std::filesystem::path(from) / "learner"))
		say(from + " has no folder learner: on a Paxos deployment, what the library's configuration names "
			   "`dir` has to be copied, too");
}

int run(int argc, char **argv)
{
	Options given(argc, argv,
		      { "configuration", "learner", "dir", "listen", "application", "checkpoint-values",
			"checkpoint-ms", "connections-max", "copy-from" });

	if (!given.words().empty())
		throw UsageError("'" + given.words().front() + "' is no option; see --help");
	if (given.has("copy-from"))
		copy(given);
	else
		serve(server_options(given));
	return EXIT_SUCCESS;
}

} // namespace

int main(int argc, char **argv)
{
	if (is_asked_for(argc, argv, "--help")) {
		std::fputs(HELP, stdout);
		return EXIT_SUCCESS;
	}
	try {
		return run(argc, argv);
	} catch (const UsageError &error) {
		say(error.what());
		return EXIT_USAGE;
	} catch (const std::invalid_argument &error) {
		say("--listen: " + std::string(error.what()));
		return EXIT_USAGE;
	} catch (const LibraryError &error) {
		say(error.what());
		bool is_usage = error.code == QUORUMWIRE_ERROR_CONFIGURATION ||
				error.code == QUORUMWIRE_ERROR_ARGUMENT ||
				error.code == QUORUMWIRE_ERROR_NO_LEARNER;
		return is_usage ? EXIT_USAGE : EXIT_FAILURE;
	} catch (const FolderLost &error) {
		say(std::string(error.what()) +
		    ". Begin from another server: stop it, and start this one once with --copy-from "
		    "(docs/leveldb.md)");
		return EXIT_FOLDER_LOST;
	} catch (const std::exception &error) {
		say(error.what());
		return EXIT_FAILURE;
	}
}
