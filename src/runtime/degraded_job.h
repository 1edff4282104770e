// Barriers and gathers among the surviving PEs: how a job continues after it has lost some.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "src/runtime/failure_detector.h"
#include "src/runtime/rma.h"

namespace shmemctl {

/// A PE that the job continues without.
struct LostPe {
  int pe = -1;
  std::string why; ///< "its process is gone"
};

/// The functions of the failure detector that DegradedJob uses.
struct DegradedJobHooks {
  std::function<Presence(int pe, double limit_s)> presence;
  std::function<void()> exclude_self; ///< called when the others continue without this PE
};

/// Every PE signals its arrival to PE 0, which decides which PEs are lost and sends the decision to
/// the survivors, so that all agree. A PE is lost if its process has exited, if it does not respond
/// (stopped), or if it responds but does not arrive within half of the timeout. A lost PE stays
/// lost. PE 0 itself cannot be lost. Flags contain the number of the barrier, so they are never
/// reset.
class DegradedJob {
public:
  static constexpr int max_pes = 64;
  static constexpr std::size_t chunk_bytes = std::size_t{1} << 16;
  /// The symmetric memory that a DegradedJob needs.
  static std::size_t size_bytes();

  /// @param memory size_bytes() of symmetric memory, aligned to 64, zeroed on all PEs before the
  /// first barrier
  DegradedJob(Rma& rma, DegradedJobHooks hooks, std::byte* memory);

  /// Barrier of the survivors: puts before it are complete, and visible after it. Throws Error:
  /// finding on a PE that the others have excluded; deadline, naming PE 0, if PE 0 does not
  /// respond.
  void barrier(const char* step);
  /// Collective over the survivors: returns the texts of all PEs, by PE; "" for lost PEs.
  std::vector<std::string> gather(const std::string& text);

  bool is_lost(int pe) const { return ((lost_ >> pe) & 1U) != 0; }
  bool any_pe_lost() const { return lost_ != 0; }
  /// In the order of their loss. Filled on PE 0 only, since the other PEs do not know the reasons.
  const std::vector<LostPe>& lost() const { return reasons_; }

private:
  using Clock = std::chrono::steady_clock;
  struct Memory;

  /// @param size sent to PE 0
  /// @param decide run by PE 0 once all survivors have arrived; all PEs return its result
  std::uint64_t barrier(const char* step, std::uint64_t size,
                        const std::function<std::uint64_t()>& decide);
  std::uint64_t release(const char* step, const std::function<std::uint64_t()>& decide);
  void await(int pe, const char* step, Clock::time_point begin);
  void mark_lost(int pe, const std::string& why);
  [[noreturn]] void throw_excluded();
  std::vector<std::string> gather_on_first(const std::string& text);
  std::string broadcast(std::string text);

  Rma& rma_;
  const DegradedJobHooks hooks_;
  Memory& memory_;
  std::uint64_t number_ = 0; ///< number of the last barrier
  std::uint64_t lost_ = 0;   ///< a bit for each PE
  std::vector<LostPe> reasons_;
};

/// Splits the message in which PE 0 sends all texts: the length of each text as 8 bytes, then all
/// texts. Throws Error (unavailable) if `all` does not have this format.
std::vector<std::string> split_gathered(const std::string& all, int n_pes);

} // namespace shmemctl
