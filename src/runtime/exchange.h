// The exchange of connection data between transports, over the bootstrap.
#pragma once

#include "src/runtime/bootstrap/bootstrap.h"
#include "transports/transport.h"

namespace shmemctl {

/// Not thread safe, like the bootstrap. Each text is at most 1 MiB.
class BootstrapExchange final : public Exchange {
public:
  /// The bootstrap must outlive this object. @param deadline of all calls together
  BootstrapExchange(Bootstrap& bootstrap, Deadline deadline)
      : bootstrap_(bootstrap), deadline_(deadline) {}

  std::vector<std::string> allgather(const std::string& own) override;
  std::vector<std::string> alltoall(const std::vector<std::string>& to_each) override;

private:
  Bootstrap& bootstrap_;
  Deadline deadline_;
};

/// Collective: makes a region known to transports, and their keys for it to all PEs. Every PE gives
/// the same transports in the same order. Throws Error.
void register_region(const std::vector<Transport*>& transports, const RegionView& region,
                     Exchange& exchange);

} // namespace shmemctl
