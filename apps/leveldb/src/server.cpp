// What clients ask is put forward, carried out when it is delivered, and answered then.
//
// A read is answered without an instance of its own. It waits for the delivery of any entry that
// this server put forward after the read came; where there is none, for a marker that all waiting
// reads share. The entry's instance lies behind that of every operation that was answered anywhere
// before the read came: who answered had been delivered that instance, and with it all before it,
// when the entry did not exist yet. So the state at the entry's instance shows all of them, and the
// read takes effect there, between its request and its answer.
#include "server.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/epoll.h>
#include <sys/random.h>
#include <system_error>

namespace qwldb {

namespace {

constexpr std::uint64_t LIBRARY = 1, STOP = 2;
constexpr int EVENTS_AT_ONCE = 256;
// Markers that may be on their way. Reads that come meanwhile wait for the next one, together.
constexpr std::size_t MARKERS_MAX = 4;
// Of clients that have gone, too.
constexpr std::size_t PROPOSALS_MAX = 65536;
constexpr std::chrono::milliseconds TICK{ 1000 };
constexpr std::chrono::milliseconds WAIT{ 200 };
// Requests under way are answered within this time when it ends, and the last checkpoint is made.
constexpr std::chrono::seconds END_PATIENCE{ 3 };

void watch(int epoll, int descriptor, std::uint64_t tag)
{
	epoll_event event = {};

	event.events = EPOLLIN;
	event.data.u64 = tag;
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) != 0)
		throw std::system_error(errno, std::generic_category(), "epoll_ctl");
}

std::uint64_t random_number()
{
	std::uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		throw std::system_error(errno, std::generic_category(), "getrandom");
	return number;
}

Status status_of(int error)
{
	switch (error) {
	case QUORUMWIRE_ERROR_OUTCOME_UNKNOWN:
		return Status::outcome_unknown;
	case QUORUMWIRE_ERROR_FULL:
		return Status::full;
	default:
		return Status::not_carried_out;
	}
}

} // namespace

Server::Server(const ServerOptions &options, const Library &library, int stop)
	: options_(options), library_(library), stop_(stop), epoll_(epoll_create1(EPOLL_CLOEXEC)),
	  life_(random_number())
{
	if (epoll_.is_none())
		throw std::system_error(errno, std::generic_category(), "epoll_create1");
	if (options_.application == Application::leveldb)
		store_ = std::make_unique<Store>(options_.dir);
	begin_deliveries();
	watch(epoll_.number(), quorumwire_fd(library_.handle()), LIBRARY);
	watch(epoll_.number(), stop_, STOP);
	Listener listener = listen_on(options_.listen);
	clients_ = std::make_unique<Clients>(
		epoll_.number(), listener, options_.connections_max,
		[this](const Ticket &ticket, const Operation &operation) { request(ticket, operation); },
		[this](std::uint64_t client) { forget(client); });
	checkpoints_ = std::make_unique<Checkpoints>(library_.handle(), options_.learner, store_.get());
	say("serves clients at " + listener.address +
	    (store_ ? "; its state stands at instance " + std::to_string(delivered_) : ""));
}

Server::~Server()
{
	checkpoints_.reset();
	clients_.reset();
}

// An echo server has no state, and begins where its last checkpoint was.
void Server::begin_deliveries()
{
	std::uint64_t from = store_ ? store_->applied() + 1 : 0;
	int error = quorumwire_deliver(library_.handle(), options_.learner, from, delivered, this);

	if (error == QUORUMWIRE_ERROR_TRIMMED && store_)
		throw FolderLost(options_.dir + " holds what was decided up to instance " +
				 std::to_string(from - 1) + ", and what follows is kept by nobody (" +
				 library_.text(error) + ")");
	library_.must(error, "deliver");
	delivered_ = from > 0 ? from - 1 : 0;
}

bool Server::is_taken(const Ticket &ticket, Kind kind)
{
	bool is_echo = kind == Kind::echo;

	if (is_echo == (options_.application == Application::echo))
		return true;
	clients_->answer(ticket, Status::refused,
			 is_echo ? "this server has --application leveldb: it takes no request of kind 6" :
				   "this server has --application echo: it takes requests of kind 6 and 7");
	return false;
}

void Server::request(const Ticket &ticket, const Operation &operation)
{
	if (operation.kind == Kind::status) {
		clients_->answer(ticket, Status::ok, status());
		return;
	}
	if (!is_taken(ticket, operation.kind))
		return;
	if (operation.kind == Kind::read) {
		read_count_++;
		reads_.push_back({ next_serial_, ticket, std::string(operation.key) });
		return;
	}
	if (proposals_.size() >= PROPOSALS_MAX) {
		clients_->answer(ticket, Status::busy, "too many requests are under way at this server");
		return;
	}
	entry_count_++;
	propose(ticket, operation);
}

