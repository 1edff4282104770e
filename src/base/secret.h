// 128 random bits that only the processes of one job know.
#pragma once

#include <array>
#include <cstdint>

namespace shmemctl {

using Secret = std::array<std::uint8_t, 16>;

/// A secret from the kernel's random generator. Throws Error (unavailable) if access to the
/// generator is denied.
Secret random_secret();

/// Compares two secrets in constant time.
bool same_secret(const Secret& left, const Secret& right);

} // namespace shmemctl
