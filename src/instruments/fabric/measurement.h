// Measures rounds of pairs through the runtime: put bandwidth in each direction, and latency.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "src/base/options.h"
#include "src/base/sysroot.h"
#include "src/instruments/fabric/diagnosis.h"
#include "src/instruments/fabric/schedule.h"
#include "src/runtime/runtime.h"

namespace shmemctl::fabric {

/// The phase that a PE reports while it measures, which is also the name of this instrument in
/// FAULT.
inline constexpr const char* phase_name = "fabric";

/// A pair whose data did not arrive as it was sent.
struct CorruptPair {
  int source = 0, target = 0;
};

/// Symmetric memory. free(), which is collective, frees it. The destructor does not, because after
/// an Error the other PEs do not take part.
class SymmetricBlock {
public:
  /// Collective. If the heap is too small, throws Error (unavailable), which says how large it must
  /// be.
  SymmetricBlock(Runtime& runtime, std::size_t size_bytes);
  SymmetricBlock(const SymmetricBlock&) = delete;
  SymmetricBlock& operator=(const SymmetricBlock&) = delete;
  std::byte* get() const { return address_; }
  void free() { runtime_.free(address_); }

private:
  Runtime& runtime_;
  std::byte* address_ = nullptr;
};

/// Every PE has one, constructed with the same arguments. Functions that measure are collective,
/// throw Error (a PE was lost, a deadline passed), and leave all PEs in step.
class Measurement {
public:
  /// Reports progress; called on every PE before each round.
  using Announce = std::function<void(int round, int rounds)>;
  using PartnerOf = std::function<int(int pe, int round)>;

  /// @param max_rounds maximum number of rounds of one run()
  Measurement(Runtime& runtime, const Options& options, const Effort& effort, int max_rounds,
              Announce announce);
  void free() { memory_.free(); }

  /// Measures these rounds. In each round, first the PE of a pair with the lower number puts for
  /// one slot, then the other PE, then both put words for the latency. All PEs synchronize before
  /// each part. The rates are medians over batches of puts, each of which ends with a quiet.
  /// @param partner_of the same on all PEs; only PE 0 calls it for PEs other than itself
  /// @param rounds at most `max_rounds` of the constructor
  /// @return on PE 0 both directions of each pair; empty elsewhere
  std::vector<PairFigure> run(const PartnerOf& partner_of, int rounds);

  /// In each round, all PEs that have targets put at the same time, to one target after the other,
  /// for four slots. All senders write to the same memory of a target, so the data is not verified.
  /// @return on PE 0, by round and PE: the rate at which the PE sent in GB/s; empty elsewhere
  std::vector<std::vector<double>>
  run_flows(const std::function<std::vector<int>(int pe, int round)>& targets_of, int rounds);

  /// PE 0: measures rounds that only PE 0 knows. The other PEs must be in follow().
  std::vector<PairFigure> lead(const std::vector<Round>& rounds);
  /// PE 0: ends follow() on the others.
  void end_leading();
  /// Other PEs: measure the rounds that PE 0 requests, until PE 0 calls end_leading().
  void follow();

  /// PE 0: corrupt pairs of all runs so far, each pair once.
  const std::vector<CorruptPair>& corrupt() const { return corrupt_; }
  std::uint64_t pairs_verified() const { return verified_; }

private:
  struct Record;
  struct Header;

  std::byte* at(std::size_t offset) const { return memory_.get() + offset; }
  Record& record(int round) const;
  void measure_round(int partner, int round);
  void send(int partner, Record& record);
  void time_latency(int partner, Record& record) const;
  double batch_s(int partner, int window) const;
  double flow_GBps(const std::vector<int>& targets) const;
  /// Collective. PE 0 calls use(pe, records) for each PE.
  template <class Use>
  void read_records(int rounds, const Use& use);
  void stamp(int window);
  bool arrived(int source) const;
  std::vector<PairFigure> collect(const PartnerOf& partner_of, int rounds);
  void add_pe(int pe, const Record* records, const PartnerOf& partner_of, int rounds,
              std::vector<PairFigure>& to);
  void sync() const { runtime_.teams().sync(team_world); }

  Runtime& runtime_;
  const Options& options_;
  Effort effort_;
  int max_rounds_;
  Announce announce_;
  Sysroot sysroot_;
  std::size_t source_at_, landing_at_, header_at_, word_at_, records_at_, scratch_at_, plan_at_;
  SymmetricBlock memory_;
  std::uint64_t slot_ = 0; ///< counts the parts of all rounds; stamps tell them apart
  bool faulted_ = false;   ///< FAULT has taken effect
  std::vector<CorruptPair> corrupt_;
  std::uint64_t verified_ = 0;
};

} // namespace shmemctl::fabric
