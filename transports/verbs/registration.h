// Registration of memory with a device: host memory, and GPU memory by dma-buf or peer memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/base/options.h"
#include "src/base/sysroot.h"
#include "transports/device_memory_user.h"
#include "transports/verbs/device.h"
#include "transports/verbs/functions.h"

namespace shmemctl::verbs {

enum class MemoryKind { host, cuda };

/// As DeviceMemory::export_dma_buf().
using ExportDmaBuf = std::function<std::optional<DmaBuf>(std::uintptr_t address, std::size_t size,
                                                         std::string& why)>;

/// Which methods for GPU memory are available.
struct DeviceMemoryPaths {
  ExportDmaBuf export_dma_buf;  ///< empty if the driver has none
  std::string no_export_reason; ///< why `export_dma_buf` is empty
  std::string dma_buf_off;      ///< the option that forbids dma-buf; "" if none does
  bool library_has_dma_buf = false;
  std::string peer_memory_off;    ///< the option that forbids peer memory; "" if none does
  std::string peer_memory_module; ///< "" if none is loaded
};

/// The methods for this memory that the options GPUDIRECT and IB_DISABLE_DMABUF allow, and that the
/// library, the driver and the kernel support.
DeviceMemoryPaths paths_of(const std::shared_ptr<const DeviceMemory>& memory,
                           const Functions& functions, const Options& options,
                           const Sysroot& sysroot = Sysroot("/"));

enum class RegistrationMethod { plain, dma_buf, peer_memory };
const char* to_string(RegistrationMethod method);

struct PathChoice {
  std::vector<RegistrationMethod> methods; ///< to try, in this order
  std::vector<std::string> reasons;        ///< why other methods are not used: one clause each
};
/// Chooses plain registration for host memory. For GPU memory, chooses dma-buf and then peer
/// memory, as far as available.
PathChoice choose_paths(MemoryKind kind, const DeviceMemoryPaths& known);

/// The loaded kernel module that lets RDMA drivers access GPU memory; "" if none is loaded.
std::string peer_memory_module(const Sysroot& sysroot);

/// Does not contain IBV_ACCESS_RELAXED_ORDERING: a signal must be ordered after its payload, on
/// PCIe too. (write_order.h deals with the order in which the HCA issues writes.)
inline constexpr int access_all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

/// Registers [address, address + size_bytes). Throws Error (unavailable) with the errors of all
/// methods; the error names the limit of locked memory if that may be the cause.
/// @param what description for error messages: "the heap"
/// @param used receives the method that was used
/// @param access local and remote access, including atomics, unless the caller wants less
MemoryRegion register_memory(Device& device, void* address, std::size_t size_bytes, MemoryKind kind,
                             const DeviceMemoryPaths& known, const std::string& what,
                             RegistrationMethod* used = nullptr, int access = access_all);

} // namespace shmemctl::verbs