// What it asked and nobody was told of yet is not told of any more: who comes and goes fills no
// memory.
void Server::forget(std::uint64_t client)
{
	auto is_its = [client](const Read &read) { return read.ticket.client == client; };

	reads_.erase(std::remove_if(reads_.begin(), reads_.end(), is_its), reads_.end());
	auto is_withdrawn = [this, client](const std::pair<std::uint64_t, std::string> &unsent) {
		auto found = proposals_.find(unsent.first);
		if (found == proposals_.end() || found->second.ticket.client != client)
			return false;
		unsettled_.erase(unsent.first);
		proposals_.erase(found);
		return true;
	};
	unsent_.erase(std::remove_if(unsent_.begin(), unsent_.end(), is_withdrawn), unsent_.end());
}

void Server::propose(const Ticket &ticket, const Operation &operation)
{
	Entry entry{ life_, next_serial_++, operation };
	Proposal &proposal = proposals_[entry.serial];

	proposal.server = this;
	proposal.serial = entry.serial;
	proposal.ticket = ticket;
	unsettled_.insert(entry.serial);
	unsent_.emplace_back(entry.serial, entry_bytes(entry));
	submit_waiting();
}

void Server::submit_waiting()
{
	while (!unsent_.empty()) {
		auto &[serial, bytes] = unsent_.front();
		Proposal *proposal = &proposals_[serial];
		int error = quorumwire_submit(library_.handle(), bytes.data(), bytes.size(), submitted,
					      proposal);
		if (error == QUORUMWIRE_ERROR_BUSY)
			return;
		unsent_.pop_front();
		if (error != QUORUMWIRE_OK) {
			proposal->is_told = true;
			fail(proposal, error);
		}
	}
}

// It is not delivered, or nobody can wait for that.
void Server::fail(Proposal *proposal, int error)
{
	std::uint64_t serial = proposal->serial;

	if (!proposal->is_settled) {
		clients_->answer(proposal->ticket, status_of(error), library_.text(error));
		proposal->is_settled = true;
		unsettled_.erase(serial);
		markers_.erase(serial);
	}
	if (proposal->is_told)
		proposals_.erase(serial);
}

void Server::submitted(void *context, int error, std::uint64_t) noexcept
{
	Proposal *proposal = static_cast<Proposal *>(context);
	Server *server = proposal->server;

	proposal->is_told = true;
	// That its answer is lost changes nothing: it is delivered.
	if (error != QUORUMWIRE_OK && error != QUORUMWIRE_ERROR_ANSWER_GONE)
		server->fail(proposal, error);
	else if (proposal->is_settled)
		server->proposals_.erase(proposal->serial);
}

void Server::delivered(void *context, std::uint64_t instance, const void *value,
		       std::size_t size) noexcept
{
	Server *server = static_cast<Server *>(context);

	if (server->failure_)
		return; // what comes behind something that could not be carried out is not carried out
	try {
		server->deliver(instance, std::string_view(static_cast<const char *>(value), size));
	} catch (...) {
		server->failure_ = std::current_exception();
	}
}

void Server::deliver(std::uint64_t instance, std::string_view value)
{
	// Otherwise its effect is there, and would be there twice.
	if (instance <= delivered_)
		throw std::logic_error("instance " + std::to_string(instance) + " is delivered behind instance " +
				       std::to_string(delivered_));
	auto entry = read_entry(value);
	if (entry) {
		carry_out(instance, *entry);
	} else if (foreign_++ == 0) {
		say("instance " + std::to_string(instance) +
		    " is none of its entries: somebody else submits to this deployment; such are passed over");
	}
	delivered_ = instance;
}

void Server::carry_out(std::uint64_t instance, const Entry &entry)
{
	const Operation &operation = entry.operation;
	Outcome outcome;

	if (store_ && operation.kind != Kind::get)
		outcome = store_->apply(instance, operation);
	if (entry.life != life_)
		return;
	auto found = proposals_.find(entry.serial);
	// Otherwise it was answered that nobody knows.
	if (found != proposals_.end() && !found->second.is_settled) {
		if (!store_)
			outcome.body = operation.value;
		else if (operation.kind == Kind::get)
			outcome = get(found->second.ticket, operation.key);
		settle(&found->second, outcome);
	}
	answer_reads(entry.serial);
}

// Where no value has room none is looked up: that takes its time.
Outcome Server::get(const Ticket &ticket, std::string_view key) const
{
	if (!clients_->has_room(ticket, VALUE_BYTES_MAX))
		return { Status::busy, {} };
	return store_->get(key);
}

