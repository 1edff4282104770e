// The GPUs that processes use, according to NVML, and the indices by which a process knows them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/sysroot.h"
#include "src/instruments/inspect/process.h"
#include "src/model/topo/nvlink_traffic.h"
#include "src/model/topo/pci_address.h"
#include "src/model/topo/readers/nvml.h"

namespace shmemctl::inspect {

/// A process that has a CUDA context on a GPU.
struct GpuProcess {
  int pid = 0;
  std::optional<std::uint64_t> used_bytes; ///< used bytes of the GPU's memory
  std::optional<unsigned> busy_percent;    ///< share of time in which its kernels ran
};

/// One GPU of the node, and the processes that use it.
struct DrivenGpu {
  int index = 0; ///< physical: NVML's index, which is in the order of PCI addresses
  PciAddress address;
  std::string uuid; ///< "" if unknown
  std::vector<GpuProcess> processes;
};

struct GpuProcesses {
  std::vector<DrivenGpu> gpus; ///< ordered by index
  bool known = false;          ///< whether the driver or a recording lists the GPUs
  std::vector<Skipped> skipped;
};

GpuProcesses read_gpu_processes(const Nvml& nvml);

/// Parses the text of a recording. It has a line for each GPU, and one for each process on it:
///   gpu 0 pci 0000:18:00.0 uuid GPU-1b2c
///   gpu 0 pid 4711 used-bytes 5000000000 busy-percent 37
/// Unknown values are left out. Lines of another form are ignored.
GpuProcesses parse_gpu_processes(std::string_view text);
/// The reverse of parse_gpu_processes().
std::string gpu_processes_text(const GpuProcesses& gpus);

/// The path of gpu_processes_text() in a recorded tree.
inline constexpr const char* gpu_record_path = "/shmemctl/gpu-processes";

/// The index by which a process knows a GPU: its position in CUDA_VISIBLE_DEVICES, or the physical
/// index if that variable is not set. Empty if the GPU is not visible, or if the list names parts
/// of GPUs (MIG).
/// @param visible value of CUDA_VISIBLE_DEVICES; nullptr if it is not set
std::optional<int> visible_index(const std::string* visible, const DrivenGpu& gpu);

/// A GPU that one process uses.
struct GpuUse {
  int index = 0; ///< physical: NVML's index
  PciAddress address;
  std::optional<int> visible_index; ///< empty: unknown
  std::optional<std::uint64_t> used_bytes;
  std::optional<unsigned> busy_percent;
  std::string source; ///< "NVML", "/dev/nvidia3"
};

/// The GPUs on which, according to the driver, a process has a context, first the one on which it
/// uses most memory. If the driver reports none: the GPU of /dev/nvidiaN, if the process has
/// exactly one of these files open, identified by the minor numbers in /proc/driver/nvidia/gpus.
std::vector<GpuUse> gpus_of(const Sysroot& sysroot, const Process& process,
                            const GpuProcesses& gpus);

/// NVML, opened at the first use: the processes on each GPU, and the NVLink counters.
class GpuDriver {
public:
  /// @param library argument of dlopen, usually Nvml::default_library
  explicit GpuDriver(std::string library) : library_(std::move(library)) {}

  /// The processes on the GPUs: of the live machine by NVML, if NVIDIA's driver is loaded; of a
  /// recorded tree from gpu_record_path.
  GpuProcesses processes(const Sysroot& sysroot);
  /// NVLink counters by GPU index; empty without NVML or on a recorded tree.
  std::map<int, NvlinkCounters> nvlinks(const Sysroot& sysroot, const GpuProcesses& gpus);

private:
  const Nvml* open(const Sysroot& sysroot);

  std::string library_, why_;
  bool tried_ = false;
  std::optional<Nvml> nvml_;
};

/// The bytes that the NVLinks of a GPU carried in the window, for all processes together.
struct NvlinkLoad {
  int gpu = 0;
  std::optional<std::uint64_t> sent_bytes, received_bytes;
  std::string reason; ///< why a value is unknown; "" if both are known
};
/// GPUs without NVLinks are left out.
std::vector<NvlinkLoad> nvlink_loads(const std::map<int, NvlinkCounters>& before,
                                     const std::map<int, NvlinkCounters>& after);

} // namespace shmemctl::inspect
