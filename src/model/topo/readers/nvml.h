// What NVML knows of this machine's GPUs: attributes, links, NVLink counters.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/dynamic_library.h"
#include "src/model/topo/node.h"
#include "src/model/topo/nvlink_traffic.h"
#include "src/model/topo/readers/nvml_abi.h"

namespace shmemctl {

// NVML, the management library of NVIDIA's driver, opened at run time. Every result is a fact or
// the library's own reason for having none: for example a lost GPU, a function that an old driver
// lacks, or a card without NVLink.

/// Identity and links of one GPU.
struct NvmlGpu {
  int index = 0; ///< NVML's own number
  Fact<PciAddress> address;
  Fact<std::string> name, uuid, vbios;
  Fact<int> minor;        ///< N of /dev/nvidiaN
  Fact<std::string> cpus; ///< CPU affinity as a cpulist
  Fact<int> numa;         ///< the nearest NUMA node of a CPU, if NVML names exactly one
  Fact<bool> mig_enabled;
  /// Active NVLinks and C2C links, one entry per target. If it is known and empty, the GPU has no
  /// such links.
  Fact<std::vector<GpuLink>> links;
  Fact<int> nvlinks_present, nvlinks_active;
};

struct NvmlRemappedRows {
  unsigned correctable = 0, uncorrectable = 0;
  bool pending = false; ///< a reset would remap more
  bool failed = false;  ///< a row could not be remapped: replace the GPU
};

/// One of a GPU's clocks.
struct NvmlClock {
  Fact<unsigned> now_MHz, max_MHz;
  /// The application clock, and its default. The newest GPUs and drivers do not report them.
  Fact<unsigned> application_MHz, default_MHz;
};

/// NVML's nvmlGpuFabricState_t: the state of the GPU's registration with the fabric manager.
enum class FabricState { not_supported, not_started, in_progress, completed };
const char* to_string(FabricState state); ///< "not supported", "not started", ...

/// Whether a GPU is fit for work.
struct NvmlHealth {
  Fact<bool> persistence_mode;
  Fact<bool> ecc_enabled;
  Fact<std::uint64_t> uncorrected_ecc_errors; ///< since the driver was loaded
  Fact<NvmlRemappedRows> remapped_rows;       ///< from the A100 on
  Fact<bool> retired_pages_pending;           ///< before the A100
  Fact<std::uint64_t> throttle_reasons;       ///< bits, see throttle_words()
  NvmlClock sm_clock, memory_clock;
  Fact<FabricState> fabric_state;
  Fact<int> fabric_status; ///< nvmlReturn_t of the registration; meaningful once completed
  /// "<cluster uuid>.<clique>" of an NVLink domain that spans machines; unknown outside of one.
  Fact<std::string> fabric_domain;
};
/// The reasons among the bits that mean that the GPU is throttled by heat or power: "hardware
/// thermal slowdown", "software power cap", ... Idle clocks and user settings are not included.
std::vector<std::string> throttle_words(std::uint64_t reasons);
/// Whether kernels run and a setting keeps the clocks down: application clocks, or locked ones.
/// NVML has no other query for locked clocks.
bool are_clocks_held_by_setting(std::uint64_t reasons);

/// A process that has a CUDA context on a GPU.
struct NvmlProcess {
  int pid = 0; ///< number in our PID namespace
  Fact<std::uint64_t> used_bytes;
  Fact<unsigned> busy_percent; ///< share of time in which its kernels ran, in the newest sample
};

/// An initialised NVML; the destructor shuts it down and closes it. Movable, not copyable.
class Nvml {
public:
  /// Loads the library and initialises it; empty, with the reason in `why`, if either fails.
  /// @param library a file name as for dlopen, e.g. default_library
  static std::optional<Nvml> open(const std::string& library, std::string& why);
  static constexpr const char* default_library = "libnvidia-ml.so.1";

  Nvml(Nvml&&) noexcept;
  Nvml& operator=(Nvml&&) noexcept;
  ~Nvml();

  /// The file that was loaded.
  std::string file() const;
  Fact<std::string> driver_version() const; ///< "580.159.03"
  Fact<std::string> cuda_version() const;   ///< newest CUDA that the driver supports: "13.0"
  Fact<int> device_count() const;

  NvmlGpu gpu(int index) const;
  /// Address and UUID alone: without the links, which take many calls.
  NvmlGpu gpu_identity(int index) const;
  /// Reads what each active NVLink of the GPU has sent and received: fields
  /// NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX (138) and NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX (139),
  /// payload in KiB, by link (`scopeId`) and once for all of them, as NVML's API reference
  /// describes them under "Field Value Enums". The counters are the GPU's: they include the traffic
  /// of all processes. Takes about three calls of NVML for each link; nothing is reset.
  /// @param pci_address as "0000:1a:00.0"
  NvlinkCounters nvlink_counters(const std::string& pci_address) const;
  NvmlHealth health(int index) const;
  /// Processes with a CUDA context on the GPU, by PID. Takes up to five calls of NVML.
  Fact<std::vector<NvmlProcess>> processes(int index) const;

private:
  friend class NvmlEvents;
  struct Session;
  explicit Nvml(std::unique_ptr<Session> session);
  std::unique_ptr<Session> session_;
};

/// The result of one call; `reason` is "nvmlX: GPU is lost", or "" if it succeeded.
struct NvmlOutcome {
  int code = nvml_abi::success;
  std::string reason;
  explicit operator bool() const { return reason.empty(); }
};

struct Nvml::Session {
  explicit Session(DynamicLibrary opened) : library(std::move(opened)) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  template <class... Arguments>
  NvmlOutcome call(const char* function, Arguments... arguments) const {
    auto* entry = library.function<int(Arguments...)>(function);
    if (entry == nullptr)
      return {-1, std::string(function) + ": this driver's NVML does not have it"};
    return outcome(function, entry(arguments...));
  }
  NvmlOutcome outcome(const char* function, int code) const;
  /// A handle, or nullptr with the reason.
  std::pair<nvml_abi::Device, std::string> device(int index) const;
  /// A field as a number, MB/s and counts alike.
  Fact<std::uint64_t> field(nvml_abi::Device device, unsigned field_id, unsigned scope) const;

  /// All NVLinks of a GPU, in order of their numbers.
  struct Nvlinks {
    std::vector<unsigned> present, active;
  };
  /// The NVLinks that exist, and those that are active.
  /// @param has_mig the GPU is in MIG mode, in which links exist but cannot be queried
  Fact<Nvlinks> nvlinks(nvml_abi::Device device, bool has_mig) const;
  /// Fills links, nvlinks_present and nvlinks_active.
  void read_links(nvml_abi::Device device, NvmlGpu& gpu) const;

  DynamicLibrary library;
  bool initialised = false;
};

} // namespace shmemctl
