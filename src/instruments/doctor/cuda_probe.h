// Queries the CUDA driver in a child process with a deadline.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/model/topo/pci_address.h"

namespace shmemctl::doctor {

struct CudaDevice {
  std::optional<PciAddress> address;
  bool dma_buf = false; ///< CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED
};

/// What libcuda reported. A value that could not be queried is empty or false.
struct CudaProbe {
  std::string problem;               ///< why the driver could not be queried; "" on success
  bool library_unusable = false;     ///< `problem` is that libcuda.so.1 cannot be loaded or used
  std::string library;               ///< the file that was opened
  std::optional<int> driver_version; ///< cuDriverGetVersion: 13000 is 13.0
  std::optional<int> init_result;    ///< cuInit: 0 is success
  std::vector<CudaDevice> devices;
  std::vector<std::vector<bool>> peers; ///< cuDeviceCanAccessPeer(row, column)
  /// cuDeviceGetP2PAttribute(NATIVE_ATOMIC_SUPPORTED, row, column); empty: not available
  std::vector<std::vector<bool>> atomics;

  bool initialized() const { return init_result == 0; }
};

/// Runs cuInit and some queries in a child, because cuInit may hang on a broken driver and makes
/// CUDA unusable in children forked later. CUDA_VISIBLE_DEVICES is ignored. Never throws.
CudaProbe probe_cuda(std::chrono::milliseconds deadline);

/// The result for the live machine. Only the first call in a process queries the driver.
const CudaProbe& live_cuda();

/// Writes the child's result as lines of text, and parses such text. Malformed lines are skipped.
std::string to_text(const CudaProbe& probe);
CudaProbe parse_cuda_probe(std::string_view text);

/// The name of a CUDA error: "CUDA_ERROR_SYSTEM_NOT_READY" for 802. "error 7" if 7 is not in the
/// function's table.
std::string cuda_error_name(int result);

} // namespace shmemctl::doctor
