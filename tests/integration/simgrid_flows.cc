// Runs the messages of a schedule in SimGrid and prints when the last has ended, in ns.
//
// Standard input has lines, numbers from 0:
//
//   link BYTES_PER_S LATENCY_S         a physical arc or a shared limit
//   message STEP NEED...               waits for these messages
//   part DELAY_S BYTES LINK...         of the last message: leaves so long after it may
//
// With the argument "lockstep" a message waits for all of the steps before its own
// instead. Every route has two hosts of its own, so that any can be had; the one actor starts what may leave and waits for what ends.
#include <cstdio>
#include <iostream>
#include <map>
#include <queue>
#include <sstream>
#include <string>
#include <vector>

#include <simgrid/s4u.hpp>

namespace sg4 = simgrid::s4u;

struct Part {
	size_t message;
	double delay;
	uint64_t bytes;
	std::vector<size_t> links;
	sg4::Host *from, *to;
};

struct Message {
	int step;
	std::vector<size_t> needs, users, parts;
	size_t missing = 0, open = 0;
};

static std::vector<std::pair<double, double>> links;
static std::vector<Message> messages;
static std::vector<Part> parts;
static bool lockstep;
static double end_time;

static void read_input()
{
	std::string line, what;
	size_t number;

	while (std::getline(std::cin, line)) {
		std::istringstream in(line);

		in >> what;
		if (what == "link") {
			double rate, latency;
			in >> rate >> latency;
			links.emplace_back(rate, latency);
		} else if (what == "message") {
			Message m;
			in >> m.step;
			while (in >> number) {
				m.needs.push_back(number);
			}
			messages.push_back(m);
		} else if (what == "part") {
			Part p = {messages.size() - 1, 0, 0, {}, nullptr, nullptr};
			in >> p.delay >> p.bytes;
			while (in >> number) {
				p.links.push_back(number);
			}
			messages.back().parts.push_back(parts.size());
			parts.push_back(p);
		}
	}
}

static void build_platform()
{
	auto *zone = sg4::create_full_zone("all");
	std::vector<sg4::Link *> made;
	std::map<std::vector<size_t>, size_t> of_route;

	for (size_t i = 0; i < links.size(); i++) {
		made.push_back(zone->create_link("l" + std::to_string(i), links[i].first)
				       ->set_latency(links[i].second)
				       ->seal());
	}
	for (size_t i = 0; i < parts.size(); i++) {
		std::vector<sg4::LinkInRoute> route;
		auto same = of_route.emplace(parts[i].links, i);

		if (!same.second) {
			parts[i].from = parts[same.first->second].from;
			parts[i].to = parts[same.first->second].to;
			continue;
		}
		parts[i].from = zone->create_host("s" + std::to_string(i), 1e9)->seal();
		parts[i].to = zone->create_host("d" + std::to_string(i), 1e9)->seal();
		for (size_t l : parts[i].links) {
			route.emplace_back(made[l]);
		}
		zone->add_route(parts[i].from->get_netpoint(), parts[i].to->get_netpoint(), nullptr,
				nullptr, route, false);
	}
	zone->seal();
}

using Start = std::pair<double, size_t>;
static std::priority_queue<Start, std::vector<Start>, std::greater<Start>> starts;

static void release(size_t m)
{
	for (size_t p : messages[m].parts) {
		starts.emplace(sg4::Engine::get_clock() + parts[p].delay, p);
	}
}

// The messages of the first step from `step` on that has any.
static void release_step(int step)
{
	int next = -1;

	for (const Message &m : messages) {
		next = m.step >= step && (next < 0 || m.step < next) ? m.step : next;
	}
	for (size_t m = 0; m < messages.size() && next >= 0; m++) {
		if (messages[m].step == next) {
			release(m);
		}
	}
}

static void ended(size_t m, std::map<int, size_t> &in_step)
{
	int step = messages[m].step;

	end_time = sg4::Engine::get_clock();
	if (lockstep) {
		if (--in_step[step] == 0) {
			release_step(step + 1);
		}
		return;
	}
	for (size_t user : messages[m].users) {
		if (--messages[user].missing == 0) {
			release(user);
		}
	}
}

static void control()
{
	std::vector<sg4::CommPtr> running;
	std::vector<size_t> part_of;
	std::map<int, size_t> in_step;

	for (size_t m = 0; m < messages.size(); m++) {
		messages[m].open = messages[m].parts.size();
		messages[m].missing = messages[m].needs.size();
		in_step[messages[m].step]++;
		for (size_t need : messages[m].needs) {
			messages[need].users.push_back(m);
		}
	}
	for (size_t m = 0; m < messages.size() && !lockstep; m++) {
		if (messages[m].missing == 0) {
			release(m);
		}
	}
	if (lockstep) {
		release_step(0);
	}
	while (!running.empty() || !starts.empty()) {
		double now = sg4::Engine::get_clock();

		if (!starts.empty() && starts.top().first <= now + 1e-12) {
			size_t p = starts.top().second;

			starts.pop();
			running.push_back(sg4::Comm::sendto_async(parts[p].from, parts[p].to,
								  parts[p].bytes));
			part_of.push_back(p);
			continue;
		}
		if (running.empty()) {
			sg4::this_actor::sleep_until(starts.top().first);
			continue;
		}
		ssize_t i = sg4::Comm::wait_any_for(running,
						    starts.empty() ? -1 : starts.top().first - now);
		if (i >= 0) {
			size_t m = parts[part_of[i]].message;

			running[i] = running.back();
			running.pop_back();
			part_of[i] = part_of.back();
			part_of.pop_back();
			if (--messages[m].open == 0) {
				ended(m, in_step);
			}
		}
	}
}

int main(int argc, char **argv)
{
	sg4::Engine e(&argc, argv);

	sg4::Engine::set_config("network/model:CM02");
	sg4::Engine::set_config("network/TCP-gamma:0");
	sg4::Engine::set_config("network/crosstraffic:0");
	sg4::Engine::set_config("surf/precision:1e-12");
	lockstep = argc > 1 && std::string(argv[1]) == "lockstep";
	read_input();
	build_platform();
	if (!messages.empty()) {
		sg4::Actor::create("control", parts[0].from, control);
		e.run();
	}
	std::printf("%.6f\n", end_time * 1e9);
	return 0;
}
