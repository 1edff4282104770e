// The target's side of a staged transport: a thread that executes the messages of peers.
#include "transports/staged/staged.h"

#include <cstring>
#include <pthread.h>

#include "transports/shm/atomics.h"

namespace shmemctl {

using staged::Layout;
using staged::MessageHead;
using staged::MessageOp;

namespace {

constexpr int agent_queue = 0; ///< queue of the agent's copies
/// After this many operations, a quiet lets the transport below free their resources.
constexpr unsigned operations_between_quiets = 256;

/// How the agent waits for messages.
class Idle {
public:
  void reset() { turns_ = 0; }
  void pause() {
    constexpr unsigned spins = 500, yields = 1000;
    ++turns_;
    if (turns_ <= spins) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else if (turns_ <= spins + yields) {
      std::this_thread::yield();
    } else {
      turns_ = spins + yields;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
  bool is_long() const {
    return turns_ % 64 == 63;
  }

private:
  unsigned turns_ = 0;
};

} // namespace

void StagedTransport::serve() noexcept {
  Idle idle;
  try {
    while (!stop_.load(std::memory_order_acquire)) {
      if (serve_all()) {
        idle.reset();
        continue;
      }
      if (idle.is_long())
        below().progress();
      idle.pause();
    }
  } catch (const Error& error) {
    fail(error);
  } catch (const std::exception& error) {
    fail(Error(ExitCode::unavailable, "staging thread", "continue", error.what(),
               "report this as a bug in shmemctl, with the command line",
               {host_, pe_, {}, std::nullopt}));
  }
}

bool StagedTransport::serve_all() {
  bool any = false;
  for (std::size_t peer = 0; peer < n_pes_; ++peer)
    any = serve_peer(peer) || any;
  if (agent_operations_ >= operations_between_quiets) {
    below().quiet(settings_.agent_context);
    agent_operations_ = 0;
  }
  return any;
}

/// Handles the available messages of one peer, at most one row of slots.
bool StagedTransport::serve_peer(std::size_t peer) {
  Inbox& inbox = inboxes_[peer];
  std::size_t count = 0;
  for (; count < Layout::slots; ++count) {
    const std::uint64_t number = inbox.taken + 1;
    if (word(layout_.arrived(peer, inbox.taken % Layout::slots)) != number)
      break;
    carry_out(peer, number);
    inbox.taken = number;
    if (inbox.taken - inbox.acknowledged >= Layout::slots / 2)
      acknowledge(peer);
  }
  if (inbox.taken != inbox.acknowledged)
    acknowledge(peer);
  return count > 0;
}

/// Tells the peer how many of its messages are done. Uses an addition, since the sum is right in
/// whatever order the network delivers the acknowledgements.
void StagedTransport::acknowledge(std::size_t peer) {
  Inbox& inbox = inboxes_[peer];
  const RemoteAddress done{static_cast<int>(peer), settings_.region,
                           layout_.done(static_cast<std::size_t>(pe_))};
  below().put_signal(settings_.agent_context, done, nullptr, 0, done,
                     inbox.taken - inbox.acknowledged, SignalOp::add, false);
  inbox.acknowledged = inbox.taken;
  ++agent_operations_;
}

std::byte* StagedTransport::local_at(std::uint32_t region, std::uint64_t offset_bytes,
                                     std::uint64_t size_bytes) {
  const RegionView& view = regions_[region];
  if (offset_bytes > view.size_bytes || size_bytes > view.size_bytes - offset_bytes)
    throw Error(ExitCode::unavailable,
                "offset " + std::to_string(offset_bytes) + " of region " + std::to_string(region),
                "perform a staged transfer", "it ends beyond this PE's memory",
                "report this as a bug in shmemctl, with the command line",
                {host_, pe_, {}, std::nullopt});
  return view.base + offset_bytes;
}

void StagedTransport::carry_out(std::size_t peer, std::uint64_t number) {
  const std::size_t slot = (number - 1) % Layout::slots;
  const std::byte* const in = at(layout_.inbox(peer, slot));
  MessageHead head;
  std::memcpy(&head, in, sizeof head);
  const std::byte* const payload = in + sizeof head;
  std::byte* const reply = at(layout_.reply_outbox(peer, slot));
  std::size_t reply_bytes = 0;
  CopyEngine& copies = *settings_.agent_copies;
  // The sender may have written to the GPU through a NIC before it sent this message, which arrived
  // in host memory. Kernels must not see the effect of the message before that write.
  if (settings_.written_by_nics)
    settings_.written_by_nics->flush();
  switch (head.op) {
  case MessageOp::put:
  case MessageOp::put_signal:
    if (head.size_bytes > 0)
      copies.copy(agent_queue, local_at(head.region, head.offset_bytes, head.size_bytes), payload,
                  head.size_bytes);
    if (head.op == MessageOp::put_signal) {
      std::byte* const signal =
          local_at(head.signal_region, head.signal_offset_bytes, sizeof head.operand);
      if (head.atomic == AtomicOp::set)
        copies.store_word(agent_queue, signal, head.operand);
      else
        copies.start_atomic(agent_queue, signal, {head.atomic, 8, head.operand});
    }
    break;
  case MessageOp::get:
    reply_bytes = head.size_bytes;
    copies.copy(agent_queue, reply, local_at(head.region, head.offset_bytes, head.size_bytes),
                reply_bytes);
    break;
  case MessageOp::atomic: {
    const AtomicRequest request{head.atomic, head.word_bytes, head.operand, head.compare};
    std::byte* const target = local_at(head.region, head.offset_bytes, head.word_bytes);
    if (head.wants_reply == 0) {
      copies.start_atomic(agent_queue, target, request);
      break;
    }
    const std::uint64_t old = copies.atomic(agent_queue, target, request);
    reply_bytes = sizeof old;
    std::memcpy(reply, &old, sizeof old);
    break;
  }
  }
  // The acknowledgement tells the sender that the operation is complete and the slot is free.
  copies.finish(agent_queue);
  if (head.wants_reply == 0)
    return;
  const auto to = static_cast<int>(peer);
  const auto me = static_cast<std::size_t>(pe_);
  below().put_signal(settings_.agent_context, {to, settings_.region, layout_.reply_inbox(me, slot)},
                     reply, reply_bytes, {to, settings_.region, layout_.replied(me, slot)}, number,
                     SignalOp::set, false);
  ++agent_operations_;
}

} // namespace shmemctl
