// Requests, answers and entries as bytes, and back.
#include "protocol.hpp"

#include "bytes.hpp"

namespace qwldb {

namespace {

constexpr std::uint8_t ENTRY_MARK = 'L';
constexpr std::uint8_t ENTRY_VERSION = 1;

bool may_be_in_log(std::uint8_t kind)
{
	switch (static_cast<Kind>(kind)) {
	case Kind::open_session:
	case Kind::get:
	case Kind::put:
	case Kind::remove:
	case Kind::echo:
	case Kind::marker:
		return true;
	case Kind::read:
	case Kind::status:
		break;
	}
	return false;
}

bool has_session(Kind kind)
{
	return kind == Kind::put || kind == Kind::remove;
}

bool has_key(Kind kind)
{
	return kind == Kind::read || kind == Kind::get || has_session(kind);
}

bool has_value(Kind kind)
{
	return kind == Kind::put || kind == Kind::echo;
}

// What is wrong with an operation; nothing: all is well.
const char *fault(const Operation &operation)
{
	if (has_key(operation.kind) ? operation.key.empty() || operation.key.size() > KEY_BYTES_MAX :
				      !operation.key.empty())
		return "the length of the key; allowed: 1 to 4096 bytes";
	if (operation.value.size() > VALUE_BYTES_MAX)
		return "the length of the value; allowed: 0 to 1040384 bytes";
	if (!has_value(operation.kind) && !operation.value.empty())
		return "bytes behind its end";
	if (has_session(operation.kind) && (operation.session == 0 || operation.sequence == 0))
		return "session or sequence 0; allowed: those from 1 on";
	return nullptr;
}

void append_body(std::string &out, const Operation &operation)
{
	if (has_session(operation.kind)) {
		append_number(out, operation.session);
		append_number(out, operation.sequence);
	}
	if (has_key(operation.kind)) {
		append_number(out, static_cast<std::uint16_t>(operation.key.size()));
		out.append(operation.key);
	}
	out.append(operation.value);
}

void read_body(Left &left, Operation *operation)
{
	if (has_session(operation->kind)) {
		operation->session = left.number<std::uint64_t>();
		operation->sequence = left.number<std::uint64_t>();
	}
	if (has_key(operation->kind))
		operation->key = left.take(left.number<std::uint16_t>());
	operation->value = left.rest();
}

} // namespace

const char *status_text(Status status)
{
	switch (status) {
	case Status::ok:
		return "done";
	case Status::not_found:
		return "nothing is there";
	case Status::refused:
		return "refused";
	case Status::not_carried_out:
		return "not carried out";
	case Status::outcome_unknown:
		return "it is not known whether it was carried out";
	case Status::no_session:
		return "there is no such session any more";
	case Status::superseded:
		return "a later request of its session was carried out";
	case Status::busy:
		return "too much waits to be taken";
	case Status::full:
		return "as many values are kept as may be";
	}
	return "a status that this program does not know";
}

Framing frame(std::string_view received, std::string_view *body)
{
	if (received.size() < FRAME_HEAD_BYTES)
		return Framing::part;
	std::size_t bytes = Left(received).number<std::uint32_t>();
	if (bytes < FRAME_BYTES_MIN || bytes > FRAME_BYTES_MAX)
		return Framing::too_long;
	received.remove_prefix(FRAME_HEAD_BYTES);
	if (received.size() < bytes)
		return Framing::part;
	*body = received.substr(0, bytes);
	return Framing::whole;
}

std::optional<Request> read_request(std::string_view body, std::string *why)
{
	Left left(body);
	std::uint8_t kind = left.number<std::uint8_t>();
	Request request;

	request.number = left.number<std::uint64_t>();
	if (kind < static_cast<std::uint8_t>(Kind::open_session) ||
	    kind > static_cast<std::uint8_t>(Kind::status)) {
		*why = "request kind " + std::to_string(kind) + " is given; allowed: 1 to 7";
		return std::nullopt;
	}
	request.operation.kind = static_cast<Kind>(kind);
	read_body(left, &request.operation);
	const char *wrong = left.is_exact() ? fault(request.operation) : "an end that is missing";
	if (wrong) {
		*why = "request kind " + std::to_string(kind) + " has " + wrong;
		return std::nullopt;
	}
	return request;
}

void append_request(std::string &out, const Request &request)
{
	std::string body;

	append_number(body, static_cast<std::uint8_t>(request.operation.kind));
	append_number(body, request.number);
	append_body(body, request.operation);
	append_number(out, static_cast<std::uint32_t>(body.size()));
	out.append(body);
}

std::optional<Answer> read_answer(std::string_view body)
{
	Left left(body);
	Answer answer;

	answer.status = static_cast<Status>(left.number<std::uint8_t>());
	answer.number = left.number<std::uint64_t>();
	answer.body = left.rest();
	if (!left.is_exact())
		return std::nullopt;
	return answer;
}

void append_answer(std::string &out, const Answer &answer)
{
	append_number(out, static_cast<std::uint32_t>(FRAME_BYTES_MIN + answer.body.size()));
	append_number(out, static_cast<std::uint8_t>(answer.status));
	append_number(out, answer.number);
	out.append(answer.body);
}

std::string entry_bytes(const Entry &entry)
{
	std::string out;

	out.reserve(ENTRY_HEAD_BYTES + entry.operation.key.size() + entry.operation.value.size());
	append_number(out, ENTRY_MARK);
	append_number(out, ENTRY_VERSION);
	append_number(out, static_cast<std::uint8_t>(entry.operation.kind));
	append_number(out, entry.life);
	append_number(out, entry.serial);
	append_body(out, entry.operation);
	return out;
}

std::optional<Entry> read_entry(std::string_view value)
{
	Left left(value);
	std::uint8_t mark = left.number<std::uint8_t>(), version = left.number<std::uint8_t>();
	std::uint8_t kind = left.number<std::uint8_t>();
	Entry entry;

	if (mark != ENTRY_MARK || version != ENTRY_VERSION || !may_be_in_log(kind))
		return std::nullopt;
	entry.life = left.number<std::uint64_t>();
	entry.serial = left.number<std::uint64_t>();
	entry.operation.kind = static_cast<Kind>(kind);
	read_body(left, &entry.operation);
	if (!left.is_exact() || fault(entry.operation))
		return std::nullopt;
	return entry;
}

} // namespace qwldb
