// The interface between the runtime and its GPU part. No CUDA header: builds without CUDA implement
// it too, and report that they have no CUDA.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/base/job_health.h"
#include "src/base/options.h"
#include "src/base/secret.h"
#include "src/runtime/buffers/gpu_buffer_backend.h"
#include "src/runtime/gpu/device_network.h"
#include "src/runtime/gpu/gpu.h"
#include "src/runtime/gpu/gpu_agreement.h"
#include "src/runtime/identity.h"
#include "transports/device_memory_user.h"
#include "transports/p2p/copy_engine.h"
#include "transports/transport.h"

namespace shmemctl {

/// A device that has been opened.
class OpenedGpu {
public:
  virtual ~OpenedGpu() = default;
  virtual const GpuCapabilities& capabilities() const = 0;
};

/// Which device a PE gets: the first of these members that is set decides.
struct GpuPreference {
  int device = -1;         ///< CUDA's number of the device that the program names; -1: none
  std::string pci_address; ///< address of the device that GPUS names for this PE; "": none
  int machine_pe = 0;      ///< this PE's number on its machine: PEs get the devices in turn
};

/// Opens the driver and this PE's device. Returns nullptr if there is no driver or no such device,
/// or if this build has no CUDA. A driver that is too old for the kernels is opened nevertheless
/// (see GpuCapabilities::no_kernels).
/// @param why receives the reason: one clause
std::unique_ptr<OpenedGpu> open_gpu(const Options& options, const GpuPreference& preference,
                                    std::string& why);

/// The runtime's functions that the GPU part uses. All are collective except `announcing`.
struct GpuHooks {
  /// Runs a step; its Error is announced to the job and rethrown.
  std::function<void(const std::function<void()>&)> announcing;
  std::function<void()> barrier;
  std::function<std::vector<std::string>(const std::string&)> gather; ///< by PE; during the phases
  std::function<void(const RegionView&)> publish;                     ///< after a region has grown
  Agreement agreement; ///< by which PEs with a checked heap compare their calls
};

struct GpuSetup {
  const Options* options = nullptr;
  const Placement* placement = nullptr;
  std::vector<int> mappable_pes; ///< PEs that can pass each other descriptors, including this PE
  std::vector<GpuCapabilities> capabilities_by_pe; ///< by PE
  Secret secret{};
  JobHealth* health = nullptr;
  std::unique_ptr<HeapBacking> host_backing; ///< for HEAP=host
  GpuHooks hooks;
  std::shared_ptr<WordAtomics> word_atomics; ///< nullptr: atomics are executed by a kernel
  double timeout_s = 60;
  bool heap_grows = false; ///< RuntimeRequest::gpu_heap_grows
};

/// The runtime's side of PeGpu.
class GpuRuntime : public PeGpu {
public:
  /// The current views of gpu_heap and gpu_team_flags, in this order.
  virtual std::vector<RegionView> views() const = 0;
  /// Whether the host's CPUs can load and store in the regions.
  virtual bool is_host_memory() const = 0;
  /// The functions of the GPU that registered buffers use.
  virtual buffers::GpuBufferBackend& user_buffers() = 0;
  /// The regions' memory, for NICs; nullptr if it is host memory.
  virtual std::shared_ptr<const DeviceMemory> device_memory() const = 0;
  /// Executes operations that the host initiates on GPU memory of mapped PEs.
  virtual CopyEngine& copies() = 0;
  /// Another copy engine, for the agent of staged transfers.
  virtual std::shared_ptr<CopyEngine> agent_copies() = 0;
  /// Sets up the proxy or IBGDA by which kernels reach PEs that are not mapped; called after the
  /// regions are published. `inputs` contains the runtime's part: the transports and the options of
  /// the proxy. Throws Error.
  virtual void use_network(DeviceNetworkInputs inputs) = 0;
  /// Completes the network requests of kernels; no kernel may be running. Throws the network's
  /// first Error.
  virtual void finish() = 0;
  /// Ends the waits of kernels and the threads that serve them. These threads use the transports of
  /// use_network(), which must not be destroyed earlier.
  virtual void leave_network() noexcept = 0;
  /// Updates the description of teams in GPU memory. Called by StateBlock after every change.
  virtual void mirror(const State& state) = 0;
};

/// Collective: makes the regions, and determines which PEs can map each other. Throws Error.
std::unique_ptr<GpuRuntime> make_gpu_runtime(std::unique_ptr<OpenedGpu> opened, GpuSetup setup);

} // namespace shmemctl
