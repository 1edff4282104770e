// What a NIC counter did between two readings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shmemctl {

/// What one counter did between two readings: how far it went, or in words why that cannot be told.
struct CounterStep {
  std::optional<std::int64_t> delta;
  std::string problem;     ///< "went back from 9 to 3: it was reset"; "" if there is a delta
  bool went_round = false; ///< passed 2^32, once or more often
};
/// A counter that went back has gone round if it was near 2^32 (what it counts in that unit), and
/// was reset otherwise. One that stays at the largest value of its width (IBA's PortCounters are of
/// 4 to 32 bits and stay there) is stuck, and tells nothing.
CounterStep counter_step(const std::string& counter, std::uint64_t before, std::uint64_t after);

/// What one step of a counter is in its name's unit: 4 bytes for port_xmit_data_bytes.
std::uint64_t counter_step_bytes(const std::string& counter);

enum class WireDirection { sent, received };

} // namespace shmemctl
