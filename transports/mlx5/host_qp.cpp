#include "transports/mlx5/host_qp.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <thread>

#include "src/base/deadline.h"
#include "src/base/error.h"
#include "transports/mlx5/syndrome_text.h"

namespace shmemctl::mlx5 {

namespace {

constexpr std::size_t n_results = 64;
constexpr std::chrono::milliseconds between_checks{50};

bool peer_may_be_gone(std::uint8_t syndrome) {
  switch (static_cast<Syndrome>(syndrome)) {
  case Syndrome::flushed:
  case Syndrome::bad_response:
  case Syndrome::remote_operation:
  case Syndrome::retries_exceeded:
  case Syndrome::receiver_not_ready:
  case Syndrome::remote_aborted:
    return true;
  default:
    return false;
  }
}

} // namespace

/// Back-off between two polls: first spins, then yields. From time to time it checks the job's
/// health and the timeout.
class HostQp::Wait {
public:
  Wait(HostQp& queue, const char* step) : queue_(queue), step_(step) {}
  ~Wait() {
    if (reported_)
      queue_.health_.waiting_for(-1);
  }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  void pause() {
    queue_.check_failure();
    queue_.queue_->progress();
    if (++turns_ < spins) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
      return;
    }
    std::this_thread::yield();
    if (turns_ % yields_between_polls == 0)
      check();
  }

private:
  static constexpr unsigned spins = 2000, yields_between_polls = 64;

  void check() {
    const auto now = Deadline::Clock::now();
    if (turns_ < spins + yields_between_polls) {
      begin_ = checked_ = now;
      return;
    }
    if (now - checked_ < between_checks)
      return;
    checked_ = now;
    if (!reported_) {
      queue_.health_.waiting_for_network(queue_.peer_);
      reported_ = true;
    }
    queue_.health_.check();
    // The timeout restarts with each completion, so slow progress is not an error.
    if (const std::uint64_t completed = queue_.send_.completed(); completed != completed_) {
      completed_ = completed;
      begin_ = now;
    }
    if (const std::optional<std::string> event = queue_.queue_->fatal_event())
      queue_.throw_event(*event);
    if (now - begin_ > queue_.timeout_)
      queue_.health_.give_up(step_, queue_.peer_);
  }

  HostQp& queue_;
  const char* step_;
  unsigned turns_ = 0;
  bool reported_ = false;
  std::uint64_t completed_ = 0;
  Deadline::Clock::time_point begin_, checked_;
};

/// The waits of post_wqe() and post_quiet(). They throw instead of returning false.
struct HostQp::Waits {
  HostQp& queue;

  bool room(std::uint64_t end) {
    Wait wait(queue, "posting to a full send queue");
    std::uint64_t known = 0;
    while (!queue.send_.poll_for_room(end, known))
      wait.pause();
    queue.known_completed_.store(known, std::memory_order_release);
    return true;
  }
  template <class Attempt>
  bool turn(const Attempt& attempt) {
    Wait wait(queue, "publishing WQEs in order");
    do {
      wait.pause();
    } while (!attempt());
    return true;
  }
};

/// A slot that receives the old value of a fetch.
class HostQp::ResultSlot {
public:
  explicit ResultSlot(HostQp& queue) : queue_(queue) {
    Wait wait(queue, "getting a slot for a result");
    std::uint64_t free = queue_.free_results_.load(std::memory_order_relaxed);
    for (;;) {
      if (free == 0) {
        wait.pause();
        free = queue_.free_results_.load(std::memory_order_relaxed);
        continue;
      }
      // Acquire: the previous user of the slot has read its value.
      if (queue_.free_results_.compare_exchange_weak(free, free & (free - 1),
                                                     std::memory_order_acquire))
        break;
    }
    number_ = static_cast<unsigned>(std::countr_zero(free));
  }
  /// Frees the slot after its value has been read. The destructor does not free it: after an error,
  /// the HCA may still write to it.
  void release() {
    queue_.free_results_.fetch_or(std::uint64_t{1} << number_, std::memory_order_release);
  }
  ResultSlot(const ResultSlot&) = delete;
  ResultSlot& operator=(const ResultSlot&) = delete;
  std::uint64_t* word() const { return &queue_.results_[number_]; }

private:
  HostQp& queue_;
  unsigned number_ = 0;
};

HostQp::HostQp(Hca& hca, const QpOptions& options, JobHealth& health, int peer,
               std::chrono::duration<double> timeout, const Where& here)
    : info_(hca.info()), health_(health), peer_(peer), timeout_(timeout), here_(here),
      results_(n_results),
      results_memory_(hca.register_memory(
          {results_.data(), n_results * sizeof(std::uint64_t), access_local_write})),
      queue_(hca.create_queue(options)), send_(queue_->view()) {}

// Posting.

template <class Build>
HostQp::Ticket HostQp::post(std::uint32_t wqebbs, const Post& how, const Build& build) {
  std::uint64_t start = 0;
  Waits waits{*this};
  // Acquire: see SendQueue::completed().
  post_wqe(send_, Alone{}, wqebbs, how, known_completed_.load(std::memory_order_acquire), waits,
           build, start);
  return start + 1;
}

/// Posts a WQE for each part of the largest size that one WQE can carry. Returns the last ticket.
template <class Build>
HostQp::Ticket HostQp::post_parts(const RaddrSegment& remote, const void* memory,
                                  std::uint32_t lkey, std::size_t size_bytes, const Post& how,
                                  const Build& build) {
  Ticket ticket = 0;
  const auto address = reinterpret_cast<std::uint64_t>(memory);
  for (std::size_t at = 0; at < size_bytes;) {
    const std::size_t count = std::min<std::size_t>(size_bytes - at, info_.max_rdma_bytes);
    const RaddrSegment remote_part{remote.address + at, remote.rkey};
    const DataSegment local_part{address + at, lkey, static_cast<std::uint32_t>(count)};
    ticket = post(1, how, [&](auto& slot, const WqeHead& head) {
      build(slot, head, remote_part, local_part);
    });
    at += count;
  }
  return ticket;
}

