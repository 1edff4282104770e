// The exchange of connection data between transports, over the bootstrap.
#pragma once

#include "src/runtime/bootstrap/bootstrap.h"
#include "transports/transport.h"

namespace shmemctl {

/// Not thread safe, like the bootstrap. Each text may have at most 1 MiB.
class BootstrapExchange final : public Exchange {
public:
  /// The bootstrap must outlive this object. @param deadline applies to all calls together
  BootstrapExchange(Bootstrap& bootstrap, Deadline deadline)
      : bootstrap_(bootstrap), deadline_(deadline) {}

  std::vector<std::string> allgather(const std::string& own) override;
  std::vector<std::string> alltoall(const std::vector<std::string>& to_each) override;

private:
  Bootstrap& bootstrap_;
  Deadline deadline_;
};

/// Collective: registers a region with transports, and exchanges their keys for it among all PEs.
/// Every PE must pass the same transports in the same order. Throws Error.
void register_region(const std::vector<Transport*>& transports, const RegionView& region,
                     Exchange& exchange);

} // namespace shmemctl
