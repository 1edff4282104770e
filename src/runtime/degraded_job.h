// Meetings of the PEs that are left: how a job goes on without those that it has lost.
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

/// One that the job goes on without.
struct LostPe {
  int pe = -1;
  std::string why; ///< "its process is gone"
};

/// What Survivors asks of the lifeline.
struct SurvivorHooks {
  std::function<Presence(int pe, double limit_s)> presence;
  std::function<void()> step_aside; ///< the others go on without this PE
};

/// Every PE tells PE 0 that it has come; PE 0 decides who is lost, and tells all that are left, so
/// that all know the same. Lost is whose process is gone, who does not answer (stopped), and who
/// does not come within half of the timeout, however well it answers; once lost, always lost. PE 0
/// itself cannot be lost. Words are numbered by the meeting, so nothing is ever zeroed.
class Survivors {
public:
  static constexpr int most_pes = 64;
  static constexpr std::size_t chunk_bytes = std::size_t{1} << 16;
  /// Symmetric memory that one takes.
  static std::size_t size_bytes();

  /// @param memory size_bytes() of it, aligned to 64, zeroed on all PEs before any goes on
  Survivors(Rma& rma, SurvivorHooks hooks, std::byte* memory);

  /// Collective of those that are left: a barrier; puts before it are complete and visible behind
  /// it. Throws Error (finding) on a PE that the others go on without; (deadline) that names PE 0
  /// if that one does not answer.
  void meet(const char* step);
  /// Collective of those that are left: one text of each PE at every PE; "" of those lost.
  std::vector<std::string> gather(const std::string& text);

  bool is_lost(int pe) const { return ((lost_ >> pe) & 1U) != 0; }
  bool anybody_lost() const { return lost_ != 0; }
  /// In the order of their loss; on PE 0, which alone knows why.
  const std::vector<LostPe>& lost() const { return reasons_; }

private:
  using Clock = std::chrono::steady_clock;
  struct Memory;

  /// @param size for PE 0
  /// @param decide by PE 0 once all that are left have come: what all get
  std::uint64_t meet(const char* step, std::uint64_t size,
                     const std::function<std::uint64_t()>& decide);
  std::uint64_t release(const char* step, const std::function<std::uint64_t()>& decide);
  void await(int pe, const char* step, Clock::time_point begin);
  void lose(int pe, const std::string& why);
  [[noreturn]] void leave();
  std::vector<std::string> gather_on_first(const std::string& text);
  std::string spread(std::string text);

  Rma& rma_;
  const SurvivorHooks hooks_;
  Memory& memory_;
  std::uint64_t number_ = 0; ///< of the last meeting
  std::uint64_t lost_ = 0;   ///< a bit for each PE
  std::vector<LostPe> reasons_;
};

/// The texts that PE 0 has put together: the length of each, as 8 bytes, then all of them. Throws
/// Error (unavailable) for anything else.
std::vector<std::string> split_gathered(const std::string& all, int n_pes);

} // namespace shmemctl
