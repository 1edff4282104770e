// The interface between the runtime and its GPU half. No CUDA header: builds without CUDA have this
// too, and report there that they have none.
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

/// A device that has been opened. Kept by the part that is made of it.
class OpenedGpu {
public:
  virtual ~OpenedGpu() = default;
  virtual const GpuCapabilities& capabilities() const = 0;
};

/// Which device a PE is to have: the first of these that exists.
struct GpuPreference {
  int device = -1;         ///< CUDA's device number in the program; -1 for none
  std::string pci_address; ///< address of the device that GPUS names for this PE; "" for none
  int machine_pe = 0;      ///< this PE's number on its machine: PEs take devices in turn
};

/// Opens the driver and this PE's device. Returns nullptr without a driver, that device, or CUDA in
/// this build. A driver that is too old for the kernels is opened: GpuCapabilities::no_kernels.
/// @param why receives the reason: one clause
std::unique_ptr<OpenedGpu> open_gpu(const Options& options, const GpuPreference& preference,
                                    std::string& why);

/// What the GPU part does through the runtime. All are collective but for `announcing`.
struct GpuHooks {
  /// Runs a step; its Error is announced to the job and rethrown.
  std::function<void(const std::function<void()>&)> announcing;
  std::function<void()> barrier;
  std::function<std::vector<std::string>(const std::string&)> gather; ///< by PE; in the phases
  std::function<void(const RegionView&)> publish;                     ///< a region has grown
  Agreement agreement; ///< how a checked heap's PEs compare their calls
};

struct GpuSetup {
  const Options* options = nullptr;
  const Placement* placement = nullptr;
  std::vector<int> mappable_pes; ///< PEs to which descriptors can be handed, this one among them
  std::vector<GpuCapabilities> capabilities_by_pe; ///< by PE
  Secret secret{};
  JobHealth* health = nullptr;
  std::unique_ptr<HeapBacking> host_backing; ///< for HEAP=host
  GpuHooks hooks;
  std::shared_ptr<WordAtomics> word_atomics; ///< nullptr: the kernel's
  double timeout_s = 60;
  bool heap_grows = false; ///< RuntimeRequest::gpu_heap_grows
};

/// The runtime's side of PeGpu.
class GpuRuntime : public PeGpu {
public:
  /// gpu_heap and gpu_team_flags, as they are now.
  virtual std::vector<RegionView> views() const = 0;
  /// Whether processors of the host can load and store in the regions.
  virtual bool is_host_memory() const = 0;
  /// For registered buffers.
  virtual buffers::GpuBufferBackend& user_buffers() = 0;
  /// The regions' memory, for NICs; nullptr if it is the host's.
  virtual std::shared_ptr<const DeviceMemory> device_memory() const = 0;
  /// For host-initiated operations on mapped PEs.
  virtual CopyEngine& copies() = 0;
  /// Another copy engine, for the agent of staged transfers.
  virtual std::shared_ptr<CopyEngine> agent_copies() = 0;
  /// Sets up the proxy or IBGDA by which kernels reach PEs that are not mapped; called after the
  /// regions are published. `inputs` has what the runtime provides for it: transports, options of
  /// the proxy. Throws Error.
  virtual void use_network(DeviceNetworkInputs inputs) = 0;
  /// No kernel runs. Completes what kernels have asked the network for. Throws its first Error.
  virtual void finish() = 0;
  /// Ends the waits of kernels and the threads that serve them. These threads use the transports of
  /// use_network(), which must not be destroyed earlier.
  virtual void leave_network() noexcept = 0;
  /// Brings what kernels know of teams up to date. Called by StateBlock after every change.
  virtual void mirror(const State& state) = 0;
};

/// Collective: makes the regions, and finds out which PEs can be mapped. Throws Error.
std::unique_ptr<GpuRuntime> make_gpu_runtime(std::unique_ptr<OpenedGpu> opened, GpuSetup setup);

} // namespace shmemctl
