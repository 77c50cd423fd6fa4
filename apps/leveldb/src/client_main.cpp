// The program `quorumwire-leveldb-client`: one operation, or a load.
#include "bench.hpp"
#include "bytes.hpp"
#include "link.hpp"
#include "options.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <thread>

namespace {

using namespace qwldb;
using Now = std::chrono::steady_clock;

constexpr int EXIT_NOT_FOUND = 1, EXIT_USAGE = 2, EXIT_NOT_CARRIED_OUT = 3, EXIT_UNKNOWN = 4;
// A server that says nothing for so long is passed over, as long as there is time.
constexpr std::chrono::milliseconds SILENCE_MAX{ 3000 };
constexpr std::chrono::milliseconds PAUSE{ 100 };

constexpr const char *HELP =
	R"(quorumwire-leveldb-client: asks servers of quorumwire-leveldb (docs/leveldb.md)

  quorumwire-leveldb-client --servers ADDRESS[,ADDRESS...] [OPTION...] COMMAND

  get KEY                  prints the value; a linearizable read
  get-logged KEY           the same, as an entry of the log
  put KEY VALUE
  delete KEY
  echo VALUE               of servers with --application echo
  status                   of the first server
  load                     puts each of --keys keys once
  bench                    keeps --outstanding requests under way, for --seconds

  --servers LIST           HOST:PORT or unix:PATH, tried one after the other
  --timeout-ms N           for the whole operation, 1 to 3600000; 10000
  --operation NAME         of bench: read, get (logged), put, delete, mix (get and put, the default), echo
  --outstanding N          of load and bench, 1 to 4096; 1
  --seconds N              of bench, 1 to 86400; 10
  --keys N                 of load and bench, 1 to 1000000000; 10000
  --value-bytes N          of load and bench, 0 to 1040384; 100

Exit codes: 0 done; 1 nothing is there (get, delete); 2 its options make no sense;
3 not carried out; 4 nobody knows whether it was carried out.
)";

std::vector<std::string> parts(const std::string &list)
{
	std::vector<std::string> parts;
	std::istringstream left(list);

	for (std::string part; std::getline(left, part, ',');) {
		if (part.empty())
			throw UsageError("--servers: '" + list + "' is given; allowed: addresses with a comma between");
		parts.push_back(part);
	}
	return parts;
}

int complain(const std::string &text, int code)
{
	std::fprintf(stderr, "quorumwire-leveldb-client: %s\n", text.c_str());
	return code;
}

// One operation, at one server after the other until it is known what became of it, or the time is
// over.
class Asking {
public:
	Asking(std::vector<std::string> servers, std::chrono::milliseconds timeout)
		: servers_(std::move(servers)), deadline_(Now::now() + timeout)
	{
	}

	// What became of it: an exit code. `body` is what was answered.
	int ask(const Operation &operation, std::string *body)
	{
		for (std::size_t turn = 0; Now::now() < deadline_; turn++) {
			if (turn > 0 && turn % servers_.size() == 0)
				std::this_thread::sleep_for(PAUSE);
			try {
				auto code = ask_one(servers_[turn % servers_.size()], operation, body);
				if (code)
					return *code;
			} catch (const Gone &gone) {
				// What is cut short by the deadline says nothing of its own.
				if (turn == 0 || Now::now() < deadline_)
					why_ = gone.what();
			}
		}
		*body = why_;
		return may_be_done_ ? EXIT_UNKNOWN : EXIT_NOT_CARRIED_OUT;
	}

private:
	Reply ask_at(Link *link, Operation operation)
	{
		Request request;

		request.number = 1;
		request.operation = operation;
		return link->ask_and_wait(request, std::min(deadline_, Now::now() + SILENCE_MAX));
	}

	// Nothing: it is to be asked again, here or elsewhere.
	std::optional<int> ask_one(const std::string &server, Operation operation, std::string *body)
	{
		Link link(server);
		bool changes = operation.kind == Kind::put || operation.kind == Kind::remove;

		if (changes && session_ == 0) {
			Operation open;
			open.kind = Kind::open_session;
			Reply opened = ask_at(&link, open);
			if (opened.status != Status::ok) {
				why_ = opened.body;
				return std::nullopt;
			}
			session_ = Left(opened.body).number<std::uint64_t>();
		}
		if (changes) {
			operation.session = session_;
			operation.sequence = 1; // however often it is asked
			may_be_done_ = true;
		}
		Reply reply = ask_at(&link, operation);
		*body = why_ = reply.body;
		switch (reply.status) {
		case Status::ok:
			return EXIT_SUCCESS;
		case Status::not_found:
			return EXIT_NOT_FOUND;
		case Status::refused:
			return EXIT_NOT_CARRIED_OUT;
		case Status::no_session:
		case Status::superseded:
			return EXIT_UNKNOWN;
		case Status::not_carried_out:
		case Status::outcome_unknown:
		case Status::busy:
		case Status::full:
			break;
		}
		return std::nullopt;
	}

	std::vector<std::string> servers_;
	Now::time_point deadline_;
	std::uint64_t session_ = 0;
	bool may_be_done_ = false;
	std::string why_ = "no answer in time";
};

