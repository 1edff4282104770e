#include "transports/staged/staged.h"

#include <algorithm>
#include <cstring>

#include "src/base/service_thread.h"
#include "src/base/wait.h"
#include "transports/shm/atomics.h"

namespace shmemctl {

using staged::Layout;
using staged::MessageHead;
using staged::MessageOp;

namespace {
constexpr std::chrono::seconds longest_goodbye{1};
/// How threads wait for words that peers write over the network below.
constexpr BackoffPolicy wait_backoff{.spins = 500,
                                     .yields = 2000,
                                     .first_sleep = std::chrono::microseconds(50),
                                     .max_sleep = std::chrono::microseconds(50),
                                     .yields_per_check = 250,
                                     .check_interval = std::chrono::milliseconds(10)};
} // namespace

StagedTransport::StagedTransport(const TransportSetup& setup, StagedSettings settings)
    : ForwardingOperations(*settings.below), settings_(std::move(settings)), pe_(setup.pe),
      n_pes_(static_cast<std::size_t>(setup.n_pes)), health_(*setup.health),
      timeout_s_(setup.timeout_s), host_(setup.host_name),
      layout_(Layout::of(n_pes_, settings_.max_payload_bytes)), channels_(n_pes_),
      inboxes_(n_pes_) {}

StagedTransport::~StagedTransport() {
  await_acknowledgements();
  stop_.store(true, std::memory_order_release);
  if (agent_.joinable())
    agent_.join();
}

/// Waits until the peers have executed all messages, since the network may still access memory that
/// is freed next. Gives up after a second: peers that have ended acknowledge nothing.
void StagedTransport::await_acknowledgements() noexcept {
  const Deadline deadline = Deadline::after(longest_goodbye);
  for (std::size_t peer = 0; peer < n_pes_ && area_.base; ++peer)
    while (word(layout_.done(peer)) < channels_[peer].announced.load(std::memory_order_acquire) &&
           !failed_.load(std::memory_order_acquire) && !deadline.passed())
      std::this_thread::yield();
}

void StagedTransport::connect(const std::vector<PeerLocation>& peers, Exchange& exchange,
                              const Deadline& deadline) {
  below().connect(peers, exchange, deadline);
  start(exchange);
}

void StagedTransport::start(Exchange& exchange) {
  area_ = settings_.make_region(settings_.region, layout_.size_bytes(), exchange);
  const std::string key = below().set_region(area_);
  if (below().has_keys())
    below().set_keys(settings_.region, exchange.allgather(key));
  agent_ = start_service_thread("staged agent", [this] { serve(); });
  exchange.allgather({}); // a barrier: no PE sends before all PEs can receive
}

std::string StagedTransport::set_region(const RegionView& region) {
  regions_.set(region);
  return {};
}

std::string StagedTransport::connection(int pe) const {
  const std::string path = below().connection(pe);
  return std::string("staged over ") + (path.empty() ? below().name() : path);
}

// Failures.

void StagedTransport::fail(const Error& error) noexcept {
  const std::lock_guard lock(error_mutex_);
  if (!error_)
    error_ = error;
  failed_.store(true, std::memory_order_release);
}

void StagedTransport::throw_failure() const {
  const std::lock_guard lock(error_mutex_);
  throw *error_;
}

void StagedTransport::check() const {
  if (failed_.load(std::memory_order_acquire)) [[unlikely]]
    throw_failure();
}

// Places.

/// Reads a word that a peer writes over the network.
std::uint64_t StagedTransport::word(std::size_t offset_bytes) const {
  auto* place = reinterpret_cast<std::uint64_t*>(at(offset_bytes));
  // Acquire: data that arrived before the word is visible.
  return std::atomic_ref(*place).load(std::memory_order_acquire);
}

/// Checks the address against this PE's region, since regions have the same size on all PEs.
void StagedTransport::require(const RemoteAddress& address, std::size_t size_bytes) const {
  const RegionView& view = regions_[static_cast<std::size_t>(address.region)];
  if (address.pe < 0 || static_cast<std::size_t>(address.pe) >= n_pes_ ||
      address.offset_bytes > view.size_bytes || size_bytes > view.size_bytes - address.offset_bytes)
    throw Error(ExitCode::unavailable,
                "offset " + std::to_string(address.offset_bytes) + " of region " +
                    std::to_string(address.region),
                "transfer " + std::to_string(size_bytes) + " bytes",
                "it ends beyond the memory of PE " + std::to_string(address.pe),
                "use symmetric memory of that PE", {host_, pe_, {}, std::nullopt});
}

MessageHead StagedTransport::head_to(MessageOp op, const RemoteAddress& target,
                                     std::size_t size_bytes) const {
  MessageHead head{};
  head.op = op;
  head.region = static_cast<std::uint32_t>(target.region);
  head.offset_bytes = target.offset_bytes;
  head.size_bytes = static_cast<std::uint32_t>(size_bytes);
  return head;
}

// Sending.

std::optional<std::uint64_t> StagedTransport::try_send(int pe, const Message& message) {
  check();
  const auto peer = static_cast<std::size_t>(pe);
  const auto me = static_cast<std::size_t>(pe_);
  Channel& channel = channels_[peer];
  const std::lock_guard lock(channel.mutex);
  const std::uint64_t number = channel.issued + 1;
  const std::size_t slot = channel.issued % Layout::slots;
  // A slot is free when the peer has executed the slot's last message, and its reply has been read.
  if (number > word(layout_.done(peer)) + Layout::slots ||
      channel.awaited[slot].load(std::memory_order_acquire))
    return std::nullopt;
  std::byte* const out = at(layout_.outbox(peer, slot));
  std::memcpy(out, &message.head, sizeof message.head);
  std::size_t size_bytes = sizeof message.head;
  if (message.payload) {
    settings_.copies->copy(message.context, out + size_bytes, message.payload,
                           message.head.size_bytes);
    settings_.copies->finish(message.context);
    size_bytes += message.head.size_bytes;
  }
  if (message.head.wants_reply != 0)
    channel.awaited[slot].store(true, std::memory_order_relaxed);
  {
    const std::lock_guard sending(send_mutex_);
    below().put_signal(settings_.send_context, {pe, settings_.region, layout_.inbox(me, slot)}, out,
                       size_bytes, {pe, settings_.region, layout_.arrived(me, slot)}, number,
                       SignalOp::set, false);
  }
  channel.issued = number;
  channel.announced.store(number, std::memory_order_release);
  return number;
}

std::uint64_t StagedTransport::send(int pe, const Message& message) {
  if (const auto sent = try_send(pe, message))
    return *sent;
  Wait wait(health_, timeout_s_, {"sending a staged message", pe}, wait_backoff);
  std::uint64_t done = 0;
  for (;;) {
    if (const auto sent = try_send(pe, message))
      return *sent;
    if (const std::uint64_t now = word(layout_.done(static_cast<std::size_t>(pe))); now != done) {
      done = now;
      wait.progressed();
    }
    if (wait.pause())
      below().progress();
  }
}

void StagedTransport::await_reply(int pe, std::uint64_t number) {
  const std::size_t place =
      layout_.replied(static_cast<std::size_t>(pe), (number - 1) % Layout::slots);
  Wait wait(health_, timeout_s_, {"staged request", pe}, wait_backoff);
  while (word(place) != number) {
    check();
    if (wait.pause())
      below().progress();
  }
}

// Operations.

void StagedTransport::put(int context, const RemoteAddress& target, const void* source,
                          std::size_t size_bytes, bool) {
  require(target, size_bytes);
  for (std::size_t done = 0; done < size_bytes;) {
    const std::size_t count = std::min(layout_.payload_bytes, size_bytes - done);
    RemoteAddress piece = target;
    piece.offset_bytes += done;
    send(target.pe, {head_to(MessageOp::put, piece, count),
                     static_cast<const std::byte*>(source) + done, context});
    done += count;
  }
}

void StagedTransport::put_signal(int context, const RemoteAddress& target, const void* source,
                                 std::size_t size_bytes, const RemoteAddress& signal,
                                 std::uint64_t signal_value, SignalOp op, bool) {
  require(target, size_bytes);
  require(signal, sizeof signal_value);
  const std::size_t last =
      size_bytes == 0 ? 0 : (size_bytes - 1) % layout_.payload_bytes + 1; // sent with the signal
  put(context, target, source, size_bytes - last, false);
  RemoteAddress piece = target;
  piece.offset_bytes += size_bytes - last;
  Message message{head_to(MessageOp::put_signal, piece, last), nullptr, context};
  if (last > 0)
    message.payload = static_cast<const std::byte*>(source) + (size_bytes - last);
  message.head.atomic = op == SignalOp::set ? AtomicOp::set : AtomicOp::add;
  message.head.signal_region = static_cast<std::uint32_t>(signal.region);
  message.head.signal_offset_bytes = signal.offset_bytes;
  message.head.operand = signal_value;
  send(target.pe, message);
}

void StagedTransport::collect(int context, int pe, const Pending& pending) {
  await_reply(pe, pending.number);
  const auto peer = static_cast<std::size_t>(pe);
  const std::size_t slot = (pending.number - 1) % Layout::slots;
  settings_.copies->copy(context, pending.target, at(layout_.reply_inbox(peer, slot)),
                         pending.size_bytes);
  settings_.copies->finish(context);
  channels_[peer].awaited[slot].store(false, std::memory_order_release);
}

void StagedTransport::get(int context, void* target, const RemoteAddress& source,
                          std::size_t size_bytes, bool) {
  require(source, size_bytes);
  std::deque<Pending> pending; // requests in flight
  const auto collect_one = [&] {
    collect(context, source.pe, pending.front());
    pending.pop_front();
  };
  for (std::size_t done = 0; done < size_bytes;) {
    const std::size_t count = std::min(layout_.payload_bytes, size_bytes - done);
    RemoteAddress piece = source;
    piece.offset_bytes += done;
    Message message{head_to(MessageOp::get, piece, count), nullptr, context};
    message.head.wants_reply = 1;
    std::optional<std::uint64_t> number = try_send(source.pe, message);
    // A thread that occupies slots must collect its replies before it waits for another slot: if
    // several threads occupied all slots and waited, none would get one.
    while (!number && !pending.empty()) {
      collect_one();
      number = try_send(source.pe, message);
    }
    if (!number)
      number = send(source.pe, message);
    pending.push_back({*number, static_cast<std::byte*>(target) + done, count});
    done += count;
  }
  while (!pending.empty())
    collect_one();
}

StagedTransport::Message StagedTransport::atomic_message(const RemoteAddress& target,
                                                         const AtomicRequest& request) const {
  require(target, request.size_bytes);
  Message message{head_to(MessageOp::atomic, target, 0), nullptr, 0};
  message.head.atomic = request.op;
  message.head.word_bytes = request.size_bytes;
  message.head.operand = request.operand;
  message.head.compare = request.compare;
  return message;
}

std::uint64_t StagedTransport::atomic(int, const RemoteAddress& target,
                                      const AtomicRequest& request) {
  Message message = atomic_message(target, request);
  message.head.wants_reply = 1;
  const std::uint64_t number = send(target.pe, message);
  await_reply(target.pe, number);
  const auto peer = static_cast<std::size_t>(target.pe);
  const std::size_t slot = (number - 1) % Layout::slots;
  std::uint64_t old = 0;
  std::memcpy(&old, at(layout_.reply_inbox(peer, slot)), sizeof old);
  channels_[peer].awaited[slot].store(false, std::memory_order_release);
  return old;
}

void StagedTransport::post_atomic(int, const RemoteAddress& target, const AtomicRequest& request) {
  send(target.pe, atomic_message(target, request));
}

void StagedTransport::quiet(int) {
  check();
  for (std::size_t peer = 0; peer < n_pes_; ++peer) {
    const std::uint64_t announced = channels_[peer].announced.load(std::memory_order_acquire);
    if (word(layout_.done(peer)) >= announced)
      continue;
    Wait wait(health_, timeout_s_, {"staged quiet", static_cast<int>(peer)}, wait_backoff);
    std::uint64_t done = 0;
    for (std::uint64_t now = 0; (now = word(layout_.done(peer))) < announced;) {
      check();
      if (now != done)
        wait.progressed();
      done = now;
      if (wait.pause())
        below().progress();
    }
  }
  // The operations are already complete in the transport below as well; this frees their resources.
  const std::lock_guard sending(send_mutex_);
  below().quiet(settings_.send_context);
}

} // namespace shmemctl
