#include "src/runtime/memory/siphash.h"

#include <bit>

namespace shmemctl {

namespace {

std::uint64_t little_endian(const std::uint8_t* bytes, std::size_t count) {
  std::uint64_t word = 0;
  for (std::size_t at = 0; at < count; ++at)
    word |= std::uint64_t{bytes[at]} << (8 * at);
  return word;
}

struct SipState {
  std::uint64_t v0, v1, v2, v3;

  void rounds(int count) {
    for (int round = 0; round < count; ++round) {
      v0 += v1;
      v1 = std::rotl(v1, 13) ^ v0;
      v0 = std::rotl(v0, 32);
      v2 += v3;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1;
      v1 = std::rotl(v1, 17) ^ v2;
      v2 = std::rotl(v2, 32);
    }
  }
  void absorb(std::uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  }
};

} // namespace

std::uint64_t siphash(const std::array<std::uint8_t, 16>& key, const void* data,
                      std::size_t size_bytes) {
  const auto* bytes = static_cast<const std::uint8_t*>(data);
  const std::uint64_t k0 = little_endian(key.data(), 8), k1 = little_endian(key.data() + 8, 8);
  // The initial words spell "somepseudorandomlygeneratedbytes".
  SipState state{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261,
                 k1 ^ 0x7465646279746573};
  const std::size_t whole = size_bytes / 8 * 8;
  for (std::size_t at = 0; at < whole; at += 8)
    state.absorb(little_endian(bytes + at, 8));
  state.absorb(little_endian(bytes + whole, size_bytes - whole) | std::uint64_t{size_bytes} << 56);
  state.v2 ^= 0xff;
  state.rounds(4);
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

} // namespace shmemctl
