#include "transports/ibrc/am_format.h"

#include <algorithm>
#include <cstring>

#include "transports/ibrc/wire.h"
#include "transports/shm/atomics.h"

namespace shmemctl::ibrc {

namespace {

/// The first byte of a message. A different layout must use a different value.
constexpr std::uint8_t message_mark = 0xa1;
/// A larger limit would not be faster, since replies arrive long before this many requests are in
/// flight.
constexpr std::uint32_t max_credits = 64;

/// Layout of a message. Both ends are little-endian.
struct Layout {
  std::uint8_t mark, op, word_bytes, wants_value;
  std::uint32_t region;
  std::uint64_t offset_bytes, operand, compare;
};
static_assert(sizeof(Layout) == AtomicMessage::size_bytes);

} // namespace

AtomicMessage::Bytes encode(const AtomicMessage& message) {
  const Layout layout{message_mark,
                      static_cast<std::uint8_t>(message.request.op),
                      message.request.size_bytes,
                      static_cast<std::uint8_t>(message.wants_value),
                      message.region,
                      message.offset_bytes,
                      message.request.operand,
                      message.request.compare};
  AtomicMessage::Bytes bytes;
  std::memcpy(bytes.data(), &layout, sizeof layout);
  return bytes;
}

std::optional<AtomicMessage> decode_atomic_message(const void* bytes, std::size_t size_bytes) {
  if (size_bytes != AtomicMessage::size_bytes)
    return std::nullopt;
  Layout layout;
  std::memcpy(&layout, bytes, sizeof layout);
  if (layout.mark != message_mark || layout.op > static_cast<std::uint8_t>(AtomicOp::bit_xor) ||
      (layout.word_bytes != 4 && layout.word_bytes != 8) || layout.wants_value > 1)
    return std::nullopt;
  AtomicMessage message;
  message.request = {static_cast<AtomicOp>(layout.op), layout.word_bytes, layout.operand,
                     layout.compare};
  message.region = layout.region;
  message.offset_bytes = layout.offset_bytes;
  message.wants_value = layout.wants_value == 1;
  return message;
}

const char* to_string(Refusal refusal) {
  switch (refusal) {
  case Refusal::malformed:
    return "the message is damaged";
  case Refusal::outside:
    return "it has no such word";
  case Refusal::misaligned:
    return "the address is no multiple of the word's size";
  case Refusal::too_many:
    return "more requests are under way than it can hold";
  case Refusal::none:
    break;
  }
  return "it says no reason";
}

Outcome carry_out(const RegionTable& regions, const void* bytes, std::size_t size_bytes) {
  const std::optional<AtomicMessage> message = decode_atomic_message(bytes, size_bytes);
  if (!message)
    return {0, Refusal::malformed, false};
  Outcome outcome{0, Refusal::none, message->wants_value};
  const RegionView& region = regions[message->region];
  const std::size_t word_bytes = message->request.size_bytes;
  if (!region.base || region.size_bytes < word_bytes ||
      message->offset_bytes > region.size_bytes - word_bytes) {
    outcome.refusal = Refusal::outside;
    return outcome;
  }
  std::byte* const word = region.base + message->offset_bytes;
  if (reinterpret_cast<std::uintptr_t>(word) % word_bytes != 0)
    outcome.refusal = Refusal::misaligned;
  else
    outcome.value = execute_atomic(word, message->request);
  return outcome;
}

std::uint32_t credits_of(std::uint64_t receives, int n_pes, int qp_sets) {
  const auto senders = static_cast<std::uint64_t>(n_pes) * static_cast<std::uint64_t>(qp_sets);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(max_credits, receives / senders));
}

void serialize(Archive& archive, ReplyAddress& place) {
  archive(place.credits, place.address, place.keys);
  archive.require(place.keys.size() <= wire_limits::ports && place.credits <= max_credits);
}

} // namespace shmemctl::ibrc
