// 128 random bits that only the processes of one job know.
#pragma once

#include <array>
#include <cstdint>

namespace shmemctl {

using Secret = std::array<std::uint8_t, 16>;

/// From the kernel's random generator. Throws Error (unavailable) where it is forbidden.
Secret random_secret();

/// Constant time.
bool same_secret(const Secret& left, const Secret& right);

} // namespace shmemctl
