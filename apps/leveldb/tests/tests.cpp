// The parts that need no deployment: bytes, the store, the copy of a folder, clients' connections.
#include "../src/bytes.hpp"
#include "../src/checkpoints.hpp"
#include "../src/clients.hpp"
#include "../src/copy.hpp"
#include "../src/protocol.hpp"
#include "../src/store.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace {

using namespace qwldb;
namespace fs = std::filesystem;

constexpr int RANDOM_INPUTS = 200000;

// What was synced since it was looked at last.
std::mutex synced_mutex;
std::set<std::string> synced;

std::set<std::string> take_synced()
{
	std::lock_guard<std::mutex> guard(synced_mutex);

	return std::exchange(synced, {});
}

std::set<std::string> logs_of(const std::string &folder)
{
	std::set<std::string> logs;

	for (const auto &entry : fs::recursive_directory_iterator(folder)) {
		if (entry.path().extension() == ".log")
			logs.insert(entry.path());
	}
	return logs;
}

// What was synced when a checkpoint was told to the library.
std::set<std::string> synced_before_checkpoint;

void check(bool is_so, const char *what, int line)
{
	if (is_so)
		return;
	std::fprintf(stderr, "line %d: %s\n", line, what);
	std::exit(EXIT_FAILURE);
}

#define CHECK(condition) check((condition), #condition, __LINE__)

struct Folder {
	std::string path;

	Folder()
	{
		std::string name = (fs::temp_directory_path() / "quorumwire-leveldb-XXXXXX").string();
		CHECK(mkdtemp(name.data()) != nullptr);
		path = name;
	}

	~Folder()
	{
		fs::remove_all(path);
	}
};

