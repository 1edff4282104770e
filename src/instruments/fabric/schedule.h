// Which PEs are measured together, as rounds of disjoint pairs of hosts, and how much time a round
// may take.
#pragma once

#include <cstddef>
#include <vector>

namespace shmemctl::fabric {

/// One PE as an endpoint of the fabric: one NIC (or GPU) of a host. PEs with the same local rank
/// are on the same rail.
struct Endpoint {
  int host = 0; ///< from 0, without gaps
  int rail = 0;
};

/// Two PEs that are measured with each other, in one direction and then in the other.
struct Pairing {
  int first = 0, second = 0;
};
/// Pairings that are measured at the same time. No PE is in two of them.
using Round = std::vector<Pairing>;

/// Pairs all hosts once on each rail, in O(hosts) rounds, by the circle method: every host has a
/// partner in every round (with an odd number of hosts, one rests). With `cross_rail`, each NIC
/// meets each NIC of every other host, and the number of rounds is multiplied by the number of
/// rails.
class Schedule {
public:
  /// @param endpoints by PE; a host may have fewer PEs than another
  Schedule(const std::vector<Endpoint>& endpoints, bool cross_rail);

  int rounds() const { return host_rounds_ * shifts_; }
  int hosts() const { return hosts_; }
  int rails() const { return rails_; }
  /// The partner of `pe` in that round; -1 if it has none.
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

/// How long one pair is measured. A round has three parts: puts in one direction, puts in the other
/// direction, latency in both directions. Each bandwidth part takes one slot, the latency part
/// at most one.
struct Effort {
  double slot_s = 0;             ///< duration of one bandwidth part
  int passes = 1;                ///< passes over the whole schedule; the median over them counts
  std::size_t message_bytes = 0; ///< size of one put
  int max_window = 8;            ///< maximum number of puts in flight
  /// Number of timed puts of 8 bytes, one after the other; a quarter as many untimed ones precede
  /// them.
  int latency_puts = 0;
};

/// Budgets of link time. The default is enough for 1,024 hosts on one rail.
inline constexpr double default_budget_s = 120;
inline constexpr double quick_budget_s = 20;

/// Chooses slots that fit the budget, of 0.5 to 50 ms (10 ms if quick). If one pass takes little of
/// the budget there are several passes, because repetition tells noise from a slow link.
Effort effort_for(int rounds, double budget_s, bool quick);
/// The link time of this effort: slots and latency parts of all rounds and passes.
double link_time_s(const Effort& effort, int rounds);

} // namespace shmemctl::fabric
