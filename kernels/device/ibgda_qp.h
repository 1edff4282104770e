// The device side of IBGDA: a thread of a kernel that posts to one of its PE's QPs. The same code
// runs on host threads in tests. `Memory`: GpuMemory or mlx5::HostMemory. `Wait`: as in
// proxy_client.h.
#pragma once

#include "src/abi/device_job.h"
#include "src/abi/post_wqe.h"
#include "src/abi/qp_table.h"

namespace shmemctl::device {

/// Number of kernel QPs to that PE: one per path and kernel QP set. QP q uses path q % paths and
/// kernel QP set q / paths.
SHMEMCTL_HOST_DEVICE inline std::uint32_t qps_to(const DeviceNetwork& network, std::uint32_t pe) {
  return network.queues->paths_to(pe) * network.n_kernel_qp_sets;
}
/// The QP that caller number `caller` (a block or a warp) uses. Callers are spread over the QPs, so
/// that they do not have to wait for each other's turn to post.
SHMEMCTL_HOST_DEVICE inline std::uint32_t qp_of(const DeviceNetwork& network, std::uint32_t pe,
                                                std::uint32_t caller) {
  return caller % qps_to(network, pe); // NOLINT(clang-analyzer-core.DivideZero): one path or more
}
/// The QP for atomics: on the first path only, since atomics of two HCAs are not atomic with each
/// other.
SHMEMCTL_HOST_DEVICE inline std::uint32_t atomic_qp_of(const DeviceNetwork& network,
                                                       std::uint32_t pe, std::uint32_t caller) {
  return caller % network.n_kernel_qp_sets * network.queues->paths_to(pe);
}
/// Whether all operations of a block on that PE go to one QP, which orders them.
SHMEMCTL_HOST_DEVICE inline bool has_one_qp(const DeviceNetwork& network, std::uint32_t pe) {
  return network.queues->paths_to(pe) == 1 &&
         (network.n_kernel_qp_sets == 1 || network.qp_per_warp == 0);
}

struct QpAddress {
  std::uint32_t region;
  std::uint64_t offset_bytes;
};

/// One of the kernels' QPs to one PE. Each thread has its own object; any number of threads may use
/// a QP. All operations return false on failure; problem() says why.
///
/// On a QP that places WRITEs in order (QpCapabilities), operations are executed at the PE in
/// posting order, except that an operation after a READ or atomic may start before its response,
/// unless a fence is in between. On any other QP, WRITEs and READs are unordered; atomics come
/// after earlier WRITEs and atomics.
template <class Memory, class Wait>
class QpClient {
public:
  using Address = QpAddress;

  /// @param number number of the QP, less than qps_to()
  /// @param who    thread number: threads with different numbers start with different result slots
  SHMEMCTL_HOST_DEVICE QpClient(const DeviceNetwork& network, std::uint32_t pe,
                                std::uint32_t number, std::uint32_t who, Wait& wait)
      : network_(network), table_(*network.queues), pe_(pe), number_(number), who_(who),
        // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): one path or more
        wait_(wait), queue_(table_.queue(pe, number % table_.paths_to(pe),
                                         network.first_qp_set + number / table_.paths_to(pe))),
        send_(queue_.view) {}