// Runs this in a process of its own that ends at once, as if it was killed.
void in_another_process(const std::function<void()> &what)
{
	pid_t child = fork();
	int status = 0;

	CHECK(child >= 0);
	if (child == 0) {
		what();
		_exit(EXIT_SUCCESS);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

bool throws(const std::function<void()> &what)
{
	try {
		what();
	} catch (const std::exception &) {
		return true;
	}
	return false;
}

Operation operation(Kind kind, std::uint64_t session, std::uint64_t sequence, std::string_view key,
		    std::string_view value = {})
{
	Operation operation;

	operation.kind = kind;
	operation.session = session;
	operation.sequence = sequence;
	operation.key = key;
	operation.value = value;
	return operation;
}

Operation put(std::uint64_t session, std::uint64_t sequence, std::string_view key,
	      std::string_view value)
{
	return operation(Kind::put, session, sequence, key, value);
}

std::uint64_t opened(Store *store, std::uint64_t instance)
{
	Outcome outcome = store->apply(instance, operation(Kind::open_session, 0, 0, {}));

	CHECK(outcome.status == Status::ok);
	return Left(outcome.body).number<std::uint64_t>();
}

void each_request_of_a_session_is_carried_out_once()
{
	Folder folder;
	Store store(folder.path);
	std::uint64_t session = opened(&store, 1);

	CHECK(store.apply(2, put(session, 1, "k", "first")).status == Status::ok);
	CHECK(store.apply(3, put(session, 2, "k", "second")).status == Status::ok);
	// The first one again, from a server that did not know that it was answered.
	CHECK(store.apply(4, put(session, 1, "k", "first")).status == Status::superseded);
	CHECK(store.get("k").body == "second");
	Operation removal = operation(Kind::remove, session, 3, "k");
	CHECK(store.apply(5, removal).status == Status::ok);
	CHECK(store.apply(6, removal).status == Status::ok); // what it was told, though nothing is there
	CHECK(store.get("k").status == Status::not_found);
	CHECK(store.apply(7, operation(Kind::remove, session, 4, "k")).status == Status::not_found);
	CHECK(store.apply(8, put(session + 9, 1, "k", "x")).status == Status::no_session);
	CHECK(store.get("k").status == Status::not_found);
	CHECK(store.apply(9, put(session, 7, "k", "")).status == Status::ok);
	CHECK(store.get("k").status == Status::ok && store.get("k").body.empty());
}

void the_session_that_rested_longest_makes_room()
{
	Folder folder;
	Store store(folder.path, 3);
	std::uint64_t first = opened(&store, 1), second = opened(&store, 2), third = opened(&store, 3);

	CHECK(store.apply(4, put(first, 1, "k", "1")).status == Status::ok);
	std::uint64_t fourth = opened(&store, 5);
	CHECK(store.sessions() == 3);
	CHECK(store.apply(6, put(second, 1, "k", "2")).status == Status::no_session);
	CHECK(store.apply(7, put(first, 2, "k", "3")).status == Status::ok);
	CHECK(store.apply(8, put(third, 1, "k", "4")).status == Status::ok);
	CHECK(store.apply(9, put(fourth, 1, "k", "5")).status == Status::ok);
}

void what_was_applied_stands_together_with_its_instance()
{
	Folder folder;
	std::uint64_t session = 0;

	in_another_process([&folder] {
		Store store(folder.path, 3);
		std::uint64_t own = opened(&store, 1);
		CHECK(own == 1);
		for (std::uint64_t place = 1; place <= 100; place++) {
			std::string key = std::to_string(place % 10), value = std::to_string(place);
			CHECK(store.apply(1 + place, put(own, place, key, value)).status == Status::ok);
		}
		_exit(EXIT_SUCCESS); // nothing is closed
	});
	{
		Store store(folder.path, 3);
		CHECK(store.applied() == 101 && store.sessions() == 1);
		CHECK(store.get("7").body == "97" && store.get("0").body == "100");
		session = 1;
		CHECK(store.apply(102, put(session, 100, "0", "other")).status == Status::ok);
		CHECK(store.get("0").body == "100"); // it was carried out before
		CHECK(opened(&store, 103) == 103 && opened(&store, 104) == 104);
		CHECK(opened(&store, 105) == 105);
		CHECK(store.apply(106, put(session, 101, "0", "x")).status == Status::no_session);
		store.write_applied(120);
		store.sync();
	}
	Store store(folder.path, 3);
	CHECK(store.applied() == 120 && store.sessions() == 3);
}

void logs_of_before_are_synced_too()
{
	Folder folder;
	Store store(folder.path);
	std::uint64_t session = opened(&store, 1);
	std::string value(1 << 20, 'v');

	for (std::uint64_t place = 1; place <= 20; place++) {
		store.apply(1 + place, put(session, place, "k" + std::to_string(place), value));
		std::set<std::string> before = logs_of(folder.path);
		take_synced();
		store.sync();
		std::set<std::string> by_now = take_synced(), after = logs_of(folder.path);
		CHECK(!by_now.empty());
		for (const std::string &log : before)
			CHECK(by_now.count(log) == 1 || after.count(log) == 0);
	}
	CHECK(store.get("k1").body == value);
}

void what_is_checkpointed_was_synced_before()
{
	Folder folder;
	Store store(folder.path);

	CHECK(opened(&store, 1) == 1);
	take_synced();
	Checkpoints checkpoints(nullptr, 0, &store);
	checkpoints.want(1);
	CHECK(checkpoints.wait_for(std::chrono::minutes(1)) && checkpoints.done() == 1);
	CHECK(!synced_before_checkpoint.empty());
	CHECK(synced_before_checkpoint == logs_of(folder.path));
}

void a_folder_of_somebody_else_is_refused()
{
	Folder folder;

	{
		leveldb::DB *db = nullptr;
		leveldb::Options options;
		options.create_if_missing = true;
		CHECK(leveldb::DB::Open(options, folder.path + "/db", &db).ok());
		CHECK(db->Put({}, "bitcoin", "1").ok());
		delete db;
	}
	CHECK(throws([&folder] { Store store(folder.path); }));
	std::ofstream(folder.path + "/db/CURRENT") << "nonsense";
	CHECK(throws([&folder] { Store store(folder.path); }));
}

void a_copy_is_whole_and_of_a_server_that_does_not_run()
{
	Folder folder;
	std::string from = folder.path + "/a", to = folder.path + "/b";

	CHECK(throws([&] { copy_folder(from, to); }));
	{
		Store store(from);
		std::uint64_t session = opened(&store, 1);
		CHECK(store.apply(2, put(session, 1, "k", "v")).status == Status::ok);
		fs::create_directory(from + "/learner");
		std::ofstream(from + "/learner/learner") << "checkpoint";
		in_another_process([&] { CHECK(throws([&] { copy_folder(from, to); })); });
		CHECK(!fs::exists(to));
	}
	copy_folder(from, to);
	Store store(to);
	CHECK(store.applied() == 2 && store.get("k").body == "v" && store.sessions() == 1);
	CHECK(fs::file_size(to + "/learner/learner") == 10);
	CHECK(throws([&] { copy_folder(from, to); })); // it is there
}

std::string some_request(std::mt19937 &random)
{
	std::string out, key(random() % 20, 'k'), value(random() % 40, 'v');
	Request request;

	request.number = random();
	request.operation = operation(static_cast<Kind>(random() % 9), random() % 3, random() % 3, key, value);
	append_request(out, request);
	return out;
}

// What is read says the same when it is written again. Anything else is refused.
void nonsense_is_no_request()
{
	std::mt19937 random(std::random_device{}());
	int requests = 0, entries = 0, refused = 0, others = 0;

	for (int round = 0; round < RANDOM_INPUTS; round++) {
		std::string bytes = some_request(random), again, why;
		std::string_view body;
		for (auto flips = random() % 3; flips > 0; flips--)
			bytes[random() % bytes.size()] = static_cast<char>(random());
		bytes.resize(bytes.size() - random() % 2);
		if (frame(bytes, &body) != Framing::whole) {
			others++;
			continue;
		}
		auto request = read_request(body, &why);
		if (!request) {
			CHECK(!why.empty());
			refused++;
			continue;
		}
		requests++;
		append_request(again, *request);
		CHECK(again.substr(FRAME_HEAD_BYTES) == body);
		std::string entry = entry_bytes({ random(), random(), request->operation });
		if (random() % 2 == 0)
			entry[random() % entry.size()] = static_cast<char>(random());
		auto read = read_entry(entry);
		CHECK(!read || entry_bytes(*read) == entry);
		entries += read ? 1 : 0;
		read_answer(body);
	}
	CHECK(requests > 1000 && entries > 1000 && refused > 1000 && others > 1000);
}

void limits_hold()
{
	std::string key(KEY_BYTES_MAX, 'k'), value(VALUE_BYTES_MAX, 'v'), out, why;
	std::string_view body;

	append_request(out, { 1, put(1, 1, key, value) });
	CHECK(frame(out, &body) == Framing::whole && read_request(body, &why));
	std::string entry = entry_bytes({ 1, 1, put(1, 1, key, value) });
	CHECK(read_entry(entry) && entry.size() == ENTRY_HEAD_BYTES + key.size() + value.size());
	out.clear();
	append_request(out, { 1, put(1, 1, key + "k", "") });
	CHECK(frame(out, &body) == Framing::whole && !read_request(body, &why));
	CHECK(why == "request kind 4 has the length of the key; allowed: 1 to 4096 bytes");
	out.clear();
	append_request(out, { 1, put(1, 1, "k", value + "v") });
	CHECK(frame(out, &body) == Framing::whole && !read_request(body, &why));
	CHECK(frame(std::string_view("\x7f\xff\xff\xff", 4), &body) == Framing::too_long);
}

// What waits for room is taken up once all answers have gone at once, though nothing comes then.
void what_is_sent_makes_room_for_what_had_none()
{
	constexpr std::size_t MORE = 36, BODY_BYTES = UNTAKEN_BYTES / REQUESTS_MAX + 1;
	Folder folder;
	std::vector<Ticket> asked;
	std::string said(GREETING);
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	Clients clients(
		epoll, listen_on("unix:" + folder.path + "/socket"), 1,
		[&](const Ticket &ticket, const Operation &) { asked.push_back(ticket); }, [](std::uint64_t) {});
	int client = connect_to("unix:" + folder.path + "/socket");

	for (std::size_t number = 1; number <= REQUESTS_MAX + MORE; number++)
		append_request(said, { number, Operation{} });
	CHECK(send(client, said.data(), said.size(), 0) == static_cast<ssize_t>(said.size()));
	clients.accept_some();
	clients.ready(Clients::LISTENER + 1, EPOLLIN);
	clients.turn();
	CHECK(asked.size() == REQUESTS_MAX);
	for (const Ticket &ticket : std::exchange(asked, {}))
		clients.answer(ticket, Status::ok, std::string(BODY_BYTES, 'x'));
	clients.turn();
	CHECK(clients.is_quiet());
	CHECK(asked.size() == MORE);
	close(client);
	close(epoll);
}

} // namespace

// LevelDB's and ours: what is synced is noted.
extern "C" int fdatasync(int file)
{
	std::string path = fs::read_symlink("/proc/self/fd/" + std::to_string(file));
	std::lock_guard<std::mutex> guard(synced_mutex);

	synced.insert(path);
	return static_cast<int>(syscall(SYS_fdatasync, file));
}

// There is no deployment here.
extern "C" int quorumwire_checkpoint(quorumwire_t *, uint16_t, uint64_t upto, uint64_t *trimmed)
{
	synced_before_checkpoint = take_synced();
	*trimmed = upto;
	return QUORUMWIRE_OK;
}

extern "C" const char *quorumwire_error_text(int)
{
	return "";
}

void qwldb::say(const std::string &line)
{
	std::fprintf(stderr, "%s\n", line.c_str());
}

int main()
{
	each_request_of_a_session_is_carried_out_once();
	the_session_that_rested_longest_makes_room();
	what_was_applied_stands_together_with_its_instance();
	logs_of_before_are_synced_too();
	what_is_checkpointed_was_synced_before();
	a_folder_of_somebody_else_is_refused();
	a_copy_is_whole_and_of_a_server_that_does_not_run();
	nonsense_is_no_request();
	limits_hold();
	what_is_sent_makes_room_for_what_had_none();
	std::puts("all hold");
	return EXIT_SUCCESS;
}
