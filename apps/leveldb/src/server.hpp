// A server: a learner and a proposer of its deployment, with its own LevelDB folder, and its
// clients.
#pragma once

#include "checkpoints.hpp"
#include "clients.hpp"
#include "descriptor.hpp"
#include "library.hpp"
#include "store.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace qwldb {

enum class Application { leveldb, echo };

struct ServerOptions {
	std::string configuration;
	std::string listen;
	std::string dir;
	std::uint16_t learner = 0;
	Application application = Application::leveldb;
	std::uint64_t checkpoint_values = 512;
	std::chrono::milliseconds checkpoint_pause{ 1000 };
	std::size_t connections_max = 256;
};

class Server {
public:
	// Joins the deployment. `stop` is a descriptor that is readable when it is to end.
	Server(const ServerOptions &options, const Library &library, int stop);
	~Server();
	Server(const Server &) = delete;
	Server &operator=(const Server &) = delete;

	// Serves until it is to end.
	void run();

private:
	// What this server has put forward, until it is known what became of it.
	struct Proposal {
		Server *server = nullptr;
		std::uint64_t serial = 0;
		Ticket ticket;           // none for a marker
		bool is_told = false;    // the library has called back
		bool is_settled = false; // it was delivered, or will be answered with an error
	};
	// A read that waits for something that is put forward after it came.
	struct Read {
		std::uint64_t serial = 0; // that or a later one
		Ticket ticket;
		std::string key;
	};

	static void delivered(void *context, std::uint64_t instance, const void *value,
			      std::size_t size) noexcept;
	static void submitted(void *context, int error, std::uint64_t instance) noexcept;

	void begin_deliveries();
	void request(const Ticket &ticket, const Operation &operation);
	bool is_taken(const Ticket &ticket, Kind kind);
	void forget(std::uint64_t client);
	void propose(const Ticket &ticket, const Operation &operation);
	void submit_waiting();
	void fail(Proposal *proposal, int error);
	void deliver(std::uint64_t instance, std::string_view value);
	void carry_out(std::uint64_t instance, const Entry &entry);
	Outcome get(const Ticket &ticket, std::string_view key) const;
	void settle(Proposal *proposal, const Outcome &outcome);
	void answer_reads(std::uint64_t serial);
	void mark_for_reads();
	void checkpoint();
	void wait_and_serve();
	void end();
	std::string status() const;

	ServerOptions options_;
	const Library &library_;
	int stop_;
	Descriptor epoll_;
	std::uint64_t life_;
	std::unique_ptr<Store> store_;
	std::unique_ptr<Clients> clients_;
	std::unique_ptr<Checkpoints> checkpoints_;
	std::map<std::uint64_t, Proposal> proposals_;
	std::set<std::uint64_t> unsettled_;
	std::set<std::uint64_t> markers_; // of those, what only reads wait for
	std::deque<std::pair<std::uint64_t, std::string>> unsent_; // the library had no room
	std::deque<Read> reads_;
	std::uint64_t next_serial_ = 1;
	std::uint64_t delivered_ = 0;
	std::uint64_t checkpoint_wanted_ = 0;
	Clock::time_point next_checkpoint_;
	Clock::time_point next_tick_;
	std::uint64_t foreign_ = 0;
	std::uint64_t marker_count_ = 0, read_count_ = 0, entry_count_ = 0;
	bool is_stopping_ = false;
	std::exception_ptr failure_;
};

} // namespace qwldb
