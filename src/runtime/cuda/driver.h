// The CUDA driver: initialised, its errors as Error, its devices.
#pragma once

#include <cuda.h>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/dynamic_library.h"
#include "src/base/error.h"

namespace shmemctl::cuda {

// libcuda, opened at run time: a table of the functions that this binary calls, in the versions of
// the toolkit's header. Tests can replace the table.

/// Expands FUNCTION(member, name) for each function of the driver.
#define SHMEMCTL_CUDA_FUNCTIONS(FUNCTION)                                                          \
  FUNCTION(init, cuInit)                                                                           \
  FUNCTION(driver_get_version, cuDriverGetVersion)                                                 \
  FUNCTION(get_error_name, cuGetErrorName)                                                         \
  FUNCTION(get_error_string, cuGetErrorString)                                                     \
  FUNCTION(device_get, cuDeviceGet)                                                                \
  FUNCTION(device_get_count, cuDeviceGetCount)                                                     \
  FUNCTION(device_get_attribute, cuDeviceGetAttribute)                                             \
  FUNCTION(device_get_name, cuDeviceGetName)                                                       \
  FUNCTION(device_get_pci_bus_id, cuDeviceGetPCIBusId)                                             \
  FUNCTION(device_get_uuid, cuDeviceGetUuid)                                                       \
  FUNCTION(device_can_access_peer, cuDeviceCanAccessPeer)                                          \
  FUNCTION(device_get_p2p_attribute, cuDeviceGetP2PAttribute)                                      \
  FUNCTION(device_total_mem, cuDeviceTotalMem)                                                     \
  FUNCTION(primary_ctx_retain, cuDevicePrimaryCtxRetain)                                           \
  FUNCTION(primary_ctx_release, cuDevicePrimaryCtxRelease)                                         \
  FUNCTION(ctx_push_current, cuCtxPushCurrent)                                                     \
  FUNCTION(ctx_pop_current, cuCtxPopCurrent)                                                       \
  FUNCTION(ctx_get_stream_priority_range, cuCtxGetStreamPriorityRange)                             \
  FUNCTION(stream_create_with_priority, cuStreamCreateWithPriority)                                \
  FUNCTION(stream_destroy, cuStreamDestroy)                                                        \
  FUNCTION(stream_synchronize, cuStreamSynchronize)                                                \
  FUNCTION(stream_query, cuStreamQuery)                                                            \
  FUNCTION(stream_wait_event, cuStreamWaitEvent)                                                   \
  FUNCTION(event_create, cuEventCreate)                                                            \
  FUNCTION(event_destroy, cuEventDestroy)                                                          \
  FUNCTION(event_record, cuEventRecord)                                                            \
  FUNCTION(event_elapsed_time, cuEventElapsedTime)                                                 \
  FUNCTION(mem_get_info, cuMemGetInfo)                                                             \
  FUNCTION(mem_get_allocation_granularity, cuMemGetAllocationGranularity)                          \
  FUNCTION(mem_address_reserve, cuMemAddressReserve)                                               \
  FUNCTION(mem_address_free, cuMemAddressFree)                                                     \
  FUNCTION(mem_create, cuMemCreate)                                                                \
  FUNCTION(mem_release, cuMemRelease)                                                              \
  FUNCTION(mem_map, cuMemMap)                                                                      \
  FUNCTION(mem_unmap, cuMemUnmap)                                                                  \
  FUNCTION(mem_set_access, cuMemSetAccess)                                                         \
  FUNCTION(mem_export_to_shareable_handle, cuMemExportToShareableHandle)                           \
  FUNCTION(mem_import_from_shareable_handle, cuMemImportFromShareableHandle)                       \
  FUNCTION(mem_retain_allocation_handle, cuMemRetainAllocationHandle)                              \
  FUNCTION(mem_get_allocation_properties_from_handle, cuMemGetAllocationPropertiesFromHandle)      \
  FUNCTION(mem_get_address_range, cuMemGetAddressRange)                                            \
  FUNCTION(mem_get_handle_for_address_range, cuMemGetHandleForAddressRange)                        \
  FUNCTION(memset_d8_async, cuMemsetD8Async)                                                       \
  FUNCTION(memcpy_async, cuMemcpyAsync)                                                            \
  FUNCTION(mem_host_register, cuMemHostRegister)                                                   \
  FUNCTION(mem_host_unregister, cuMemHostUnregister)                                               \
  FUNCTION(mem_host_get_device_pointer, cuMemHostGetDevicePointer)                                 \
  FUNCTION(mem_host_alloc, cuMemHostAlloc)                                                         \
  FUNCTION(mem_free_host, cuMemFreeHost)                                                           \
  FUNCTION(mem_alloc, cuMemAlloc)                                                                  \
  FUNCTION(mem_free, cuMemFree)                                                                    \
  FUNCTION(ipc_get_mem_handle, cuIpcGetMemHandle)                                                  \
  FUNCTION(ipc_open_mem_handle, cuIpcOpenMemHandle)                                                \
  FUNCTION(ipc_close_mem_handle, cuIpcCloseMemHandle)                                              \
  FUNCTION(pointer_get_attributes, cuPointerGetAttributes)                                         \
  FUNCTION(flush_gpu_direct_rdma_writes, cuFlushGPUDirectRDMAWrites)                               \
  FUNCTION(ctx_set_current, cuCtxSetCurrent)

struct Functions {
#define SHMEMCTL_CUDA_MEMBER(member, name) decltype(&::name) member = nullptr;
  SHMEMCTL_CUDA_FUNCTIONS(SHMEMCTL_CUDA_MEMBER)
#undef SHMEMCTL_CUDA_MEMBER

