#include "transports/mlx5/emulated/emulated_qp.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "src/base/error.h"
#include "transports/mlx5/hca.h"
#include "transports/mlx5/host_memory.h"

namespace shmemctl::mlx5 {

namespace {

/// With more pending operations than this, all are executed, so that a stream of WQEs cannot run
/// ahead without bound.
constexpr std::size_t max_pending = 256;

std::uint32_t read_record(std::uint32_t* record) {
  return to_wire(std::atomic_ref<std::uint32_t>(*record).load(std::memory_order_acquire));
}

/// Stores the result of an atomic as the device does: 8 bytes in host byte order, 4 bytes in
/// big-endian order.
void store_old_value(std::byte* target, std::uint8_t size_bytes, std::uint64_t old) {
  if (size_bytes == 8) {
    std::memcpy(target, &old, sizeof old);
    return;
  }
  const std::uint32_t wire = to_wire(static_cast<std::uint32_t>(old));
  std::memcpy(target, &wire, sizeof wire);
}

} // namespace

EmulatedQp::EmulatedQp(const QpView& view, const KeyTable& keys, Placement placement)
    : view_(view), keys_(keys), placement_(placement), pending_(view.qpn),
      seen_doorbell_(HostMemory::load(view.doorbell)) {
  done_.reserve(64);
}

unsigned EmulatedQp::serve(unsigned most) {
  if (state_ == State::dead || (position_ == announced_ && !poll_doorbell() && pending_.empty()))
    return 0;
  unsigned count = 0;
  while (count < most && position_ != announced_ && state_ != State::dead) {
    step();
    ++count;
  }
  if (!pending_.empty())
    count += carry_out_some();
  // CQEs wait until no operation is pending, so that executed WQEs sometimes lack their CQE.
  if (!done_.empty() && pending_.empty())
    settle();
  return count;
}

/// Executes a few of the pending operations, or all of them.
unsigned EmulatedQp::carry_out_some() {
  const auto execute = [this](const PendingOperation& each) { return carry_out_pending(each); };
  PendingOperation failed;
  const std::size_t before = pending_.size();
  if (before > max_pending || pending_.random(8) == 0) {
    carried_out(pending_.execute_all(execute, failed), failed);
  } else {
    for (std::size_t left = pending_.random(3); left > 0 && !pending_.empty(); --left)
      if (!carried_out(pending_.execute_one(execute, failed), failed))
        break;
  }
  // Yields so that other threads can post or poll while operations are in flight, which is what
  // this mode tests.
  if (!pending_.empty())
    std::this_thread::yield();
  return 1 + static_cast<unsigned>(before - std::min(before, pending_.size()));
}

/// Returns whether the operation succeeded. A failure moves the QP to the error state, in which
/// later operations are flushed.
bool EmulatedQp::carried_out(const Outcome& outcome, const PendingOperation& failed) {
  if (!outcome)
    return true;
  pending_.clear();
  if (state_ == State::ready)
    fail(outcome, static_cast<std::uint8_t>(failed.opcode), failed.index);
  settle();
  return false;
}

Outcome EmulatedQp::carry_out_pending(const PendingOperation& operation) {
  try {
    switch (operation.opcode) {
    case Opcode::rdma_write:
      return peer_->write(operation.remote, operation.pieces, operation.size_bytes);
    case Opcode::rdma_read:
      return peer_->read(operation.remote, operation.pieces, operation.size_bytes);
    default:
      return execute_atomic(operation.remote, operation.atomic, operation.pieces[0]);
    }
  } catch (const std::exception& error) {
    thrown_ = error.what();
    return {Syndrome::retries_exceeded, EmulatedFault::transport};
  }
}

/// Returns whether there are new WQEs. A changed doorbell register tells that there may be some;
/// the doorbell record tells how many.
bool EmulatedQp::poll_doorbell() {
  // Acquire: makes the record and the WQEs visible that were written before the register.
  const std::uint64_t doorbell = HostMemory::load_acquire(view_.doorbell);
  if (doorbell == seen_doorbell_)
    return false;
  seen_doorbell_ = doorbell;
  if ((to_wire(doorbell) >> 8 & 0xffffff) != view_.qpn)
    return false; // the doorbell of another QP
  const auto record = static_cast<std::uint16_t>(read_record(view_.send_record));
  const auto ahead = static_cast<std::uint16_t>(record - position_);
  if (ahead > 1u << view_.wqebbs_log2) {
    if (state_ == State::ready)
      fail({Syndrome::local_operation, EmulatedFault::queue_overrun}, 0,
           static_cast<std::uint16_t>(position_));
    die("its send queue's doorbell record went further than the queue is long");
    return false;
  }
  announced_ = position_ + ahead;
  return ahead != 0;
}

void EmulatedQp::step() {
  const auto index = static_cast<std::uint16_t>(position_);
  const std::size_t n_words = fetch();
  const WqeStart start = decode_start(words_[0]);
  if (state_ == State::error) {
    position_ += std::clamp<std::uint64_t>(wqebbs_for(start.ds_count), 1, announced_ - position_);
    write_completion({start.opcode, index, 0}, {Syndrome::flushed, EmulatedFault::flushed});
    return;
  }
  const Outcome outcome = carry_out(n_words);
  position_ += std::clamp<std::uint64_t>(wqebbs_for(start.ds_count), 1, announced_ - position_);
  if (outcome) {
    settle();
    if (state_ == State::ready)
      fail(outcome, start.opcode, index);
    else // an earlier operation failed first
      write_completion({start.opcode, index, 0}, {Syndrome::flushed, EmulatedFault::flushed});
    return;
  }
  ++executed_;
  if ((wqe_.flags & flag_completion) != 0)
    done_.push_back({start.opcode, index, static_cast<std::uint32_t>(wqe_.size_bytes)});
}

/// Copies the WQE at the current position, so that it is read only once: it may change
/// concurrently. Returns its number of words.
std::size_t EmulatedQp::fetch() {
  const std::uint64_t mask = (std::uint64_t{wqebb_words} << view_.wqebbs_log2) - 1;
  const std::uint64_t first = position_ * wqebb_words;
  // Plain loads, so that ThreadSanitizer detects a producer that does not publish in order.
  words_[0] = view_.wqes[first & mask];
  words_[1] = view_.wqes[(first + 1) & mask];
  const std::size_t n_words = 2 * std::size_t{decode_start(words_[0]).ds_count};
  for (std::size_t i = 2; i < n_words; ++i)
    words_[i] = view_.wqes[(first + i) & mask];
  return n_words;
}

Outcome EmulatedQp::carry_out(std::size_t n_words) {
  const WqeStart start = decode_start(words_[0]);
  if (start.qpn != view_.qpn)
    return {Syndrome::local_operation, EmulatedFault::wrong_queue};
  if (start.index != static_cast<std::uint16_t>(position_))
    return {Syndrome::local_operation, EmulatedFault::wrong_index};
  if (n_words == 0)
    return {Syndrome::local_operation, EmulatedFault::bad_size};
  if (wqebbs_for(start.ds_count) > announced_ - position_)
    return {Syndrome::local_operation, EmulatedFault::behind_producer};
  if (const Outcome outcome = decode_wqe({words_, n_words}, wqe_))
    return outcome;
  if (const std::optional<Outcome> fault = injected())
    return *fault;
  try {
    return execute();
  } catch (const std::exception& error) {
    thrown_ = error.what();
    return {Syndrome::retries_exceeded, EmulatedFault::transport};
  }
}

Outcome EmulatedQp::execute() {
  if ((wqe_.flags & flag_fence) != 0 && !pending_.empty()) {
    const auto execute = [this](const PendingOperation& each) { return carry_out_pending(each); };
    PendingOperation failed;
    if (const Outcome outcome = pending_.execute_with_reply(execute, failed))
      return outcome;
  }
  if (wqe_.opcode == Opcode::nop)
    return {};
  if (!peer_)
    return {Syndrome::local_operation, EmulatedFault::not_connected};
  const bool writes_memory = wqe_.opcode != Opcode::rdma_write;
  if (const Outcome outcome = gather(writes_memory ? unsigned{access_local_write} : 0u))
    return outcome;
  const std::span<const BytePiece> pieces(pieces_.data(), wqe_.n_pieces);
  const bool is_atomic = wqe_.opcode != Opcode::rdma_write && wqe_.opcode != Opcode::rdma_read;
  if (!is_atomic && wqe_.size_bytes == 0)
    return {}; // the WQE accesses no memory, so no key is checked
  if (placement_ == Placement::any)
    return postpone();
  if (is_atomic)
    return execute_atomic(wqe_.remote, wqe_.atomic, pieces_[0]);
  return wqe_.opcode == Opcode::rdma_write ? peer_->write(wqe_.remote, pieces, wqe_.size_bytes)
                                           : peer_->read(wqe_.remote, pieces, wqe_.size_bytes);
}

/// Finds the memory of the local pieces.
Outcome EmulatedQp::gather(unsigned access) {
  for (std::size_t i = 0; i < wqe_.n_pieces; ++i) {
    const WqePiece& piece = wqe_.pieces[i];
    if (piece.in_entry) {
      pieces_[i] = {const_cast<std::byte*>(piece.in_entry), piece.size_bytes};
      continue;
    }
    const KeyMatch match = keys_.find_local(piece.lkey, piece.address, piece.size_bytes, access);
    if (match.outcome)
      return match.outcome;
    pieces_[i] = {match.window->mapped + match.offset_bytes, piece.size_bytes,
                  match.window->is_gpu};
  }
  return {};
}

/// Defers the operation. Failures that can be detected now are returned now.
Outcome EmulatedQp::postpone() {
  PendingOperation operation;
  operation.opcode = wqe_.opcode;
  operation.index = static_cast<std::uint16_t>(position_);
  operation.remote = wqe_.remote;
  operation.size_bytes = wqe_.size_bytes;
  operation.atomic = wqe_.atomic;
  unsigned access = access_remote_read;
  if (wqe_.opcode == Opcode::rdma_write)
    access = access_remote_write;
  else if (wqe_.opcode != Opcode::rdma_read)
    access = access_remote_atomic;
  if (access == access_remote_atomic)
    if (const Outcome outcome = check_alignment(wqe_.remote, wqe_.atomic))
      return outcome;
  if (const Outcome outcome = peer_->check(wqe_.remote, wqe_.size_bytes, access))
    return outcome;
  for (std::size_t i = 0; i < wqe_.n_pieces; ++i) {
    if (!wqe_.pieces[i].in_entry)
      continue;
    const std::byte* const bytes = pieces_[i].bytes; // copied, since the next WQE overwrites them
    operation.inline_bytes.insert(operation.inline_bytes.end(), bytes,
                                  bytes + pieces_[i].size_bytes);
  }
  std::byte* copied = operation.inline_bytes.data();
  for (std::size_t i = 0; i < wqe_.n_pieces; ++i) {
    BytePiece piece = pieces_[i];
    if (wqe_.pieces[i].in_entry) {
      piece.bytes = copied;
      copied += piece.size_bytes;
    }
    operation.pieces.push_back(piece);
  }
  pending_.add(std::move(operation));
  return {};
}

Outcome EmulatedQp::execute_atomic(const RaddrSegment& remote, const AtomicFields& fields,
                                   const BytePiece& result) {
  if (const Outcome outcome = check_alignment(remote, fields))
    return outcome;
  if (result.is_gpu) // kernels use host memory for results of atomics
    return {Syndrome::local_protection, EmulatedFault::gpu_memory};
  std::uint64_t old = 0;
  if (const Outcome outcome = peer_->atomic(remote, fields, old))
    return outcome;
  store_old_value(result.bytes, fields.size_bytes, old);
  return {};
}

std::optional<Outcome> EmulatedQp::injected() {
  if (faults_.empty())
    return std::nullopt;
  if (faults_.front().after_wqes-- > 0)
    return std::nullopt;
  const Outcome outcome{faults_.front().syndrome, EmulatedFault::injected};
  faults_.pop_front();
  return outcome;
}

/// Completes all operations so far at the target, and writes their CQEs.
void EmulatedQp::settle() {
  if (!pending_.empty()) {
    const auto execute = [this](const PendingOperation& each) { return carry_out_pending(each); };
    PendingOperation failed;
    if (const Outcome late = pending_.execute_all(execute, failed); late) {
      pending_.clear();
      if (state_ == State::ready)
        fail(late, static_cast<std::uint8_t>(failed.opcode), failed.index);
    }
  }
  Outcome outcome;
  try {
    outcome = peer_ ? peer_->finish() : Outcome{};
  } catch (const std::exception& error) {
    thrown_ = error.what();
    outcome = {Syndrome::retries_exceeded, EmulatedFault::transport};
  }
  for (const Done& done : done_) {
    if (state_ == State::error)
      write_completion({done.opcode, done.index, 0}, {Syndrome::flushed, EmulatedFault::flushed});
    else if (outcome)
      fail(outcome, done.opcode, done.index);
    else
      write_completion(done, {});
  }
  done_.clear();
}

void EmulatedQp::fail(const Outcome& outcome, std::uint8_t opcode, std::uint16_t index) {
  state_ = State::error;
  detail_ = {outcome.cause == EmulatedFault::transport ? thrown_ : text_of(outcome.cause), index};
  has_detail_.store(true, std::memory_order_release);
  write_completion({opcode, index, 0}, outcome);
}

void EmulatedQp::write_completion(const Done& done, const Outcome& outcome) {
  if (state_ == State::dead)
    return;
  const bool ring = view_.mode == CqMode::ring;
  const std::uint64_t size = std::uint64_t{1} << (ring ? view_.wqebbs_log2 : 0);
  if (ring && ((completions_ - read_record(view_.completions_record)) & 0xffffff) >= size)
    return die("its completion queue is full: completions were not taken in time");
  std::uint64_t* words = view_.completions + (completions_ & (size - 1)) * cqe_words;
  for (unsigned i = 0; i < cqe_size_word; ++i)
    HostMemory::store(words + i, 0);
  HostMemory::store(words + cqe_size_word, to_wire(std::uint64_t{done.size_bytes}));
  HostMemory::store(words + cqe_syndrome_word,
                    to_wire(static_cast<std::uint64_t>(outcome.cause) << 8 |
                            static_cast<std::uint64_t>(outcome.syndrome)));
  const auto kind = outcome ? CqeKind::requester_error : CqeKind::requester;
  // Release: publishes delivered data and the words above.
  HostMemory::store_release(
      words + cqe_last_word,
      encode_tail({done.opcode, view_.qpn, done.index, static_cast<std::uint8_t>(kind),
                   static_cast<std::uint8_t>(ring ? completions_ / size & 1 : 0)}));
  ++completions_;
}

void EmulatedQp::die(const std::string& event) {
  if (state_ != State::dead) {
    fatal_event_ = event;
    has_event_.store(true, std::memory_order_release);
  }
  state_ = State::dead;
}

} // namespace shmemctl::mlx5
