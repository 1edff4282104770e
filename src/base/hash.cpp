// Hash functions: FNV-1a and SHA-256.
#include "src/base/hash.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <string>

namespace shmemctl {

namespace {

constexpr std::size_t hash_block_bytes = 64, length_bytes = 8;

constexpr std::array<std::uint32_t, 64> constants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/// Computes the hash of what is added: whole blocks first, then the rest with end().
class Hash {
public:
  void add_block(const std::uint8_t* block) {
    std::array<std::uint32_t, 64> words;
    for (std::size_t i = 0; i < 16; ++i)
      words[i] = static_cast<std::uint32_t>(block[4 * i]) << 24 |
                 static_cast<std::uint32_t>(block[4 * i + 1]) << 16 |
                 static_cast<std::uint32_t>(block[4 * i + 2]) << 8 | block[4 * i + 3];
    for (std::size_t i = 16; i < 64; ++i) {
      const std::uint32_t early = words[i - 15], late = words[i - 2];
      words[i] = words[i - 16] + (std::rotr(early, 7) ^ std::rotr(early, 18) ^ early >> 3) +
                 words[i - 7] + (std::rotr(late, 17) ^ std::rotr(late, 19) ^ late >> 10);
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t i = 0; i < 64; ++i) {
      const std::uint32_t one = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                                ((e & f) ^ (~e & g)) + constants[i] + words[i];
      const std::uint32_t two =
          (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g;
      g = f;
      f = e;
      e = d + one;
      d = c;
      c = b;
      b = a;
      a = one + two;
    }
    const std::array<std::uint32_t, 8> added = {a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < state_.size(); ++i)
      state_[i] += added[i];
    hashed_bytes_ += hash_block_bytes;
  }

  /// Adds the rest, which may include whole blocks, and the padding.
  Sha256Digest end(std::string_view rest) {
    const std::uint64_t bits = 8 * (hashed_bytes_ + rest.size());
    std::string text(rest);
    text += static_cast<char>(0x80);
    while (text.size() % hash_block_bytes != hash_block_bytes - length_bytes)
      text += '\0';
    for (std::size_t i = 0; i < length_bytes; ++i)
      text += static_cast<char>(bits >> (8 * (length_bytes - 1 - i)));
    for (std::size_t at = 0; at < text.size(); at += hash_block_bytes)
      add_block(reinterpret_cast<const std::uint8_t*>(text.data()) + at);
    Sha256Digest digest;
    for (std::size_t i = 0; i < digest.size(); ++i)
      digest[i] = static_cast<std::uint8_t>(state_[i / 4] >> (8 * (3 - i % 4)));
    return digest;
  }

private:
  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::uint64_t hashed_bytes_ = 0;
};

std::string_view view(const Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

/// A key for HMAC, whose two blocks are hashed only once for all texts.
class KeyedHash {
public:
  explicit KeyedHash(std::string_view key) {
    std::array<std::uint8_t, hash_block_bytes> padded{};
    const Sha256Digest hashed = sha256(key);
    const std::string_view used = key.size() > hash_block_bytes ? view(hashed) : key;
    std::copy(used.begin(), used.end(), padded.begin());
    add_masked(inner_, padded, 0x36);
    add_masked(outer_, padded, 0x5c);
  }
  Sha256Digest of(std::string_view text) const {
    Hash inner = inner_, outer = outer_;
    return outer.end(view(inner.end(text)));
  }

private:
  static void add_masked(Hash& hash, std::array<std::uint8_t, hash_block_bytes> block,
                         std::uint8_t mask) {
    for (std::uint8_t& byte : block)
      byte = static_cast<std::uint8_t>(byte ^ mask);
    hash.add_block(block.data());
  }

  Hash inner_, outer_;
};

} // namespace

Sha256Digest sha256(std::string_view text) {
  return Hash().end(text);
}

Sha256Digest hmac_sha256(std::string_view key, std::string_view text) {
  return KeyedHash(key).of(text);
}

Sha256Digest pbkdf2_sha256(std::string_view password, std::string_view salt, std::uint32_t rounds) {
  const KeyedHash hash(password);
  const std::string first_block("\0\0\0\1", 4);
  Sha256Digest link = hash.of(std::string(salt) + first_block), key = link;
  for (std::uint32_t round = 1; round < rounds; ++round) {
    link = hash.of(view(link));
    for (std::size_t i = 0; i < key.size(); ++i)
      key[i] = static_cast<std::uint8_t>(key[i] ^ link[i]);
  }
  return key;
}

} // namespace shmemctl
