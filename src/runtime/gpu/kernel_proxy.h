// The kernels' own proxy: the rings of a Proxy, mapped for a GPU.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "src/abi/device_network.h"
#include "src/runtime/gpu/kernel_memory.h"
#include "src/runtime/proxy/proxy.h"

namespace shmemctl {

class KernelProxy {
public:
  /// @param options of the runtime's own proxy, to which these threads are added
  /// Throws Error (usage) if no transport context is left, Error (unavailable).
  KernelProxy(const std::vector<Transport*>& transports_by_pe, JobHealth& health,
              const ProxyOptions& options, std::shared_ptr<KernelMemory> memory);
  ~KernelProxy();
  KernelProxy(const KernelProxy&) = delete;
  KernelProxy& operator=(const KernelProxy&) = delete;

  /// Fills in the fields for the proxy.
  void describe(DeviceNetwork& network) const;
  /// Throws what it has failed with, if it has.
  void check() const;
  /// No kernel runs. See Proxy::stop().
  void stop();

private:
  /// The device's counters are passed to the proxy's threads, which accept no request beyond these.
  void close_rings(bool of_device);

  std::shared_ptr<KernelMemory> memory_;
  int context_;
  std::unique_ptr<Proxy> proxy_;
  std::deque<KernelMapping> mappings_; ///< by ring
  KernelArray<std::uint64_t> issued_;  ///< by ring, each in its own cache line
  KernelArray<std::uint64_t> known_completed_;
  KernelArray<std::uint64_t> result_words_;
  std::unique_ptr<KernelArray<ProxyFifoView>> views_;
  std::unique_ptr<KernelArray<std::uint8_t>> ring_of_pe_;
  bool closed_ = false;
};

} // namespace shmemctl