  /// `source` may be reused on return if the put is `blocking`, or if it was sent inline because it
  /// is small or not registered; else after quiet().
  SHMEMCTL_HOST_DEVICE bool put(const Address& target, const void* source, std::uint64_t size_bytes,
                                bool blocking) {
    std::uint64_t ticket = 0;
    return size_bytes == 0 ||
           (post_put(target, source, size_bytes, mlx5::DoorbellMode::now, blocking, ticket) &&
            (!blocking || wait_for(ticket)));
  }
  SHMEMCTL_HOST_DEVICE bool put_value(const Address& target, std::uint64_t value,
                                      std::uint32_t size_bytes) {
    std::uint64_t ticket = 0;
    return post_value(target, value, size_bytes, false, ticket);
  }
  /// Always blocking if `target` is not registered.
  SHMEMCTL_HOST_DEVICE bool get(void* target, const Address& source, std::uint64_t size_bytes,
                                bool blocking);
  SHMEMCTL_HOST_DEVICE bool get_value(const Address& source, std::uint32_t size_bytes,
                                      std::uint64_t& value) {
    value = 0;
    return get_by_result(&value, source, size_bytes);
  }
  /// @param old receives the old value; nullptr: non-fetching, complete after quiet()
  SHMEMCTL_HOST_DEVICE bool atomic(const Address& target, AtomicOp op, std::uint8_t size_bytes,
                                   std::uint64_t operand, std::uint64_t compare,
                                   std::uint64_t* old);
  /// Put with signal: the payload is visible at the target before the signal.
  SHMEMCTL_HOST_DEVICE bool put_signal(const Address& target, const void* source,
                                       std::uint64_t size_bytes, const Address& signal,
                                       std::uint64_t value, bool add, bool blocking) {
    std::uint64_t ticket = 0;
    // One doorbell for both, unless the signal must wait for the payload's completion.
    const bool waits = !add && signal_method() == mlx5::SignalMethod::completion;
    if (size_bytes > 0 &&
        !(post_put(target, source, size_bytes,
                   waits ? mlx5::DoorbellMode::now : mlx5::DoorbellMode::later, waits, ticket) &&
          (!waits || wait_for(ticket))))
      return false;
    const bool by_atomic = add || signal_method() == mlx5::SignalMethod::atomic;
    return (by_atomic ? post_update(signal,
                                    add ? mlx5::atomic_add(8, value) : mlx5::atomic_swap(8, value),
                                    blocking, ticket)
                      : post_value(signal, value, 8, blocking, ticket)) &&
           (!blocking || wait_for(ticket));
  }

  /// Operations posted to this QP before, by any thread, are performed before those posted later.
  SHMEMCTL_HOST_DEVICE bool fence() {
    // Only a completion orders a WRITE before a later one.
    if (!queue_.abilities.orders_writes())
      return !used() || quiet();
    // Acquire, pairs with the releases of the marks: a fence that another thread has posted after
    // our READs and atomics orders them before all that we post from now on.
    const std::uint64_t answers = Memory::load_acquire(&marks().answers);
    if (answers <= Memory::load_acquire(&marks().fenced) || send_.completed() >= answers)
      return true;
    std::uint64_t ticket = 0;
    const bool posted = post(
        mlx5::wqebbs_for(mlx5::nop_ds_count), {mlx5::DoorbellMode::later, false, true},
        [](auto& slot, const mlx5::WqeHead& head) { mlx5::build_nop(slot, head); }, ticket);
    if (posted)
      Memory::fetch_max_release(&marks().fenced, ticket);
    return posted;
  }

  /// Whether anything was ever posted to this QP.
  SHMEMCTL_HOST_DEVICE bool used() const {
    return Memory::load(&send_.view().words->reserved) != 0;
  }
  /// Rings the doorbell, and posts a NOP if needed: first half of a quiet of several QPs, so that
  /// they work concurrently.
  SHMEMCTL_HOST_DEVICE SHMEMCTL_NOINLINE bool begin_quiet(std::uint64_t& ticket) {
    Waits waits{*this};
    return well() && mlx5::post_quiet(send_, send_.completed(), waits, ticket);
  }
  SHMEMCTL_HOST_DEVICE bool quiet() {
    std::uint64_t ticket = 0;
    return begin_quiet(ticket) && wait_for(ticket);
  }

  SHMEMCTL_HOST_DEVICE const NetworkProblem& problem() const { return problem_; }

private:
  static constexpr std::uint32_t max_inline_bytes_of_two_wqebbs = 92;
  using Send = mlx5::SendQueue<mlx5::DeviceShape, Memory>;

  SHMEMCTL_HOST_DEVICE mlx5::SignalMethod signal_method() const { return queue_.abilities.signals; }

  struct Waits {
    QpClient& client;
    SHMEMCTL_HOST_DEVICE SHMEMCTL_NOINLINE bool room(std::uint64_t end) {
      std::uint64_t known = 0;
      return client.until(WaitKind::qp_room, end,
                          [&] { return client.send_.poll_for_room(end, known); });
    }
    template <class Attempt>
    SHMEMCTL_HOST_DEVICE SHMEMCTL_NOINLINE bool turn(const Attempt& attempt) {
      return client.until(WaitKind::qp_publish_turn, 0, attempt);
    }
  };