void Server::settle(Proposal *proposal, const Outcome &outcome)
{
	clients_->answer(proposal->ticket, outcome.status,
			 outcome.status == Status::ok ? outcome.body : status_text(outcome.status));
	proposal->is_settled = true;
	unsettled_.erase(proposal->serial);
	markers_.erase(proposal->serial);
	if (proposal->is_told)
		proposals_.erase(proposal->serial);
}

void Server::answer_reads(std::uint64_t serial)
{
	while (!reads_.empty() && reads_.front().serial <= serial) {
		const Read &read = reads_.front();
		Outcome outcome = get(read.ticket, read.key);
		clients_->answer(read.ticket, outcome.status,
				 outcome.status == Status::ok ? outcome.body : status_text(outcome.status));
		reads_.pop_front();
	}
}

// Has reads something to wait for, once for all that came in this turn.
void Server::mark_for_reads()
{
	if (reads_.empty() || markers_.size() >= MARKERS_MAX)
		return;
	if (!unsettled_.empty() && *unsettled_.rbegin() >= reads_.back().serial)
		return;
	Operation marker;
	marker.kind = Kind::marker;
	markers_.insert(next_serial_);
	marker_count_++;
	propose({}, marker);
}

void Server::checkpoint()
{
	auto now = Clock::now();
	bool is_due = delivered_ - checkpoint_wanted_ >= options_.checkpoint_values ||
		      (delivered_ > checkpoint_wanted_ && now >= next_checkpoint_);

	if (!is_due)
		return;
	if (store_)
		store_->write_applied(delivered_);
	checkpoint_wanted_ = delivered_;
	next_checkpoint_ = now + options_.checkpoint_pause;
	checkpoints_->want(delivered_);
}

void Server::wait_and_serve()
{
	epoll_event events[EVENTS_AT_ONCE];
	int count = epoll_wait(epoll_.number(), events, EVENTS_AT_ONCE, static_cast<int>(WAIT.count()));

	for (int place = 0; place < count; place++) {
		std::uint64_t tag = events[place].data.u64;
		if (tag == STOP)
			is_stopping_ = true;
		else if (tag == Clients::LISTENER)
			clients_->accept_some();
		else if (tag > Clients::LISTENER)
			clients_->ready(tag, events[place].events);
	}
	int error = quorumwire_poll(library_.handle(), 0);
	if (failure_)
		std::rethrow_exception(failure_);
	if (error == QUORUMWIRE_ERROR_TRIMMED && store_)
		throw FolderLost(options_.dir + " holds what was decided up to instance " +
				 std::to_string(delivered_) + ", and what follows is kept by nobody (" +
				 library_.text(error) + ")");
	library_.must(error, "deliveries have ended");
	submit_waiting();
	clients_->turn();
	mark_for_reads();
	checkpoint();
	if (Clock::now() >= next_tick_) {
		next_tick_ = Clock::now() + TICK;
		clients_->tick();
	}
}

void Server::run()
{
	while (!is_stopping_)
		wait_and_serve();
	end();
}

void Server::end()
{
	auto until = Clock::now() + END_PATIENCE;

	say("ends: answers what is under way");
	epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, stop_, nullptr); // it stays readable
	clients_->stop();
	while (Clock::now() < until &&
	       (!reads_.empty() || !unsettled_.empty() || !clients_->is_quiet()))
		wait_and_serve();
	if (store_)
		store_->write_applied(delivered_);
	checkpoints_->want(delivered_);
	bool is_made = checkpoints_->wait_for(END_PATIENCE);
	say("has ended at instance " + std::to_string(delivered_) + ", with its checkpoint at " +
	    std::to_string(checkpoints_->done()) + (is_made ? "" : ": the last one was not taken in time"));
}

std::string Server::status() const
{
	const ClientCounters &clients = clients_->counters();
	std::string text;
	auto line = [&text](const char *name, std::uint64_t number) {
		text += std::string(name) + " " + std::to_string(number) + "\n";
	};

	line("instance", delivered_);
	line("checkpoint", checkpoints_->done());
	line("trimmed", checkpoints_->trimmed());
	line("sessions", store_ ? store_->sessions() : 0);
	line("entries", entry_count_);
	line("reads", read_count_);
	line("markers", marker_count_);
	line("foreign_values", foreign_);
	line("connections", clients_->count());
	line("connections_accepted", clients.accepted);
	line("connections_refused", clients.refused);
	line("connections_ended_for_nonsense", clients.nonsense);
	line("connections_ended_for_slowness", clients.slow);
	line("answers_without_room", clients.busy);
	return text;
}

} // namespace qwldb