  std::optional<DynamicLibrary> library; ///< the library that contains these functions
};

/// The version to pass to cuGetProcAddress: the header's, or the driver's if that is older, because
/// a driver refuses versions newer than its own.
int lookup_version(const DynamicLibrary& library);

/// Opens the library and looks up every function by cuGetProcAddress; does not call cuInit. Returns
/// nullptr if the library cannot be used.
/// @param file "libcuda.so.1"
/// @param why  receives the reason: one clause
std::shared_ptr<const Functions> load_functions(const std::string& file, std::string& why);

/// The capabilities of a device that the runtime uses in its decisions.
struct DeviceInfo {
  int ordinal = 0;                     ///< CUDA's number, under CUDA_VISIBLE_DEVICES
  std::string name, pci_address, uuid; ///< "0000:1b:00.0" in lower case; "GPU-0123…"
  int compute_major = 0, compute_minor = 0, multiprocessors = 0;
  std::size_t total_bytes = 0;
  /// Maximum bandwidth of the device's memory, reads plus writes, from the memory's clock and
  /// width; 0: unknown to the driver.
  double memory_GBps = 0;
  bool virtual_memory = false;  ///< cuMemCreate and cuMemMap
  bool descriptors = false;     ///< memory can be exported as a POSIX file descriptor
  bool fabric_handles = false;  ///< or as a handle that other nodes of an NVLink domain can import
  bool rdma_of_virtual = false; ///< NICs can access memory of cuMemCreate
  bool dma_buf = false;         ///< memory can be exported to NICs as a dma-buf
  bool host_atomics = false;    ///< native atomics of its kernels on host memory
  /// Scope in which a NIC's writes are ordered without a flush (CUGPUDirectRDMAWritesOrdering): 0
  /// none, 100 this device, 200 all devices.
  int rdma_order = 0;
  bool rdma_flush = false; ///< cuFlushGPUDirectRDMAWrites
  bool cooperative_launch = false;
  bool stream_operations = false;  ///< 64-bit wait and write operations in streams
  bool unified_addressing = false; ///< registered host memory has one address everywhere
};

/// What else the driver has reported about a device, for the two lines of an error; "" for nothing.
struct DriverReport {
  std::string words; ///< "the driver reported Xid 31 (...) on GPU 0000:1b:00.0 ..."
  std::string fix;   ///< set if it is more specific than the fix for CUDA's error code
};

/// Thread safe.
class Driver {
public:
  /// Opens libcuda and calls cuInit, once for each object. Returns nullptr if the driver cannot be
  /// used, or no device is visible.
  /// @param why receives the reason: one clause
  static std::shared_ptr<const Driver> open(const std::string& library_file, std::string& why);
  /// The same with functions that are already loaded.
  static std::shared_ptr<const Driver> start(std::shared_ptr<const Functions> functions,
                                             std::string& why);

  const Functions& call() const { return *functions_; }
  int version() const { return version_; } ///< 13000 is CUDA 13.0
  /// The visible devices, in CUDA's order.
  const std::vector<DeviceInfo>& devices() const { return devices_; }

  /// "CUDA_ERROR_OUT_OF_MEMORY: out of memory".
  std::string text_of(CUresult result) const;
  /// Throws Error (unavailable) unless the result is a success, with the driver's error text and a
  /// fix for this kind of failure.
  /// @param subject   the object of the call: "GPU 3", "64M of GPU memory"
  /// @param attempted the step: "map"
  /// @param where     the location, as far as the subject does not contain it
  void require(CUresult result, const std::string& subject, const std::string& attempted,
               Where where = {}) const;
  /// The Error that require() throws.
  Error error_of(CUresult result, const std::string& subject, const std::string& attempted,
                 Where where, const DriverReport& driver_report = {}) const;
  /// Whether the result indicates a failure of the device or of a kernel on it, as opposed to wrong
  /// arguments or a lack of memory.
  static bool is_of_device(CUresult result);

private:
  explicit Driver(std::shared_ptr<const Functions> functions) : functions_(std::move(functions)) {}
  DeviceInfo describe(int ordinal) const;

  std::shared_ptr<const Functions> functions_;
  int version_ = 0;
  std::vector<DeviceInfo> devices_;
};

} // namespace shmemctl::cuda
