// A QP to one peer, for host threads.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "src/abi/post_wqe.h"
#include "src/base/error.h"
#include "src/base/job_health.h"
#include "transports/mlx5/hca.h"
#include "transports/mlx5/host_memory.h"

namespace shmemctl::mlx5 {

/// Thread safe. The peer executes operations in the order in which a thread posts them, with two
/// exceptions. A READ or atomic may still be in flight when a later operation without a fence
/// starts. If the connected QP does not keep the order of WRITEs (HcaQp::abilities()), a WRITE or
/// READ may be executed before earlier ones. Functions that post, poll or wait throw Error
/// (unavailable) that names device, port, peer and status once an operation of the QP has failed;
/// on timeout, JobHealth throws.
class HostQp {
public:
  /// An operation is complete when wait() with its ticket, or a later ticket, returns.
  using Ticket = std::uint64_t;

  /// @param health outlives the queue
  /// @param peer   the peer, for error messages
  /// @param here   this PE and its host, for error messages
  HostQp(Hca& hca, const QpOptions& options, JobHealth& health, int peer,
         std::chrono::duration<double> timeout, const Where& here = {});

  PeerInfo local() const { return queue_->local(); }
  void connect(const PeerInfo& peer) { queue_->connect(peer); }

  /// RDMA WRITE of any size. The source must not change until the WRITE is complete.
  Ticket write(const RaddrSegment& remote, const void* source, std::uint32_t lkey,
               std::size_t size_bytes, const Post& post = {});
  /// RDMA WRITE with inline data, at most `max_inline` bytes. `source` may be reused on return.
  Ticket write_inline(const RaddrSegment& remote, const void* source, std::size_t size_bytes,
                      const Post& post = {});
  static constexpr std::size_t max_inline = 92; ///< two WQEBBs
  /// RDMA READ of any size.
  Ticket read(const RaddrSegment& remote, void* target, std::uint32_t lkey, std::size_t size_bytes,
              const Post& post = {});
  /// A non-fetching atomic.
  Ticket update(const RaddrSegment& remote, const AtomicFields& fields, const Post& post = {});
  /// An atomic; returns the old value.
  std::uint64_t fetch(const RaddrSegment& remote, const AtomicFields& fields,
                      const Post& post = {DoorbellMode::now, true, false});

  /// Rings the doorbell for WQEs that were posted with DoorbellMode::later.
  void flush();
  /// Processes available CQEs.
  void progress();
  /// Whether the operation is complete, as of the CQEs processed so far.
  bool done(Ticket ticket) const { return send_.completed() >= ticket; }
  void wait(Ticket ticket);
  /// Waits until all earlier operations are complete at the peer.
  void quiet();
  /// The ticket that quiet() waits for; posts a NOP if one is needed.
  Ticket request_quiet();

  HcaQp& hca_queue() { return *queue_; }

private:
  using Send = SendQueue<DeviceShape, HostMemory>;
  class Wait;
  struct Waits;
  class ResultSlot;

  template <class Build>
  Ticket post(std::uint32_t wqebbs, const Post& how, const Build& build);
  template <class Build>
  Ticket post_parts(const RaddrSegment& remote, const void* memory, std::uint32_t lkey,
                    std::size_t size_bytes, const Post& how, const Build& build);
  void check_failure() const;
  [[noreturn]] void throw_failure(const Failure& failure) const;
  Where where() const;
  [[noreturn]] void throw_event(const std::string& event) const;
  std::string queue_text() const;

  const HcaInfo info_;
  JobHealth& health_;
  const int peer_;
  const std::chrono::duration<double> timeout_;
  const Where here_;
  /// The HCA writes old values of atomics to it: element 0 takes those that are not used; each of
  /// the others serves one fetch in flight.
  std::vector<std::uint64_t> results_;
  std::atomic<std::uint64_t> free_results_{~std::uint64_t{1}};
  std::unique_ptr<HcaMemory> results_memory_;
  std::unique_ptr<HcaQp> queue_;
  Send send_;
  std::atomic<std::uint64_t> known_completed_{0};
};

} // namespace shmemctl::mlx5
