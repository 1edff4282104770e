// A keyed hash (SipHash): it cannot be computed without the key, and does not reveal the key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace shmemctl {

/// SipHash-2-4 (Aumasson and Bernstein, 2012).
std::uint64_t siphash(const std::array<std::uint8_t, 16>& key, const void* data,
                      std::size_t size_bytes);

} // namespace shmemctl
