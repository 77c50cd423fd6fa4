// What clients and servers say to each other, and what servers put into the log. docs/leveldb.md
// has the bytes. Everything here is bounded, and nothing is believed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace qwldb {

// What a client says first.
constexpr std::string_view GREETING = "qwldb/1\n";
constexpr std::size_t KEY_BYTES_MAX = 4096;
// With its key and its head it fits into a value of any deployment.
constexpr std::size_t VALUE_BYTES_MAX = (1 << 20) - 8192;
constexpr std::size_t TEXT_BYTES_MAX = 1024;
// A frame behind its length: kind and number, session and sequence, key and value.
constexpr std::size_t FRAME_HEAD_BYTES = 4;
constexpr std::size_t FRAME_BYTES_MIN = 9;
constexpr std::size_t FRAME_BYTES_MAX = FRAME_BYTES_MIN + 18 + KEY_BYTES_MAX + VALUE_BYTES_MAX;

enum class Kind : std::uint8_t {
	open_session = 1,
	read = 2,       // linearizable, not in the log
	get = 3,        // in the log
	put = 4,
	remove = 5,
	echo = 6,
	status = 7,     // of this server: no operation
	marker = 64,    // only in the log: reads are answered behind it
};

enum class Status : std::uint8_t {
	ok = 0,
	not_found = 1,
	// What it says is no request, or not one that this server takes.
	refused = 16,
	// Not carried out, and it will not be.
	not_carried_out = 17,
	// It may have been carried out, or may yet be. Asked again with the same sequence it is not
	// twice.
	outcome_unknown = 18,
	// There is no such session, or it was forgotten: too many others were used since.
	no_session = 19,
	// A later request of its session was carried out: this one was before that, or never will
	// be.
	superseded = 20,
	// The answer has no room beside those that were not taken: ask again.
	busy = 21,
	// As many values are kept as may be: some learner does not checkpoint.
	full = 22,
};

// One line about it.
const char *status_text(Status status);

// An operation. The texts point into what it was read from.
struct Operation {
	Kind kind = Kind::status;
	std::uint64_t session = 0;
	std::uint64_t sequence = 0;
	std::string_view key;
	std::string_view value;
};

struct Request {
	std::uint64_t number = 0;
	Operation operation;
};

struct Answer {
	Status status = Status::ok;
	std::uint64_t number = 0;
	std::string_view body;
};

// Whether a whole frame is there. `too_long`: its length makes no sense.
enum class Framing { whole, part, too_long };
Framing frame(std::string_view received, std::string_view *body);

// Nothing, and why, if it is no request.
std::optional<Request> read_request(std::string_view body, std::string *why);
void append_request(std::string &out, const Request &request);
std::optional<Answer> read_answer(std::string_view body);
void append_answer(std::string &out, const Answer &answer);

// An operation as it stands in the log, with who put it there: a life of a server, and a number
// within that.
struct Entry {
	std::uint64_t life = 0;
	std::uint64_t serial = 0;
	Operation operation;
};

// Mark, version, kind, life and serial, session and sequence, length of the key.
constexpr std::size_t ENTRY_HEAD_BYTES = 3 + 16 + 16 + 2;
static_assert(ENTRY_HEAD_BYTES + KEY_BYTES_MAX + VALUE_BYTES_MAX <= 1 << 20,
	      "an entry fits into a value of any deployment");

std::string entry_bytes(const Entry &entry);
// Nothing if it is none: somebody else submits values to this deployment, too. All servers agree on
// that.
std::optional<Entry> read_entry(std::string_view value);

} // namespace qwldb
