#include "src/hotspots/nic_counters.h"

#include <array>
#include <fmt/format.h>
#include <string_view>

namespace shmemctl {

namespace {

constexpr std::uint64_t two_to_32 = std::uint64_t{1} << 32;
constexpr std::uint64_t word_bytes = 4; ///< of port_xmit_data and port_rcv_data

/// Bits of IBA's PortCounters attribute (volume 1, 16.1.3.5), which end at their largest value.
/// Where the device keeps wider ones (PortCountersExtended), sysfs gives those.
int width_of(const std::string& counter) {
  static constexpr std::array<std::pair<std::string_view, int>, 11> widths = {{
      {"symbol_error", 16},
      {"link_error_recovery", 8},
      {"link_downed", 8},
      {"port_rcv_errors", 16},
      {"port_rcv_remote_physical_errors", 16},
      {"port_rcv_constraint_errors", 8},
      {"port_xmit_constraint_errors", 8},
      {"port_xmit_discards", 16},
      {"local_link_integrity_errors", 4},
      {"excessive_buffer_overrun_errors", 4},
      {"VL15_dropped", 16},
  }};
  for (const auto& [name, bits] : widths)
    if (name == counter)
      return bits;
  return 32;
}

} // namespace

std::uint64_t counter_step_bytes(const std::string& counter) {
  return counter == "port_xmit_data_bytes" || counter == "port_rcv_data_bytes" ? word_bytes : 1;
}

CounterStep counter_step(const std::string& counter, std::uint64_t before, std::uint64_t after) {
  const std::uint64_t step = counter_step_bytes(counter);
  const std::uint64_t round = two_to_32 * step;
  const std::uint64_t ceiling = ((std::uint64_t{1} << width_of(counter)) - 1) * step;
  if (before == after && (after == ceiling || after == round - step))
    return {std::nullopt,
            fmt::format("stays at {}, the largest value of its width: it tells nothing", after),
            false};
  if (after >= before)
    return {static_cast<std::int64_t>(after - before), "", false};
  if (before < round && before >= round / 4 * 3 && after < round / 4)
    return {static_cast<std::int64_t>(after + round - before), "", true};
  return {std::nullopt, fmt::format("went back from {} to {}: it was reset", before, after), false};
}

} // namespace shmemctl
