// libcuda, opened at run time: its functions as a table, which tests can replace. Contains what
// this binary calls, in the versions of the toolkit's header.
#pragma once

#include <cuda.h>

#include <memory>
#include <optional>
#include <string>

#include "src/base/dynamic_library.h"

namespace shmemctl::cuda {

/// SHMEMCTL_CUDA_FUNCTION(member, name): one line for each function of the driver.
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

  std::optional<DynamicLibrary> library; ///< what they belong to
};

/// Opens the library and asks cuGetProcAddress for every function; does not call cuInit.
/// @param file "libcuda.so.1"
/// @param why  receives the reason if it cannot be used: one clause
/// Returns nullptr then.
std::shared_ptr<const Functions> load_functions(const std::string& file, std::string& why);

} // namespace shmemctl::cuda