HostQp::Ticket HostQp::write(const RaddrSegment& remote, const void* source, std::uint32_t lkey,
                             std::size_t size_bytes, const Post& how) {
  return post_parts(remote, source, lkey, size_bytes, how,
                    [](auto& slot, const WqeHead& head, const RaddrSegment& to,
                       const DataSegment& from) { build_write(slot, head, to, from); });
}

HostQp::Ticket HostQp::read(const RaddrSegment& remote, void* target, std::uint32_t lkey,
                            std::size_t size_bytes, const Post& how) {
  return post_parts(remote, target, lkey, size_bytes, how,
                    [](auto& slot, const WqeHead& head, const RaddrSegment& from,
                       const DataSegment& to) { build_read(slot, head, from, to); });
}

HostQp::Ticket HostQp::write_inline(const RaddrSegment& remote, const void* source,
                                    std::size_t size_bytes, const Post& how) {
  if (size_bytes == 0)
    return 0;
  if (size_bytes > max_inline)
    throw Error(ExitCode::usage, queue_text(), "post inline data",
                std::to_string(size_bytes) + " bytes exceed the limit of " +
                    std::to_string(max_inline),
                "report this as a bug in shmemctl, with the command line");
  const auto size = static_cast<std::uint32_t>(size_bytes);
  if (size == 8 || size == 4) {
    std::uint64_t value = 0;
    if (size == 8) {
      std::memcpy(&value, source, 8);
    } else {
      std::uint32_t half = 0;
      std::memcpy(&half, source, 4);
      value = half;
    }
    return post(1, how, [&](auto& slot, const WqeHead& head) {
      build_value_write(slot, head, remote, value, size);
    });
  }
  return post(wqebbs_for(inline_ds_count(size)), how, [&](auto& slot, const WqeHead& head) {
    build_inline_write(slot, head, remote, static_cast<const unsigned char*>(source), size);
  });
}

HostQp::Ticket HostQp::update(const RaddrSegment& remote, const AtomicFields& fields,
                              const Post& how) {
  const DataSegment nowhere{reinterpret_cast<std::uint64_t>(results_.data()),
                            results_memory_->lkey(), fields.size_bytes};
  return post(wqebbs_for(atomic_ds_count(fields)), how, [&](auto& slot, const WqeHead& head) {
    build_atomic(slot, head, remote, fields, nowhere);
  });
}

std::uint64_t HostQp::fetch(const RaddrSegment& remote, const AtomicFields& fields,
                            const Post& how) {
  ResultSlot result(*this);
  const DataSegment local{reinterpret_cast<std::uint64_t>(result.word()), results_memory_->lkey(),
                          fields.size_bytes};
  wait(post(wqebbs_for(atomic_ds_count(fields)), how, [&](auto& slot, const WqeHead& head) {
    build_atomic(slot, head, remote, fields, local);
  }));
  std::uint64_t old = *result.word();
  if (fields.size_bytes == 4) {
    std::uint32_t brought = 0;
    std::memcpy(&brought, result.word(), sizeof brought);
    old = old_value_4(brought);
  }
  result.release();
  return old;
}

// Completion.

void HostQp::flush() {
  Wait wait(*this, "ringing the doorbell in turn");
  while (!send_.try_flush())
    wait.pause();
}

void HostQp::progress() {
  queue_->progress();
  send_.poll();
  check_failure();
}

void HostQp::wait(Ticket ticket) {
  Wait pausing(*this, "completing operations");
  while (!done(ticket)) {
    send_.poll();
    if (done(ticket))
      return;
    pausing.pause();
  }
}

void HostQp::quiet() {
  wait(request_quiet());
}

HostQp::Ticket HostQp::request_quiet() {
  std::uint64_t complete = 0;
  Waits waits{*this};
  post_quiet(send_, known_completed_.load(std::memory_order_acquire), waits, complete);
  return complete;
}

// Failures.

void HostQp::check_failure() const {
  if (const std::uint64_t word = send_.failure())
    throw_failure(Failure::from_word(word));
}

std::string HostQp::queue_text() const {
  return fmt::format("queue {:#x} to PE {}", send_.view().qpn, peer_);
}

void HostQp::throw_failure(const Failure& failure) const {
  // If the peer has ended, the job's first failure says more: await_cause() throws it.
  if (peer_may_be_gone(failure.syndrome))
    health_.await_cause(peer_);
  const SyndromeText text = syndrome_text(failure.syndrome);
  std::string message = fmt::format("{} (syndrome {:#04x}, vendor {:#04x}) at WQE {}", text.status,
                                    failure.syndrome, failure.vendor_syndrome, failure.index);
  if (const std::string detail = queue_->detail(failure.index); !detail.empty())
    message += ": " + detail;
  throw Error(ExitCode::unavailable, queue_text(), "complete " + opcode_text(failure.opcode),
              message, text.fix, where());
}

void HostQp::throw_event(const std::string& event) const {
  throw Error(ExitCode::unavailable, queue_text(), "complete an operation",
              "the device has stopped the QP: " + event,
              "report this as a bug in shmemctl, with the command line", where());
}

Where HostQp::where() const {
  return {here_.host, here_.pe, info_.device, info_.port};
}

} // namespace shmemctl::mlx5
