#include "src/instruments/fabric/schedule.h"

#include <algorithm>

namespace shmemctl::fabric {

Schedule::Schedule(const std::vector<Endpoint>& endpoints, bool cross_rail)
    : endpoints_(endpoints) {
  for (const Endpoint& endpoint : endpoints) {
    hosts_ = std::max(hosts_, endpoint.host + 1);
    rails_ = std::max(rails_, endpoint.rail + 1);
  }
  const int even = hosts_ + hosts_ % 2; // with an odd number of hosts, one rests in turn
  host_rounds_ = hosts_ < 2 ? 0 : even - 1;
  shifts_ = cross_rail ? rails_ : 1;
  pe_of_.assign(static_cast<std::size_t>(hosts_) * static_cast<std::size_t>(rails_), -1);
  for (std::size_t pe = 0; pe < endpoints.size(); ++pe)
    pe_of_[static_cast<std::size_t>(endpoints[pe].host * rails_ + endpoints[pe].rail)] =
        static_cast<int>(pe);
}

int Schedule::pe_at(int host, int rail) const {
  return host < hosts_ ? pe_of_[static_cast<std::size_t>(host * rails_ + rail)] : -1;
}

int Schedule::partner(int pe, int round) const {
  const int on_circle =
      host_rounds_; // hosts 0 ... on_circle - 1 are on it; host on_circle is in the middle
  if (on_circle == 0)
    return -1;
  const Endpoint& self = endpoints_[static_cast<std::size_t>(pe)];
  const int shift = round / on_circle, turn = round % on_circle;
  int host = on_circle; // on the circle, hosts meet if their numbers add up to 2 * turn
  if (self.host == on_circle)
    host = turn;
  else if (self.host != turn)
    host = (2 * turn - self.host + 2 * on_circle) % on_circle;
  // The PE of the host with the lower number meets a PE whose rail is `shift` further on.
  const int rail =
      self.host < host ? (self.rail + shift) % rails_ : (self.rail - shift + rails_) % rails_;
  return pe_at(host, rail);
}

Round Schedule::round(int number) const {
  Round pairs;
  for (int pe = 0; pe < static_cast<int>(endpoints_.size()); ++pe)
    if (const int other = partner(pe, number); other > pe)
      pairs.push_back({pe, other});
  return pairs;
}

std::size_t Schedule::pairs() const {
  std::size_t count = 0;
  for (int number = 0; number < rounds(); ++number)
    count += round(number).size();
  return count;
}

namespace {

constexpr double longest_slot_s = 0.05, longest_quick_slot_s = 0.01, shortest_slot_s = 0.0005;
/// Share of the budget for slots and latency parts; the rest is for synchronisation, verification
/// and second measurements.
constexpr double share_for_slots = 0.75;
/// Several passes are made only in small jobs: all passes together take no longer than this.
constexpr double repetition_s = 10, quick_repetition_s = 2;
constexpr int max_passes = 5;
constexpr std::size_t usual_message = std::size_t{1} << 20, short_message = std::size_t{1} << 18;
constexpr double short_slot_s = 0.02; ///< messages are short if slots are shorter than this
constexpr int usual_latency_puts = 64, few_latency_puts = 16;
/// Estimated time of one put until its completion; RDMA takes a tenth of it, TCP twice as much.
constexpr double latency_s = 20e-6;
constexpr double warm_up_share = 1.25;

double latency_part_s(int puts) {
  return warm_up_share * puts * latency_s;
}

} // namespace

Effort effort_for(int rounds, double budget_s, bool quick) {
  Effort effort;
  if (rounds <= 0)
    return effort;
  effort.latency_puts = quick ? few_latency_puts : usual_latency_puts;
  const double round_s = share_for_slots * budget_s / rounds;
  effort.slot_s = std::clamp((round_s - latency_part_s(effort.latency_puts)) / 2, shortest_slot_s,
                             quick ? longest_quick_slot_s : longest_slot_s);
  effort.message_bytes = effort.slot_s < short_slot_s ? short_message : usual_message;
  const double pass_s = link_time_s(effort, rounds);
  const double repeat_s = std::min(budget_s, quick ? quick_repetition_s : repetition_s);
  effort.passes = std::clamp(static_cast<int>(repeat_s / pass_s), 1, max_passes);
  return effort;
}

double link_time_s(const Effort& effort, int rounds) {
  return effort.passes * rounds * (2 * effort.slot_s + latency_part_s(effort.latency_puts));
}

} // namespace shmemctl::fabric
