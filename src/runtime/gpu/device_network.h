// How kernels reach PEs that are not mapped: a proxy of their own, or the HCA's QPs.
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
  /// DEVICE_PATH: "auto", "p2p", "proxy", "ibgda". The last two also replace loads and stores,
  /// except to this PE itself.
  std::string wanted = "auto";
  /// By PE: kernels can load and store there; and by what (or why not), one clause.
  std::vector<bool> mapped;
  std::vector<std::string> mapped_reason;
  /// By PE: the transport in use, as Rma has it; nullptr: none.
  std::vector<Transport*> transports_by_pe;
  /// ibgda, if the job has it; see find_ibgda().
  ibgda::IbgdaTransport* ibgda = nullptr;
  /// With "auto": kernels post to its queues where they map nothing, rather than to the proxy.
  bool prefer_ibgda = false;
  /// Why its HCA does not take heaps of GPU memory, on all PEs: one clause; "" if it does.
  std::string no_ibgda_gpu_memory = std::string("the HCA ") + host_memory_only;
  std::string ibgda_gpu_memory_path; ///< how the HCA accesses heaps of GPU memory: one clause
  /// What transports reach of the regions gpu_heap and gpu_team_flags.
  enum class Reachable {
    nothing,     ///< `unreachable_reason` says why: no PE has a path by network
    host_memory, ///< the regions are in host memory: kernels' operands outside of them are copied
    all          ///< `transports_by_pe` handle GPU memory
  };
  Reachable reachable = Reachable::nothing;
  std::string unreachable_reason;
  std::string gpu_memory_path;        ///< GpuInfo::network
  std::vector<HostRange> host_memory; ///< this PE's own parts of the regions
  ProxyOptions proxy;                 ///< as for the runtime's own proxy: see proxy_options()
  JobHealth* health = nullptr;
  std::shared_ptr<KernelMemory> memory;
};

/// The transport ibgda among these, if kernels post to it; else nullptr.
ibgda::IbgdaTransport* find_ibgda(const std::vector<Transport*>& transports);

/// Not collective: made when the transports know the regions. Goes before the transports. Thread
/// safe.
class DeviceNetworkPart {
public:
  /// Throws Error (usage) for a path that cannot be had, Error (unavailable) without memory.
  explicit DeviceNetworkPart(DeviceNetworkInputs inputs);
  ~DeviceNetworkPart();
  DeviceNetworkPart(const DeviceNetworkPart&) = delete;
  DeviceNetworkPart& operator=(const DeviceNetworkPart&) = delete;

  /// What the next launch is given.
  DeviceNetwork network() const;
  /// Paths of kernels by PE.
  const std::vector<KernelPath>& paths_by_pe() const;
  /// Regions have grown, and transports know it. Kernels launched earlier keep what they have.
  void refresh(const std::vector<HostRange>& host_memory);
  /// Throws what the proxy has failed with, if it has.
  void check();
  /// The Error for a kernel's report about the network (is_of_network()). A failure of the proxy
  /// takes precedence.
  Error error_of(const WaitReport& report) const;
  /// No kernel runs. Completes what they have asked for, and ends. Throws the first Error, also on
  /// another call; without it the destructor refuses what is left.
  void stop();

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace shmemctl
