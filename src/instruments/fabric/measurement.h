// Measures rounds of pairs over the runtime: put bandwidth one way and the other, latency.
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

/// The phase that a PE reports while it measures, and the name of this instrument for FAULT.
inline constexpr const char* phase_name = "fabric";

/// A pair whose data did not arrive as it was sent.
struct CorruptPair {
  int source = 0, target = 0;
};

/// Symmetric memory that is given back by free(), which is collective; not by the destructor,
/// because after an Error the others do not take part.
class SymmetricBlock {
public:
  /// Collective. Throws Error (unavailable), which says how large the heap must be.
  SymmetricBlock(Runtime& runtime, std::size_t size_bytes);
  SymmetricBlock(const SymmetricBlock&) = delete;
  SymmetricBlock& operator=(const SymmetricBlock&) = delete;
  std::byte* get() const { return address_; }
  void free() { runtime_.free(address_); }

private:
  Runtime& runtime_;
  std::byte* address_ = nullptr;
};

/// Every PE has one, made by the same arguments. All functions are collective, throw Error (a PE
/// was lost, a deadline), and leave all PEs in step.
class Measurement {
public:
  /// Says how far a measurement is, on every PE, before each round.
  using Announce = std::function<void(int round, int rounds)>;
  using PartnerOf = std::function<int(int pe, int round)>;

  /// @param max_rounds of one run()
  Measurement(Runtime& runtime, const Options& options, const Effort& effort, int max_rounds,
              Announce announce);
  void free() { memory_.free(); }

  /// Measures these rounds: in each one, first the PE of a pair with the lower number puts for a
  /// slot, then the other one, then both put words for the latency, each part after a sync of all
  /// PEs. The rates are medians over batches of puts, each ended by a quiet.
  /// @param partner_of the same on all PEs; only PE 0 asks for other PEs than itself
  /// @param rounds at most as many as the constructor was told
  /// @return on PE 0 both directions of each pair; empty elsewhere
  std::vector<PairFigure> run(const PartnerOf& partner_of, int rounds);

  /// By round: each PE puts to its targets, one message to each in turn, all PEs at once, for four
  /// slots. The memory that they write to is the same: it is not verified.
  /// @return on PE 0 by round, by PE: GB/s that it sent; empty elsewhere
  std::vector<std::vector<double>>
  run_flows(const std::function<std::vector<int>(int pe, int round)>& targets_of, int rounds);

  /// PE 0: the others must be in follow(). Measures rounds that only PE 0 knows.
  std::vector<PairFigure> lead(const std::vector<Round>& rounds);
  /// PE 0: ends follow() on the others.
  void end_leading();
  /// Other PEs: measure what PE 0 asks for, until it ends that.
  void follow();

  /// PE 0: of all runs so far, each pair once.
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
  /// PE 0: use(pe, records) of each PE. Collective.
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
  bool slow_ = false;      ///< FAULT slows this PE towards its partner
  std::vector<CorruptPair> corrupt_;
  std::uint64_t verified_ = 0;
};

} // namespace shmemctl::fabric