  SHMEMCTL_HOST_DEVICE bool fail(WaitKind kind, std::uint64_t expected, std::uint64_t seen,
                                 std::uint64_t offset_bytes = 0) {
    problem_ = {kind, expected, seen, offset_bytes};
    return false;
  }
  SHMEMCTL_HOST_DEVICE bool well() {
    const std::uint64_t failure = send_.failure();
    return failure == 0 || fail(WaitKind::qp_failed, 0, failure);
  }
  template <class Ready>
  SHMEMCTL_HOST_DEVICE bool until(WaitKind kind, std::uint64_t expected, const Ready& ready) {
    wait_.start();
    while (!ready()) {
      if (!well())
        return false;
      if (!wait_.pause())
        return fail(kind, expected, send_.completed());
    }
    wait_.stop();
    return true;
  }
  SHMEMCTL_HOST_DEVICE SHMEMCTL_NOINLINE bool wait_for(std::uint64_t ticket) {
    return until(WaitKind::qp_completion, ticket, [&] {
      if (send_.completed() >= ticket)
        return true;
      send_.poll();
      return send_.completed() >= ticket;
    });
  }

  SHMEMCTL_HOST_DEVICE QpMarks& marks() const {
    return network_.marks[pe_ * network_.qps_per_pe + number_];
  }
  SHMEMCTL_HOST_DEVICE const mlx5::RemoteSegment* find(const Address& place, std::uint64_t done) {
    const mlx5::RemoteSegment* segment =
        table_.find_remote(pe_, place.region, place.offset_bytes + done);
    if (!segment)
      fail(WaitKind::not_registered, place.region, 0, place.offset_bytes + done);
    return segment;
  }

  template <class Build>
  SHMEMCTL_HOST_DEVICE bool post(std::uint32_t wqebbs, const mlx5::Post& how, const Build& build,
                                 std::uint64_t& ticket) {
    Waits waits{*this};
    // Read before posting: a QP in error discards the WQE, so there is nothing to wait for.
    const std::uint64_t failure = send_.failure();
    const std::uint64_t known = send_.completed();
    const auto group = Memory::group(group_key(wqebbs, how));
    std::uint64_t start = 0;
    const bool posted = mlx5::post_wqe(send_, group, wqebbs, how, known, waits, build, start);
    ticket = start + 1;
    // Only the leader waits, for room and for its turn: take over what it timed out on.
    if (!posted)
      problem_ = {
          static_cast<WaitKind>(group.from_leader(static_cast<std::uint64_t>(problem_.kind))),
          group.from_leader(problem_.expected), group.from_leader(problem_.seen),
          group.from_leader(problem_.offset_bytes)};
    else if (failure != 0)
      return fail(WaitKind::qp_failed, 0, failure);
    return posted;
  }
  /// Threads of a warp with equal keys post their WQEs as one group: to the same QP, of the same
  /// size, and with the same options. A QP has room for the WQEs of a whole warp (QP_DEPTH is at
  /// least 128).
  SHMEMCTL_HOST_DEVICE std::uint64_t group_key(std::uint32_t wqebbs, const mlx5::Post& how) const {
    return reinterpret_cast<std::uint64_t>(send_.view().words) | wqebbs << 4 |
           (how.doorbell == mlx5::DoorbellMode::now ? 8u : 0u) | (how.completion ? 4u : 0u) |
           (how.fence ? 2u : 0u);
  }

  /// @param doorbell for the last WQE
  SHMEMCTL_HOST_DEVICE bool post_put(const Address& target, const void* source,
                                     std::uint64_t size_bytes, mlx5::DoorbellMode doorbell,
                                     bool completion, std::uint64_t& ticket);
  SHMEMCTL_HOST_DEVICE bool post_value(const Address& target, std::uint64_t value,
                                       std::uint32_t size_bytes, bool completion,
                                       std::uint64_t& ticket) {
    const mlx5::RemoteSegment* const segment = find(target, 0);
    return segment &&
           post(
               1, {mlx5::DoorbellMode::now, completion, false},
               [&](auto& slot, const mlx5::WqeHead& head) {
                 mlx5::build_value_write(slot, head,
                                         segment->piece_at(target.offset_bytes, queue_.peer_port),
                                         value, size_bytes);
               },
               ticket);
  }
  SHMEMCTL_HOST_DEVICE bool post_read(const Address& source, std::uint64_t done,
                                      const mlx5::DataSegment& local,
                                      const mlx5::RemoteSegment& segment, bool completion,
                                      std::uint64_t& ticket) {
    if (!post(
            1, {mlx5::DoorbellMode::now, completion, false},
            [&](auto& slot, const mlx5::WqeHead& head) {
              mlx5::build_read(slot, head,
                               segment.piece_at(source.offset_bytes + done, queue_.peer_port),
                               local);
            },
            ticket))
      return false;
    Memory::fetch_max_release(&marks().answers, ticket);
    return true;
  }
  SHMEMCTL_HOST_DEVICE bool post_atomic(const Address& target, const mlx5::AtomicFields& fields,
                                        const mlx5::DataSegment& local, bool completion,
                                        std::uint64_t& ticket) {
    const mlx5::RemoteSegment* const segment = find(target, 0);
    if (!has_atomics(fields.size_bytes) || !segment ||
        !post(
            mlx5::wqebbs_for(mlx5::atomic_ds_count(fields)),
            {mlx5::DoorbellMode::now, completion, false},
            [&](auto& slot, const mlx5::WqeHead& head) {
              mlx5::build_atomic(slot, head,
                                 segment->piece_at(target.offset_bytes, queue_.peer_port), fields,
                                 local);
            },
            ticket))
      return false;
    Memory::fetch_max_release(&marks().answers, ticket);
    return true;
  }
  SHMEMCTL_HOST_DEVICE bool has_atomics(std::uint32_t size_bytes) {
    return (queue_.abilities.atomic_bytes & size_bytes) != 0 ||
           fail(WaitKind::qp_failed, 0, mlx5::no_atomics().to_word());
  }
  /// A non-fetching atomic: the old value is written to the sink, result slot 0.
  SHMEMCTL_HOST_DEVICE bool post_update(const Address& target, const mlx5::AtomicFields& fields,
                                        bool completion, std::uint64_t& ticket) {
    return post_atomic(target, fields, result_piece(0, fields.size_bytes), completion, ticket);
  }

