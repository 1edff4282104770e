// Which PEs are measured together: rounds of disjoint pairs of hosts, and what a round may cost.
#pragma once

#include <cstddef>
#include <vector>

namespace shmemctl::fabric {

/// One PE as the fabric has it: one NIC (or GPU) of a host. PEs of the same rail are those with the
/// same local rank.
struct Endpoint {
  int host = 0; ///< from 0, without gaps
  int rail = 0;
};

/// Two PEs that are measured with each other, in one direction and then in the other.
struct Pairing {
  int first = 0, second = 0;
};
/// No PE is in two of the pairings.
using Round = std::vector<Pairing>;

/// Every pair of hosts once for each rail, in O(hosts) rounds: the circle method, by which all
/// hosts have a partner in every round (one of an odd number rests). Across rails, each NIC meets
/// each NIC of every other host, in that many times as many rounds as there are rails.
class Schedule {
public:
  /// @param endpoints by PE; a host may have fewer PEs than another
  Schedule(const std::vector<Endpoint>& endpoints, bool cross_rail);

  int rounds() const { return host_rounds_ * shifts_; }
  int hosts() const { return hosts_; }
  int rails() const { return rails_; }
  /// The PE that `pe` meets in that round; -1: none.
  int partner(int pe, int round) const;
  Round round(int number) const;
  /// Number of pairs in the whole schedule: each unordered pair counts once.
  std::size_t pairs() const;

private:
  int pe_at(int host, int rail) const;

  std::vector<Endpoint> endpoints_;
  int hosts_ = 0, rails_ = 0, host_rounds_ = 0, shifts_ = 1;
  std::vector<int> pe_of_; ///< by host * rails + rail; -1: no PE
};

/// How long one pair is measured. A round has three parts: latency both ways, put one way, put the
/// other way; the bandwidth parts have a slot each, the latency part less.
struct Effort {
  double slot_s = 0;             ///< duration of one bandwidth part
  int passes = 1;                ///< over the whole schedule; the median counts
  std::size_t message_bytes = 0; ///< size of one put
  int max_window = 8;            ///< puts in flight together at most
  /// Puts of 8 bytes each, one after the other, after a quarter as many untimed ones.
  int latency_puts = 0;
};

/// Two minutes of link time for 1,024 hosts on one rail.
inline constexpr double default_budget_s = 120;
inline constexpr double quick_budget_s = 20;

/// The slots that fit the budget, of at most 50 ms (10 ms if quick); several passes where one takes
/// little of it, because a repetition tells noise from a slow link.
Effort effort_for(int rounds, double budget_s, bool quick);
/// The link time that it takes: slots and latencies of all rounds and passes.
double link_time_s(const Effort& effort, int rounds);

} // namespace shmemctl::fabric
