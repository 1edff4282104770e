#include "src/topo/pcie_rate.h"

#include <fmt/format.h>

namespace shmemctl {

namespace {

/// 8b/10b up to 5 GT/s, 128b/130b, and 242 bytes of 256 in a flit from 64 on.
double line_code(double speed_GTps) {
  return speed_GTps <= 5 ? 0.8 : speed_GTps < 64 ? 128.0 / 130 : 242.0 / 256;
}

} // namespace

std::optional<PcieRate> pcie_rate(const PcieLink& link) {
  const Fact<double>& speed = link.max_speed_GTps ? link.max_speed_GTps : link.speed_GTps;
  const Fact<int>& width = link.width ? link.width : link.max_width;
  if (!speed || !width || *speed <= 0 || *width <= 0)
    return std::nullopt;
  return PcieRate{*speed * *width * line_code(*speed) / 8,
                  fmt::format("PCIe, {} lanes of {:g} GT/s", *width, *speed)};
}

} // namespace shmemctl