int one_operation(const Options &given, Operation operation, bool prints)
{
	std::chrono::milliseconds timeout(given.number("timeout-ms", 1, 3600000, 10000));
	std::string body;
	int code = Asking(parts(given.text("servers")), timeout).ask(operation, &body);

	if (code == EXIT_SUCCESS && prints) {
		std::fwrite(body.data(), 1, body.size(), stdout);
		if (operation.kind != Kind::status)
			std::putchar('\n');
	}
	if (code == EXIT_NOT_FOUND)
		return complain("nothing is there", code);
	if (code == EXIT_NOT_CARRIED_OUT)
		return complain("not carried out: " + body, code);
	if (code == EXIT_UNKNOWN)
		return complain("nobody knows whether it was carried out: " + body, code);
	return code;
}

Mix mix_of(const std::string &name)
{
	if (name == "read")
		return Mix::read;
	if (name == "get")
		return Mix::get;
	if (name == "put")
		return Mix::put;
	if (name == "delete")
		return Mix::remove;
	if (name == "mix")
		return Mix::get_and_put;
	if (name == "echo")
		return Mix::echo;
	throw UsageError("--operation: '" + name + "' is given; allowed: read, get, put, delete, mix, echo");
}

int many_operations(const Options &given, bool is_load)
{
	Load load;

	load.servers = parts(given.text("servers"));
	load.mix = is_load ? Mix::put : mix_of(given.text("operation", "mix"));
	load.is_each_key_once = is_load;
	load.outstanding = given.number("outstanding", 1, 4096, load.outstanding);
	load.keys = given.number("keys", 1, 1000000000, load.keys);
	load.value_bytes = given.number("value-bytes", 0, VALUE_BYTES_MAX, load.value_bytes);
	load.time = std::chrono::seconds(given.number("seconds", 1, 86400, 10));
	load.patience = std::chrono::milliseconds(given.number("timeout-ms", 1, 3600000, 10000));
	Measured measured = run_load(load);
	std::printf("operations %llu, %.0f per s, p50 %.0f us, p99 %.0f us, mean %.0f us, errors %llu\n",
		    static_cast<unsigned long long>(measured.operations),
		    static_cast<double>(measured.operations) / measured.seconds, measured.p50_us,
		    measured.p99_us, measured.mean_us,
		    static_cast<unsigned long long>(measured.errors));
	if (measured.errors > 0)
		return complain("the last error: " + measured.last_error, EXIT_NOT_CARRIED_OUT);
	return EXIT_SUCCESS;
}

void must_have_words(const Options &given, std::size_t count, const char *usage)
{
	if (given.words().size() != count)
		throw UsageError(std::string("allowed: ") + usage);
}

void must_fit(const char *what, const std::string &text, std::size_t least, std::size_t most)
{
	if (text.size() < least || text.size() > most)
		throw UsageError("the " + std::string(what) + " has " + std::to_string(text.size()) +
				 " bytes; allowed: " + std::to_string(least) + " to " + std::to_string(most));
}

int run(int argc, char **argv)
{
	Options given(argc, argv,
		      { "servers", "timeout-ms", "operation", "outstanding", "seconds", "keys", "value-bytes" });
	const auto &words = given.words();
	std::string command = words.empty() ? "" : words[0];
	Operation operation;

	if (command == "load" || command == "bench") {
		must_have_words(given, 1, "load, or bench, and options");
		return many_operations(given, command == "load");
	}
	if (command == "status") {
		must_have_words(given, 1, "status");
		return one_operation(given, operation, true);
	}
	if (command == "echo") {
		must_have_words(given, 2, "echo VALUE");
		operation.kind = Kind::echo;
		operation.value = words[1];
		return one_operation(given, operation, true);
	}
	if (command == "put") {
		must_have_words(given, 3, "put KEY VALUE");
		operation.kind = Kind::put;
		operation.value = words[2];
	} else if (command == "get" || command == "get-logged" || command == "delete") {
		must_have_words(given, 2, "get KEY, get-logged KEY, or delete KEY");
		operation.kind = command == "get" ? Kind::read : command == "delete" ? Kind::remove : Kind::get;
	} else {
		throw UsageError("the command is '" + command +
				 "'; allowed: get, get-logged, put, delete, echo, status, load, bench; see --help");
	}
	operation.key = words[1];
	must_fit("key", words[1], 1, KEY_BYTES_MAX);
	must_fit("value", std::string(operation.value), 0, VALUE_BYTES_MAX);
	return one_operation(given, operation, operation.kind == Kind::read || operation.kind == Kind::get);
}

} // namespace

int main(int argc, char **argv)
{
	for (int place = 1; place < argc; place++) {
		if (std::string(argv[place]) == "--help") {
			std::fputs(HELP, stdout);
			return EXIT_SUCCESS;
		}
	}
	try {
		return run(argc, argv);
	} catch (const UsageError &error) {
		return complain(error.what(), EXIT_USAGE);
	} catch (const std::invalid_argument &error) {
		return complain("--servers: " + std::string(error.what()), EXIT_USAGE);
	} catch (const std::exception &error) {
		return complain(error.what(), EXIT_NOT_CARRIED_OUT);
	}
}
