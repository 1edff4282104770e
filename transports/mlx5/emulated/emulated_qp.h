// The device's side of one QP of the emulated HCA: it polls the doorbell register, reads WQEs,
// executes them and writes CQEs.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/abi/qp_view.h"
#include "transports/mlx5/emulated/decode.h"
#include "transports/mlx5/emulated/emulated_order.h"
#include "transports/mlx5/emulated/executor.h"
#include "transports/mlx5/emulated/key_table.h"
#include "transports/mlx5/emulated/pending_operations.h"

namespace shmemctl::mlx5 {

/// An injected failure: `after_wqes` more WQEs are executed, and the next WQE fails.
struct InjectedFault {
  std::uint64_t after_wqes = 0;
  Syndrome syndrome = Syndrome::retries_exceeded;
};

/// Not thread safe: EmulatedHca serializes calls. The memory that the view points to is not
/// trusted: it may change at any time, to any value.
class EmulatedQp {
public:
  /// @param keys keys of this HCA's memory; must outlive the QP
  EmulatedQp(const QpView& view, const KeyTable& keys, Placement placement = Placement::ordered);

  void connect(std::shared_ptr<Executor> peer) { peer_ = std::move(peer); }
  void inject(const InjectedFault& fault) { faults_.push_back(fault); }

  /// Serves up to `most` WQEs whose doorbell has been rung. Returns the number of steps done.
  unsigned serve(unsigned most);

  // Any thread may call the next two functions at any time: their values are written once.

  std::optional<std::string> fatal_event() const {
    return has_event_.load(std::memory_order_acquire) ? std::optional(fatal_event_) : std::nullopt;
  }
  /// The reason of the QP's first failure, and the WQE that failed.
  struct Detail {
    std::string text;
    std::uint16_t index = 0;
  };
  Detail detail() const { return has_detail_.load(std::memory_order_acquire) ? detail_ : Detail{}; }

  std::uint64_t executed() const { return executed_; }

private:
  enum class State { ready, error, dead };
  /// A WQE that has been executed and whose CQE is not written yet.
  struct Done {
    std::uint8_t opcode;
    std::uint16_t index;
    std::uint32_t size_bytes;
  };

  bool poll_doorbell();
  void step();
  std::size_t fetch();
  Outcome carry_out(std::size_t n_words);
  Outcome execute();
  Outcome gather(unsigned access);
  Outcome execute_atomic(const RaddrSegment& remote, const AtomicFields& fields,
                         const BytePiece& result);
  Outcome postpone();
  Outcome carry_out_pending(const PendingOperation& operation);
  unsigned carry_out_some();
  bool carried_out(const Outcome& outcome, const PendingOperation& failed);
  std::optional<Outcome> injected();
  void settle();
  void fail(const Outcome& outcome, std::uint8_t opcode, std::uint16_t index);
  void write_completion(const Done& done, const Outcome& outcome);
  void die(const std::string& event);

  QpView view_;
  const KeyTable& keys_;
  const Placement placement_;
  PendingOperations pending_;
  std::shared_ptr<Executor> peer_;
  State state_ = State::ready;
  std::uint64_t seen_doorbell_;
  std::uint64_t position_ = 0, announced_ = 0; ///< in WQEBBs: next WQE, end of announced WQEs
  std::uint64_t completions_ = 0;
  std::uint64_t executed_ = 0;
  std::deque<InjectedFault> faults_;
  std::vector<Done> done_;
  std::uint64_t words_[2 * max_ds_count] = {};
  DecodedWqe wqe_;
  std::array<BytePiece, DecodedWqe::max_pieces> pieces_{};
  std::string fatal_event_, thrown_;
  Detail detail_;
  std::atomic<bool> has_event_{false}, has_detail_{false};
};

} // namespace shmemctl::mlx5
