// One QP to one peer, and the work requests posted to it.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "src/base/error.h"
#include "transports/rc/endpoint_table.h"
#include "transports/rc/segment_key.h"
#include "transports/verbs/queue_pair.h"

namespace shmemctl::ibrc {

enum class WorkKind : std::uint8_t { put, get, atomic, signal, flush };

/// The purpose of a work request, and what to do when it is complete.
struct Work {
  WorkKind kind = WorkKind::flush;
  std::int16_t staging_slot = -1; ///< slot to free; -1 if there is none
  std::uint32_t size_bytes = 0;
  std::byte* copy_to = nullptr; ///< where the slot's contents are copied; nullptr: nowhere
};

/// Work requests for one queue pair that are posted together: one doorbell.
class WorkChain {
public:
  static constexpr std::size_t capacity = 8;

  std::size_t size() const { return size_; }
  bool full() const { return size_ == capacity; }
  ibv_send_wr& request(std::size_t index) { return requests_[index]; }
  const Work& work(std::size_t index) const { return works_[index]; }
  void clear() { size_ = 0; }

  /// Adds a WRITE; inline if `local_key` is not given.
  void add_write(const Work& work, const void* source, std::size_t size_bytes,
                 const rc::RdmaAddress& remote, std::optional<std::uint32_t> local_key) {
    ibv_send_wr& request = add(IBV_WR_RDMA_WRITE, work, source, size_bytes, local_key.value_or(0));
    request.wr.rdma.remote_addr = remote.address;
    request.wr.rdma.rkey = remote.rkey;
    if (!local_key)
      request.send_flags = IBV_SEND_INLINE;
  }
  void add_read(const Work& work, void* target, std::size_t size_bytes,
                const rc::RdmaAddress& remote, std::uint32_t local_key) {
    ibv_send_wr& request = add(IBV_WR_RDMA_READ, work, target, size_bytes, local_key);
    request.wr.rdma.remote_addr = remote.address;
    request.wr.rdma.rkey = remote.rkey;
  }
  /// @param result receives the old value: 8 registered bytes
  void add_fetch_add(const Work& work, std::uint64_t* result, std::uint32_t local_key,
                     const rc::RdmaAddress& remote, std::uint64_t operand) {
    ibv_send_wr& request =
        add(IBV_WR_ATOMIC_FETCH_AND_ADD, work, result, sizeof *result, local_key);
    request.wr.atomic.remote_addr = remote.address;
    request.wr.atomic.rkey = remote.rkey;
    request.wr.atomic.compare_add = operand;
  }
  void add_compare_swap(const Work& work, std::uint64_t* result, std::uint32_t local_key,
                        const rc::RdmaAddress& remote, std::uint64_t expected,
                        std::uint64_t desired) {
    ibv_send_wr& request = add(IBV_WR_ATOMIC_CMP_AND_SWP, work, result, sizeof *result, local_key);
    request.wr.atomic.remote_addr = remote.address;
    request.wr.atomic.rkey = remote.rkey;
    request.wr.atomic.compare_add = expected;
    request.wr.atomic.swap = desired;
  }
  /// Makes the last request start only when all READs and atomics before it are complete.
  void fence_last() { requests_[size_ - 1].send_flags |= IBV_SEND_FENCE; }
  /// Whether the chain contains a READ or WRITE. Only these may be executed before earlier WRITEs:
  /// atomics and messages are always ordered after them.
  bool has_transfer() const {
    for (std::size_t i = 0; i < size_; ++i)
      if (requests_[i].opcode == IBV_WR_RDMA_WRITE || requests_[i].opcode == IBV_WR_RDMA_READ)
        return true;
    return false;
  }
  /// Adds a message; inline if `local_key` is not given.
  void add_send(const Work& work, const void* source, std::size_t size_bytes,
                std::optional<std::uint32_t> local_key) {
    ibv_send_wr& request = add(IBV_WR_SEND, work, source, size_bytes, local_key.value_or(0));
    if (!local_key)
      request.send_flags = IBV_SEND_INLINE;
  }
  /// Adds a WRITE of 0 bytes, which completes after all earlier requests.
  void add_flush() {
    ibv_send_wr& request = add(IBV_WR_RDMA_WRITE, Work{}, nullptr, 0, 0);
    request.num_sge = 0;
  }

private:
  ibv_send_wr& add(ibv_wr_opcode opcode, const Work& work, const void* local,
                   std::size_t size_bytes, std::uint32_t local_key) {
    ibv_sge& element = elements_[size_];
    element.addr = reinterpret_cast<std::uintptr_t>(local);
    element.length = static_cast<std::uint32_t>(size_bytes);
    element.lkey = local_key;
    ibv_send_wr& request = requests_[size_];
    std::memset(&request, 0, sizeof request);
    request.sg_list = &element;
    request.num_sge = 1;
    request.opcode = opcode;
    works_[size_++] = work;
    return request;
  }

  std::size_t size_ = 0;
  std::array<ibv_send_wr, capacity> requests_;
  std::array<ibv_sge, capacity> elements_;
  std::array<Work, capacity> works_;
};

/// A position is the number of a work request, counted from 0; it wraps around.
struct Endpoint : rc::EndpointPath {
  static constexpr std::uint32_t depth = 256; ///< a power of two

  Endpoint(const rc::EndpointPath& ends, verbs::QueuePair queue_pair_)
      : rc::EndpointPath(ends), queue_pair(std::move(queue_pair_)), works(depth) {}

  verbs::QueuePair queue_pair;
  std::uint64_t max_message_bytes = 0;
  bool orders_writes = true; ///< whether WRITEs are placed in posting order
  int mtu_bytes = 0;         ///< path MTU, for error messages
  double retry_seconds = 0;  ///< how long the QP retransmits before it fails
  std::uint32_t number = 0;  ///< index in its QP set, or among the QPs for replies

  std::uint32_t posted = 0;
  std::uint32_t retired = 0;     ///< all requests before this position are complete
  std::uint32_t unsignalled = 0; ///< number of requests posted after the last signalled one
  std::uint32_t fenced = 0;      ///< requests before this position precede the last fence
  bool fence_due = false;        ///< the next request must wait for earlier READs and atomics
  std::vector<Work> works;       ///< by position
  std::optional<Error> failure;
  ibv_wc_status failure_status = IBV_WC_SUCCESS;
  bool broken = false; ///< whether a completion has reported the failure
  bool dead = false;   ///< the device accepts no more requests, and completions are lost

  std::uint32_t in_flight() const { return posted - retired; }
  bool has_retired(std::uint32_t position) const {
    return static_cast<std::int32_t>(retired - position) >= 0;
  }
  Work& work(std::uint32_t position) { return works[position % depth]; }
};

} // namespace shmemctl::ibrc
