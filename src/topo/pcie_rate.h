// What a PCIe link carries in one direction.
#pragma once

#include <optional>
#include <string>

#include "src/topo/node.h"

namespace shmemctl {

struct PcieRate {
  double rate_GBps = 0; ///< after the line code
  std::string text;     ///< "PCIe, 16 lanes of 32 GT/s"
};

/// By the most that the device can do, since links of devices at rest run slowly. Nothing where the
/// link is not known.
std::optional<PcieRate> pcie_rate(const PcieLink& link);

} // namespace shmemctl
