// Where a symmetric address of another PE is mapped, for transports that work on mappings.
#pragma once

#include <string>

#include "src/base/error.h"
#include "transports/region_table.h"

namespace shmemctl {

/// Throws Error (unavailable) for a PE whose part is not mapped here, which reach() has refused.
/// @param transport for the message: "shm"
inline std::byte* mapped_place(const RegionTable& regions, const RemoteAddress& address,
                               const char* transport) {
  const RegionView& region = regions[static_cast<std::size_t>(address.region)];
  const auto pe = static_cast<std::size_t>(address.pe);
  std::byte* base = pe < region.mapped.size() ? region.mapped[pe] : nullptr;
  if (!base)
    throw Error(ExitCode::unavailable, transport, "translate an address",
                "memory of PE " + std::to_string(address.pe) + " is not mapped in this process",
                "report this as a bug in shmemctl, with the command line");
  return base + address.offset_bytes;
}

} // namespace shmemctl
