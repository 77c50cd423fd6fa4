// Lanes, each a session with one request under way, over as many connections as they need.
#include "bench.hpp"

#include "bytes.hpp"
#include "link.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <poll.h>
#include <random>

namespace qwldb {

namespace {

using Now = std::chrono::steady_clock;

constexpr std::size_t LANES_OF_LINK = 32;

struct Lane {
	std::uint64_t session = 0;
	std::uint64_t sequence = 0;
	Now::time_point asked;
	bool waits = false;
};

class Run {
public:
	explicit Run(const Load &load)
		: load_(load), value_(load.value_bytes, 'v'), lanes_(load.outstanding), random_(1)
	{
		for (std::size_t first = 0; first < lanes_.size(); first += LANES_OF_LINK) {
			const std::string &server = load.servers[links_.size() % load.servers.size()];
			links_.push_back(std::make_unique<Link>(server));
		}
	}

	Measured measure()
	{
		if (load_.mix == Mix::put || load_.mix == Mix::remove || load_.mix == Mix::get_and_put)
			open_sessions();
		Measured measured;
		auto begun = Now::now();
		end_ = begun + load_.time;
		for (std::size_t lane = 0; lane < lanes_.size(); lane++)
			ask(lane);
		while (waiting_ > 0)
			turn(&measured);
		measured.seconds = std::chrono::duration<double>(Now::now() - begun).count();
		sum_up(&measured);
		return measured;
	}

private:
	Link &link_of(std::size_t lane)
	{
		return *links_[lane / LANES_OF_LINK];
	}

	void open_sessions()
	{
		for (std::size_t lane = 0; lane < lanes_.size(); lane++) {
			Request request;
			request.number = lane + 1;
			request.operation.kind = Kind::open_session;
			Reply reply = link_of(lane).ask_and_wait(request, Now::now() + load_.patience);
			if (reply.status != Status::ok)
				throw Gone("no session: " + reply.body);
			lanes_[lane].session = Left(reply.body).number<std::uint64_t>();
		}
	}

	bool is_over()
	{
		return load_.is_each_key_once ? next_key_ >= load_.keys : Now::now() >= end_;
	}

	Kind next_kind()
	{
		switch (load_.mix) {
		case Mix::read:
			return Kind::read;
		case Mix::get:
			return Kind::get;
		case Mix::put:
			return Kind::put;
		case Mix::remove:
			return Kind::remove;
		case Mix::get_and_put:
			return random_() % 2 == 0 ? Kind::get : Kind::put;
		case Mix::echo:
			break;
		}
		return Kind::echo;
	}

	void ask(std::size_t number)
	{
		Lane &lane = lanes_[number];
		Request request;

		if (is_over())
			return;
		std::uint64_t key = load_.is_each_key_once ? next_key_++ : random_() % load_.keys;
		std::string name = "key-" + std::to_string(key);
		request.number = number + 1;
		request.operation.kind = next_kind();
		if (request.operation.kind == Kind::put || request.operation.kind == Kind::remove) {
			request.operation.session = lane.session;
			request.operation.sequence = ++lane.sequence;
		}
		if (request.operation.kind != Kind::echo)
			request.operation.key = name;
		if (request.operation.kind == Kind::put || request.operation.kind == Kind::echo)
			request.operation.value = value_;
		lane.asked = Now::now();
		lane.waits = true;
		waiting_++;
		link_of(number).ask(request);
	}

	void turn(Measured *measured)
	{
		std::vector<pollfd> waited;

		for (const auto &link : links_) {
			short events = static_cast<short>(POLLIN | (link->wants_to_send() ? POLLOUT : 0));
			waited.push_back({ link->descriptor(), events, 0 });
		}
		if (poll(waited.data(), waited.size(), static_cast<int>(load_.patience.count())) == 0)
			throw Gone("no answer in time");
		for (std::size_t place = 0; place < links_.size(); place++) {
			if (!waited[place].revents)
				continue;
			Reply reply;
			links_[place]->pump();
			while (links_[place]->next(&reply))
				take(reply, measured);
			links_[place]->send_some();
		}
	}

	void take(const Reply &reply, Measured *measured)
	{
		if (reply.number == 0 || reply.number > lanes_.size())
			throw Gone("refused: " + reply.body);
		Lane &lane = lanes_[reply.number - 1];
		if (!lane.waits)
			throw Gone("an answer that nobody asked for");
		lane.waits = false;
		waiting_--;
		if (reply.status == Status::ok || reply.status == Status::not_found) {
			measured->operations++;
			times_us_.push_back(std::chrono::duration<float, std::micro>(Now::now() - lane.asked).count());
		} else {
			measured->errors++;
			measured->last_error = reply.body;
		}
		ask(reply.number - 1);
	}

	void sum_up(Measured *measured)
	{
		if (times_us_.empty())
			return;
		std::sort(times_us_.begin(), times_us_.end());
		std::size_t last = times_us_.size() - 1;
		measured->p50_us = times_us_[last / 2];
		measured->p99_us = times_us_[last * 99 / 100];
		measured->mean_us = std::accumulate(times_us_.begin(), times_us_.end(), 0.0) /
				    static_cast<double>(times_us_.size());
	}

	const Load &load_;
	std::string value_;
	std::vector<Lane> lanes_;
	std::vector<std::unique_ptr<Link>> links_;
	std::mt19937_64 random_;
	std::uint64_t next_key_ = 0;
	std::size_t waiting_ = 0;
	Now::time_point end_;
	std::vector<float> times_us_;
};

} // namespace

Measured run_load(const Load &load)
{
	return Run(load).measure();
}

} // namespace qwldb