  // Result slots.

  SHMEMCTL_HOST_DEVICE mlx5::DataSegment result_piece(std::uint32_t number,
                                                      std::uint32_t size_bytes) const {
    const auto address = reinterpret_cast<std::uint64_t>(network_.results + number);
    const mlx5::LocalSegment* const segment = table_.find_local(address);
    return {address, segment ? segment->lkeys[queue_.port] : 0, size_bytes};
  }
  SHMEMCTL_HOST_DEVICE SHMEMCTL_NOINLINE bool claim(std::uint32_t& number) {
    const std::uint32_t n_results = network_.n_qp_results;
    number = 1 + who_ % (n_results - 1);
    wait_.start();
    // Acquire: the previous user has read its result.
    for (std::uint32_t polls = 1;
         Memory::load(network_.qp_result_locks + number) != 0 ||
         !Memory::compare_exchange_acquire(network_.qp_result_locks + number, 0, 1);
         ++polls) {
      number = number + 1 == n_results ? 1 : number + 1;
      if (polls % n_results == 0 && !wait_.pause())
        return fail(WaitKind::qp_result, n_results - 1, 0);
    }
    wait_.stop();
    return true;
  }
  /// Frees a result slot whose value has been read. A slot whose operation never completed stays in
  /// use: the HCA may still write it.
  SHMEMCTL_HOST_DEVICE void release(std::uint32_t number) {
    Memory::store_release(network_.qp_result_locks + number, 0);
  }
  SHMEMCTL_HOST_DEVICE SHMEMCTL_NOINLINE void copy_result(void* target, std::uint32_t number,
                                                          std::uint32_t size_bytes) const {
    // Volatile: must not be served from a cached copy.
    const auto* from = reinterpret_cast<const volatile unsigned char*>(network_.results + number);
    for (std::uint32_t i = 0; i < size_bytes; ++i)
      static_cast<unsigned char*>(target)[i] = from[i];
  }
  /// Gets at most sizeof(QpResult) bytes, within one segment, through a result slot.
  SHMEMCTL_HOST_DEVICE bool get_by_result(void* target, const Address& source,
                                          std::uint32_t size_bytes) {
    std::uint32_t number = 0;
    std::uint64_t ticket = 0;
    const mlx5::RemoteSegment* const segment = find(source, 0);
    if (!segment || !well() || !claim(number) ||
        !post_read(source, 0, result_piece(number, size_bytes), *segment, true, ticket) ||
        !wait_for(ticket))
      return false;
    copy_result(target, number, size_bytes);
    release(number);
    return true;
  }

