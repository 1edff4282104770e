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
  /// @param options those of the runtime's own proxy; this proxy is a second one
  /// Throws Error: usage if no transport context is left; unavailable.
  KernelProxy(const std::vector<Transport*>& transports_by_pe, JobHealth& health,
              const ProxyOptions& options, std::shared_ptr<KernelMemory> memory);
  ~KernelProxy();
  KernelProxy(const KernelProxy&) = delete;
  KernelProxy& operator=(const KernelProxy&) = delete;

  /// Sets the members of `network` that describe the proxy.
  void describe(DeviceNetwork& network) const;
  /// Throws the proxy's Error if it has failed.
  void check() const;
  /// As Proxy::stop(); no kernel may be running.
  void stop();

private:
  /// Closes the rings: passes the device's counters of issued requests to the proxy's threads,
  /// which accept no later request.
  /// @param of_device false if the device does not respond: its counters cannot be read, so only
  /// requests that were already taken count
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
