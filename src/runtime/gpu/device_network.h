// How kernels reach PEs that are not mapped: through their own proxy, or the HCA's QPs.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/abi/device_job.h"
#include "src/runtime/gpu/gpu.h"
#include "src/runtime/gpu/host_staged_transport.h"
#include "src/runtime/gpu/kernel_memory.h"
#include "src/runtime/proxy/proxy.h"
#include "transports/device_memory_user.h"

namespace shmemctl {

namespace ibgda {
class IbgdaTransport;
}

struct DeviceNetworkInputs {
  int pe = 0, n_pes = 1;
  /// DEVICE_PATH: "auto", "p2p", "proxy", "ibgda". With the last two, kernels use the network
  /// instead of loads and stores, except for this PE itself.
  std::string wanted = "auto";
  /// By PE: whether kernels can load and store there, and how or why not (one clause).
  std::vector<bool> mapped;
  std::vector<std::string> mapped_reason;
  /// By PE: the transport in use, as in Rma; nullptr: none.
  std::vector<Transport*> transports_by_pe;
  /// The ibgda transport, if the job has it (find_ibgda()); else nullptr.
  ibgda::IbgdaTransport* ibgda = nullptr;
  /// With "auto": for PEs that are not mapped, kernels post to ibgda's queues rather than to the
  /// proxy.
  bool prefer_ibgda = false;
  /// Why ibgda's HCA cannot access heaps in GPU memory, on all PEs: one clause; "" if it can.
  std::string no_ibgda_gpu_memory = std::string("the HCA ") + host_memory_only;
  std::string ibgda_gpu_memory_path; ///< how the HCA accesses heaps in GPU memory: one clause
  /// Whether transports can access the regions gpu_heap and gpu_team_flags.
  enum class Reachable {
    nothing,     ///< they cannot, so no PE has a path by network; see `unreachable_reason`
    host_memory, ///< the regions are in host memory: kernels' operands outside of them are copied
    all          ///< `transports_by_pe` handle GPU memory
  };
  Reachable reachable = Reachable::nothing;
  std::string unreachable_reason;
  std::string gpu_memory_path;        ///< how transports access GPU memory, for texts; may be ""
  std::vector<HostRange> host_memory; ///< this PE's own parts of the regions
  ProxyOptions proxy;                 ///< those of the runtime's own proxy: see proxy_options()
  JobHealth* health = nullptr;
  std::shared_ptr<KernelMemory> memory;
};

/// The ibgda transport among these, if it has QP sets for kernels; else nullptr.
ibgda::IbgdaTransport* find_ibgda(const std::vector<Transport*>& transports);

/// Create it after the regions are registered with the transports, and destroy it before the
/// transports. Not collective. Thread safe.
class DeviceNetworkPart {
public:
  /// Throws Error: usage if a proxy is needed and has no context left; unavailable without memory.
  explicit DeviceNetworkPart(DeviceNetworkInputs inputs);
  ~DeviceNetworkPart();
  DeviceNetworkPart(const DeviceNetworkPart&) = delete;
  DeviceNetworkPart& operator=(const DeviceNetworkPart&) = delete;

  /// The description of the network to pass to the next kernel launch.
  DeviceNetwork network() const;
  /// Paths of kernels by PE.
  const std::vector<KernelPath>& paths_by_pe() const;
  /// Call it after regions have grown and were registered with the transports again. Kernels that
  /// were launched earlier keep their description.
  void refresh(const std::vector<HostRange>& host_memory);
  /// Throws the proxy's Error if it has failed.
  void check();
  /// The Error for a kernel's report about the network (is_of_network()). A failure of the proxy
  /// takes precedence.
  Error error_of(const WaitReport& report) const;
  /// Completes the requests of kernels and stops the proxy; no kernel may be running. Throws the
  /// proxy's first Error, also in later calls. If it is not called, the destructor refuses the
  /// remaining requests.
  void stop();

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace shmemctl
