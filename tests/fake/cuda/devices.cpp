// Devices, contexts and streams of the fake driver.
#include "tests/fake/cuda/state.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/fake/thread.h"

namespace fake_cuda {

namespace {

CUresult init(unsigned flags) {
  BEGIN(cuInit)
  initialized = true;
  if (std::getenv("FAKE_CUDA_THREADS"))
    fake_start_thread("fake-driver");
  return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult get_version(int* version) {
  *version = fake_cuda::driver_version(); // before cuInit too
  return CUDA_SUCCESS;
}
CUresult error_name(CUresult error, const char** text) {
  *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
  return CUDA_SUCCESS;
}
CUresult error_string(CUresult error, const char** text) {
  *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "a failure that a test asked for";
  return CUDA_SUCCESS;
}
CUresult device_get(CUdevice* device, int ordinal) {
  BEGIN(cuDeviceGet)
  *device = ordinal;
  return ordinal >= 0 && ordinal < devices() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult device_count(int* count) {
  BEGIN(cuDeviceGetCount)
  *count = devices();
  return CUDA_SUCCESS;
}
CUresult attribute(int* value, CUdevice_attribute which, CUdevice) {
  BEGIN(cuDeviceGetAttribute)
  if (number("FAKE_CUDA_LACKS", -1) == static_cast<long>(which)) {
    *value = 0;
    return CUDA_SUCCESS;
  }
  switch (which) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = 9;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = 0;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
    *value = static_cast<int>(number("FAKE_CUDA_FABRIC", 0));
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING: // an H200's
    *value =
        static_cast<int>(number("FAKE_CUDA_RDMA_ORDER", CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER));
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    *value = 132;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: // an H100's: 3352 GB/s
    *value = 2619000;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
    *value = 5120;
    return CUDA_SUCCESS;
  default:
    *value = 1;
    return CUDA_SUCCESS;
  }
}
CUresult device_name(char* name, int length, CUdevice device) {
  BEGIN(cuDeviceGetName)
  std::snprintf(name, static_cast<std::size_t>(length), "Fake GPU %d", device);
  return CUDA_SUCCESS;
}
CUresult bus_id(char* text, int length, CUdevice device) {
  BEGIN(cuDeviceGetPCIBusId)
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02X:00.0", 0x1a + device);
  return CUDA_SUCCESS;
}
CUresult device_uuid(CUuuid* uuid, CUdevice device) {
  BEGIN(cuDeviceGetUuid)
  std::memset(uuid, 0, sizeof *uuid);
  uuid->bytes[15] = static_cast<char>(device + 1);
  return CUDA_SUCCESS;
}
CUresult can_access(int* yes, CUdevice a, CUdevice b) {
  BEGIN(cuDeviceCanAccessPeer)
  *yes = a != b && !std::getenv("FAKE_CUDA_NO_PEER");
  return CUDA_SUCCESS;
}
CUresult p2p_attribute(int* value, CUdevice_P2PAttribute which, CUdevice a, CUdevice b) {
  BEGIN(cuDeviceGetP2PAttribute)
  const char* const without = std::getenv("FAKE_CUDA_NO_ATOMICS");
  const std::string pair = std::to_string(std::min(a, b)) + "-" + std::to_string(std::max(a, b));
  *value = which == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED && without != nullptr &&
                   pair == without
               ? 0
               : 1;
  return CUDA_SUCCESS;
}
CUresult total_mem(std::size_t* bytes, CUdevice) {
  BEGIN(cuDeviceTotalMem)
  *bytes = static_cast<std::size_t>(number("FAKE_CUDA_BYTES", 1l << 30));
  return CUDA_SUCCESS;
}
CUresult retain(CUcontext* context, CUdevice device) {
  BEGIN(cuDevicePrimaryCtxRetain)
  ++retained;
  if (std::getenv("FAKE_CUDA_THREADS"))
    fake_start_thread("fake-context");
  *context = reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(device) + 1);
  return CUDA_SUCCESS;
}
CUresult release(CUdevice) {
  BEGIN(cuDevicePrimaryCtxRelease)
  --retained;
  return CUDA_SUCCESS;
}
CUresult push(CUcontext context) {
  BEGIN(cuCtxPushCurrent)
  contexts.push_back(context);
  return CUDA_SUCCESS;
}
CUresult pop(CUcontext* context) {
  BEGIN(cuCtxPopCurrent)
  NEED_CONTEXT
  *context = contexts.back();
  contexts.pop_back();
  return CUDA_SUCCESS;
}
CUresult set_current(CUcontext context) {
  BEGIN(cuCtxSetCurrent)
  if (!contexts.empty())
    contexts.pop_back();
  if (context)
    contexts.push_back(context);
  return CUDA_SUCCESS;
}
CUresult get_current(CUcontext* context) {
  BEGIN(cuCtxGetCurrent)
  *context = contexts.empty() ? nullptr : contexts.back();
  return CUDA_SUCCESS;
}
CUresult get_current_device(CUdevice* device) {
  BEGIN(cuCtxGetDevice)
  NEED_CONTEXT
  *device = static_cast<CUdevice>(reinterpret_cast<std::uintptr_t>(contexts.back())) - 1;
  return CUDA_SUCCESS;
}
/// Since CUDA 13 with a context as a second argument. A caller who passes one argument crashes in
/// the real driver, which reads a pointer from whatever is in the register: so it does here.
/// Nothing in this project passes a context.
CUresult get_device_of_context(CUdevice*, CUcontext) {
  std::fputs("fake CUDA driver: cuCtxGetDevice of CUDA 13 was called, which takes a context\n",
             stderr);
  std::abort();
}
/// A module or library of the fake is what a test points at: its one variable.
struct Variable {
  const char* name;
  void* address;
  std::size_t size;
};
CUresult get_global(CUdeviceptr* address, std::size_t* size, const Variable* of, const char* name) {
  if (std::strcmp(of->name, name) != 0)
    return CUDA_ERROR_NOT_FOUND;
  *address = reinterpret_cast<CUdeviceptr>(of->address);
  *size = of->size;
  return CUDA_SUCCESS;
}
CUresult module_get_global(CUdeviceptr* address, std::size_t* size, CUmodule module,
                           const char* name) {
  BEGIN(cuModuleGetGlobal)
  return get_global(address, size, reinterpret_cast<const Variable*>(module), name);
}
CUresult library_get_global(CUdeviceptr* address, std::size_t* size, CUlibrary library,
                            const char* name) {
  BEGIN(cuLibraryGetGlobal)
  return get_global(address, size, reinterpret_cast<const Variable*>(library), name);
}
CUresult priorities(int* least, int* greatest) {
  BEGIN(cuCtxGetStreamPriorityRange)
  NEED_CONTEXT
  *least = 0;
  *greatest = -5;
  return CUDA_SUCCESS;
}
CUresult stream_create(CUstream* stream, unsigned flags, int priority) {
  BEGIN(cuStreamCreateWithPriority)
  NEED_CONTEXT
  if (priority != -5 || flags != CU_STREAM_NON_BLOCKING)
    return CUDA_ERROR_INVALID_VALUE;
  streams.insert(next_stream);
  *stream = reinterpret_cast<CUstream>(next_stream++);
  return CUDA_SUCCESS;
}
CUresult stream_destroy(CUstream stream) {
  BEGIN(cuStreamDestroy)
  NEED_STREAM(stream)
  streams.erase(reinterpret_cast<std::uintptr_t>(stream));
  return CUDA_SUCCESS;
}
CUresult stream_synchronize(CUstream stream) {
  std::unique_lock lock(mutex);
  if (const CUresult failure = begin("cuStreamSynchronize"); failure != CUDA_SUCCESS)
    return failure;
  NEED_STREAM(stream)
  return CUDA_SUCCESS;
}
CUresult stream_query(CUstream stream) {
  std::unique_lock lock(mutex);
  if (const CUresult failure = begin("cuStreamQuery"); failure != CUDA_SUCCESS)
    return failure;
  NEED_STREAM(stream)
  ++blocked;
  let_go_on.wait(lock, [] { return !blocking; });
  --blocked;
  return held ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

// Copies are done when they return: so is what an event marks, and nobody has to wait for it.
CUresult event_create(CUevent* event, unsigned flags) {
  BEGIN(cuEventCreate)
  NEED_CONTEXT
  if (flags != CU_EVENT_DEFAULT && flags != CU_EVENT_DISABLE_TIMING)
    return CUDA_ERROR_INVALID_VALUE;
  events[next_event].timed = flags == CU_EVENT_DEFAULT;
  *event = reinterpret_cast<CUevent>(next_event++);
  return CUDA_SUCCESS;
}
CUresult event_destroy(CUevent event) {
  BEGIN(cuEventDestroy)
  return events.erase(reinterpret_cast<std::uintptr_t>(event)) == 1 ? CUDA_SUCCESS
                                                                    : CUDA_ERROR_INVALID_HANDLE;
}
CUresult event_record(CUevent event, CUstream stream) {
  BEGIN(cuEventRecord)
  NEED_CONTEXT
  NEED_STREAM(stream)
  const auto found = events.find(reinterpret_cast<std::uintptr_t>(event));
  if (found == events.end())
    return CUDA_ERROR_INVALID_HANDLE;
  found->second.at_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                            std::chrono::steady_clock::now().time_since_epoch())
                            .count();
  return CUDA_SUCCESS;
}
CUresult stream_wait_event(CUstream stream, CUevent event, unsigned flags) {
  BEGIN(cuStreamWaitEvent)
  NEED_CONTEXT
  NEED_STREAM(stream)
  return flags == 0 && events.count(reinterpret_cast<std::uintptr_t>(event)) == 1
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_HANDLE;
}
CUresult event_elapsed_time(float* ms, CUevent first, CUevent second) {
  BEGIN(cuEventElapsedTime)
  const auto from = events.find(reinterpret_cast<std::uintptr_t>(first));
  const auto to = events.find(reinterpret_cast<std::uintptr_t>(second));
  for (const auto& event : {from, to})
    if (event == events.end() || !event->second.timed || event->second.at_ns < 0)
      return CUDA_ERROR_INVALID_HANDLE;
  constexpr double ns_per_ms = 1e6;
  *ms = static_cast<float>(static_cast<double>(to->second.at_ns - from->second.at_ns) / ns_per_ms);
  return CUDA_SUCCESS;
}

CUresult flush_writes(CUflushGPUDirectRDMAWritesTarget, CUflushGPUDirectRDMAWritesScope scope) {
  BEGIN(cuFlushGPUDirectRDMAWrites)
  NEED_CONTEXT
  return scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER ||
                 scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}
CUresult mem_info(std::size_t* free_bytes, std::size_t* total) {
  BEGIN(cuMemGetInfo)
  *total = static_cast<std::size_t>(number("FAKE_CUDA_BYTES", 1l << 30));
  *free_bytes = *total - committed[0];
  return CUDA_SUCCESS;
}

} // namespace

Functions device_functions() {
  return {
      ENTRY("cuInit", init),
      ENTRY("cuDriverGetVersion", get_version),
      ENTRY("cuGetErrorName", error_name),
      ENTRY("cuGetErrorString", error_string),
      ENTRY("cuDeviceGet", device_get),
      ENTRY("cuDeviceGetCount", device_count),
      ENTRY("cuDeviceGetAttribute", attribute),
      ENTRY("cuDeviceGetName", device_name),
      ENTRY("cuDeviceGetPCIBusId", bus_id),
      ENTRY("cuDeviceGetUuid", device_uuid),
      ENTRY("cuDeviceCanAccessPeer", can_access),
      ENTRY("cuDeviceGetP2PAttribute", p2p_attribute),
      ENTRY("cuDeviceTotalMem", total_mem),
      ENTRY("cuDevicePrimaryCtxRetain", retain),
      ENTRY("cuDevicePrimaryCtxRelease", release),
      ENTRY("cuCtxPushCurrent", push),
      ENTRY("cuCtxPopCurrent", pop),
      ENTRY("cuCtxGetStreamPriorityRange", priorities),
      ENTRY("cuStreamCreateWithPriority", stream_create),
      ENTRY("cuStreamDestroy", stream_destroy),
      ENTRY("cuStreamSynchronize", stream_synchronize),
      ENTRY("cuStreamQuery", stream_query),
      ENTRY("cuStreamWaitEvent", stream_wait_event),
      ENTRY("cuEventCreate", event_create),
      ENTRY("cuEventDestroy", event_destroy),
      ENTRY("cuEventRecord", event_record),
      ENTRY("cuEventElapsedTime", event_elapsed_time),
      ENTRY("cuMemGetInfo", mem_info),
      ENTRY("cuFlushGPUDirectRDMAWrites", flush_writes),
      ENTRY("cuCtxSetCurrent", set_current),
      ENTRY("cuCtxGetCurrent", get_current),
      ENTRY("cuCtxGetDevice", get_current_device),
      ENTRY("cuCtxGetDevice_v2", get_device_of_context),
      ENTRY("cuModuleGetGlobal", module_get_global),
      ENTRY("cuLibraryGetGlobal", library_get_global),
  };
}

} // namespace fake_cuda
