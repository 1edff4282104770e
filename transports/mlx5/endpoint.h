// The QP of one QP set to one peer over one path, and the state of its operations.
#pragma once

#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>

#include "transports/mlx5/host_qp.h"
#include "transports/mlx5/job_view.h"
#include "transports/mlx5/qp_layout.h"
#include "transports/mlx5/settings.h"
#include "transports/rc/endpoint_table.h"
#include "transports/rc/staging.h"

namespace shmemctl::mlx5 {

/// Memory for a QP's queues, if Hca does not allocate it. It is initialized as GPU memory would be:
/// with zeros, and with 0xff in the CQEs.
class QueueMemory {
public:
  explicit QueueMemory(const QpOptions& options)
      : layout_(qp_layout(options)),
        memory_(std::aligned_alloc(page_bytes_of(options), layout_.size_bytes), std::free) {
    if (!memory_)
      throw Error(ExitCode::unavailable, "mlx5 QP", "create", "out of memory",
                  "lower SHMEMCTL_QP_DEPTH, or free memory");
    std::memset(memory_.get(), 0, layout_.size_bytes);
    std::memset(static_cast<std::byte*>(memory_.get()) + layout_.completions_offset, 0xff,
                layout_.cqe_count * wqebb_bytes);
  }
  void place(QpOptions& options) const {
    options.memory = memory_.get();
    options.memory_bytes = layout_.size_bytes;
  }

private:
  QpLayout layout_;
  std::unique_ptr<void, void (*)(void*)> memory_;
};

/// Not thread safe: called under the QP set's lock.
class Endpoint : public rc::EndpointPath {
public:
  using Ticket = HostQp::Ticket;

  /// @param memory nullptr if Hca allocates the queues
  Endpoint(const JobView& job, const rc::EndpointPath& ends, QpOptions options,
           std::unique_ptr<QueueMemory> memory)
      : rc::EndpointPath(ends), memory_(std::move(memory)),
        queue_(*job.ports[ends.port].hca, placed(options), *job.health, ends.pe,
               std::chrono::duration<double>(job.timeout_s), job.where()) {}

  HostQp& queue() { return queue_; }

  /// The doorbell mode for WQEs that no caller waits for yet: an idle HCA is notified at once, a
  /// busy HCA once for several WQEs. flush() and every WQE with DoorbellMode::now ring for all WQEs
  /// so far.
  DoorbellMode lazy_doorbell() {
    return unrung_ + 1 >= wqes_per_doorbell || queue_.done(last_) ? DoorbellMode::now
                                                                  : DoorbellMode::later;
  }
  void flush() {
    if (unrung_ > 0)
      queue_.flush();
    unrung_ = 0;
  }

  /// Capabilities of the connected QP: those that both ends support.
  QpCapabilities abilities() { return queue_.hca_queue().abilities(); }

  /// How to post the next WRITE or READ. A WQE whose doorbell is rung at once on an idle QP
  /// requests a CQE, so that quiet() need not post a WQE for that. Waits if a fence demands it.
  Post next(DoorbellMode doorbell, bool completion = false) {
    if (fence_due_ && !abilities().orders_writes())
      await_own_fence();
    const bool fence = fence_due_ && responses_due_;
    if (fence)
      fence_due_ = atomics_fence_due_ = responses_due_ = false;
    return posted_by(doorbell, completion, fence);
  }
  /// The same for an atomic, which the HCA always executes after earlier WRITEs.
  Post next_atomic(DoorbellMode doorbell, bool completion = false) {
    const bool fence = atomics_fence_due_ && responses_due_;
    atomics_fence_due_ = false;
    if (abilities().orders_writes())
      fence_due_ = false; // later operations are ordered after this WQE, and so after the fence
    return posted_by(doorbell, completion, fence);
  }
  void posted(Ticket ticket) { last_ = ticket; }
  Ticket last() const { return last_; }
  /// Records that a READ or atomic was posted: a fence must wait for its response.
  void response_due() { responses_due_ = true; }

  void fence() {
    flush();
    fence_due_ = atomics_fence_due_ = true;
    fenced_ = fence_at_ = last_;
  }
  /// Waits for the WQEs posted before the last fence. Called before another endpoint to the same
  /// peer posts.
  void await_fenced(rc::Staging& staging) {
    if (fenced_ == 0)
      return;
    if (!queue_.done(fenced_))
      queue_.wait(queue_.request_quiet());
    fenced_ = 0;
    retire(staging);
  }

  /// Keeps a slot in use until the WQE is complete.
  /// @param copy_to where the slot's contents are copied then; nullptr: nowhere
  void hold(Ticket ticket, std::int16_t slot, std::byte* copy_to, std::uint32_t size_bytes) {
    held_.push_back({ticket, copy_to, size_bytes, slot});
  }
  /// The ticket whose completion frees the next slot; 0 if no slot is held.
  Ticket oldest_held() const { return held_.empty() ? 0 : held_.front().ticket; }
  /// Frees the slots of completed WQEs.
  void retire(rc::Staging& staging) {
    while (!held_.empty() && queue_.done(held_.front().ticket)) {
      const Held& held = held_.front();
      if (held.copy_to)
        std::memcpy(held.copy_to, staging.at(held.slot), held.size_bytes);
      staging.release(held.slot);
      held_.pop_front();
    }
  }
  /// Called when all posted WQEs are complete.
  void settled(rc::Staging& staging) {
    retire(staging);
    unrung_ = 0;
    fence_due_ = atomics_fence_due_ = responses_due_ = false;
    fenced_ = 0;
  }

private:
  Post posted_by(DoorbellMode doorbell, bool completion, bool fence) {
    unrung_ = doorbell == DoorbellMode::now ? 0 : unrung_ + 1;
    return {doorbell, completion || (doorbell == DoorbellMode::now && queue_.done(last_)), fence};
  }
  /// Waits for the WQEs before the last fence: a later WRITE may be placed before them until they
  /// are complete.
  void await_own_fence() {
    if (!queue_.done(fence_at_)) {
      queue_.wait(queue_.request_quiet());
      unrung_ = 0;
      responses_due_ = false;
    }
    fence_due_ = atomics_fence_due_ = false;
  }

  static constexpr unsigned wqes_per_doorbell = 16;

  struct Held {
    Ticket ticket;
    std::byte* copy_to;
    std::uint32_t size_bytes;
    std::int16_t slot;
  };

  const QpOptions& placed(QpOptions& options) const {
    if (memory_)
      memory_->place(options);
    return options;
  }

  std::unique_ptr<QueueMemory> memory_;
  HostQp queue_;
  Ticket last_ = 0;
  Ticket fenced_ = 0;   ///< ticket that other endpoints must wait for
  Ticket fence_at_ = 0; ///< the last WQE before the last fence
  unsigned unrung_ = 0; ///< WQEs since the last doorbell
  bool fence_due_ = false, atomics_fence_due_ = false, responses_due_ = false;
  std::deque<Held> held_;
};

} // namespace shmemctl::mlx5