  const DeviceNetwork& network_;
  const mlx5::QpTable& table_;
  std::uint32_t pe_, number_, who_;
  Wait& wait_;
  const mlx5::TableQp& queue_;
  Send send_;
  NetworkProblem problem_{};
};

// Data of any length, and atomics.

template <class Memory, class Wait>
SHMEMCTL_HOST_DEVICE bool
QpClient<Memory, Wait>::post_put(const Address& target, const void* source,
                                 std::uint64_t size_bytes, mlx5::DoorbellMode doorbell,
                                 bool completion, std::uint64_t& ticket) {
  for (std::uint64_t done = 0; done < size_bytes;) {
    const mlx5::RemoteSegment* const segment = find(target, done);
    if (!segment)
      return false;
    const auto* const bytes = static_cast<const unsigned char*>(source) + done;
    const auto address = reinterpret_cast<std::uint64_t>(bytes);
    std::uint64_t count = segment->left_at(target.offset_bytes + done);
    count = count < size_bytes - done ? count : size_bytes - done;
    // Small data, and memory that is not registered, is sent inline.
    const mlx5::LocalSegment* const local =
        size_bytes <= max_inline_bytes_of_two_wqebbs ? nullptr : table_.find_local(address);
    const std::uint64_t most = !local ? max_inline_bytes_of_two_wqebbs
                               : local->end - address < mlx5::max_rdma_bytes ? local->end - address
                                                                             : mlx5::max_rdma_bytes;
    count = count < most ? count : most;
    const auto size = static_cast<std::uint32_t>(count);
    const mlx5::RaddrSegment remote =
        segment->piece_at(target.offset_bytes + done, queue_.peer_port);
    done += count;
    const bool last = done == size_bytes;
    const mlx5::Post how{last ? doorbell : mlx5::DoorbellMode::later, last && completion, false};
    const std::uint32_t wqebbs = local ? 1 : mlx5::wqebbs_for(mlx5::inline_ds_count(size));
    if (!post(
            wqebbs, how,
            [&](auto& slot, const mlx5::WqeHead& head) {
              if (local)
                mlx5::build_write(slot, head, remote, {address, local->lkeys[queue_.port], size});
              else
                mlx5::build_inline_write(slot, head, remote, bytes, size);
            },
            ticket))
      return false;
  }
  return true;
}

template <class Memory, class Wait>
SHMEMCTL_HOST_DEVICE bool QpClient<Memory, Wait>::get(void* target, const Address& source,
                                                      std::uint64_t size_bytes, bool blocking) {
  std::uint64_t ticket = 0;
  bool due = false;
  for (std::uint64_t done = 0; done < size_bytes;) {
    const mlx5::RemoteSegment* const segment = find(source, done);
    if (!segment || !well())
      return false;
    auto* const bytes = static_cast<unsigned char*>(target) + done;
    const auto address = reinterpret_cast<std::uint64_t>(bytes);
    std::uint64_t count = segment->left_at(source.offset_bytes + done);
    count = count < size_bytes - done ? count : size_bytes - done;
    const mlx5::LocalSegment* const local = table_.find_local(address);
    if (!local) {
      count = count < sizeof(QpResult) ? count : sizeof(QpResult);
      if (!get_by_result(bytes, {source.region, source.offset_bytes + done},
                         static_cast<std::uint32_t>(count)))
        return false;
      done += count;
      due = false; // READs of one QP complete in order
      continue;
    }
    const std::uint64_t most =
        local->end - address < mlx5::max_rdma_bytes ? local->end - address : mlx5::max_rdma_bytes;
    count = count < most ? count : most;
    const mlx5::DataSegment piece{address, local->lkeys[queue_.port],
                                  static_cast<std::uint32_t>(count)};
    if (!post_read(source, done, piece, *segment, blocking && done + count == size_bytes, ticket))
      return false;
    done += count;
    due = true;
  }
  return !blocking || !due || wait_for(ticket);
}

template <class Memory, class Wait>
SHMEMCTL_HOST_DEVICE bool
QpClient<Memory, Wait>::atomic(const Address& target, AtomicOp op, std::uint8_t size_bytes,
                               std::uint64_t operand, std::uint64_t compare, std::uint64_t* old) {
  const mlx5::AtomicFields fields = mlx5::atomic_fields(op, size_bytes, operand, compare);
  std::uint64_t ticket = 0;
  if (!well() || !has_atomics(size_bytes))
    return false;
  if (!old)
    return post_update(target, fields, false, ticket);
  std::uint32_t number = 0;
  if (!claim(number) ||
      !post_atomic(target, fields, result_piece(number, size_bytes), true, ticket) ||
      !wait_for(ticket))
    return false;
  if (size_bytes == 4) {
    std::uint32_t brought = 0;
    copy_result(&brought, number, sizeof brought);
    *old = mlx5::old_value_4(brought);
  } else {
    copy_result(old, number, sizeof *old);
  }
  release(number);
  return true;
}

} // namespace shmemctl::device
