// What other PEs send to ibrc as messages: carried out without touching anything but the regions,
// and the place of answers, read without harm.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "transports/ibrc/am_format.h"

using namespace shmemctl;
using namespace shmemctl::ibrc;

namespace {

constexpr std::uint64_t guard = 0x5aa5a55a12344321u;

void expect(bool condition) {
  if (!condition)
    std::abort();
}

/// What was read is what it encodes to.
void look_at(const std::uint8_t* bytes, std::size_t size) {
  const auto message = decode_atomic_message(bytes, size);
  if (!message)
    return;
  const AtomicMessage::Bytes again = encode(*message);
  expect(size == again.size() && std::memcmp(again.data(), bytes, size) == 0);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto place = from_bytes<ReplyAddress>(text))
    expect(to_bytes(*place) == text);

  // Region 1 has four words between two guards, region 3 begins beside a word.
  alignas(8) std::array<std::uint64_t, 10> words{};
  words[0] = words[5] = words[9] = guard;
  RegionTable regions;
  regions.set({1, reinterpret_cast<std::byte*>(&words[1]), 32, {}});
  regions.set({3, reinterpret_cast<std::byte*>(&words[6]) + 4, 20, {}});
  for (std::size_t at = 0; at < size; at += AtomicMessage::size_bytes) {
    const std::size_t length = std::min(size - at, AtomicMessage::size_bytes);
    look_at(data + at, length);
    const auto before = words;
    const Outcome outcome = carry_out(regions, data + at, length);
    expect(outcome.refusal <= Refusal::misaligned);
    if (outcome.refusal != Refusal::none)
      expect(words == before && outcome.value == 0);
    expect(words[0] == guard && words[5] == guard && words[9] == guard);
  }
  return 0;
}
