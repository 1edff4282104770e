// A CUDA driver without a GPU, for tests: its devices' memory is host memory that the kernel keeps
// inaccessible until cuMemSetAccess. As strict as the real one about sizes, whole mappings and
// order, and with limits and failures that a test asks for:
//   FAKE_CUDA_DRIVER   which CUDA it supports: 12040 is 12.4 (that of the header)
//   FAKE_CUDA_DEVICES  how many (2)
//   FAKE_CUDA_BYTES    memory of each (1 GiB); what is committed beyond is "out of memory"
//   FAKE_CUDA_FAIL     "cuMemMap:3:700": the third call of that function answers 700
//   FAKE_CUDA_STICKY   what failed once fails from then on, in every call that touches the device
//   FAKE_CUDA_NO_PEER  no device reaches another one
//   FAKE_CUDA_NO_ATOMICS  "0-1": two devices whose link has no native atomics
//   FAKE_CUDA_LACKS    number of a device attribute that is 0 (102: virtual memory)
//   FAKE_CUDA_RDMA_ORDER  for whom a NIC's writes are in order: 0 nobody, 100 the device, 200 all
//   FAKE_CUDA_FABRIC   1: memory can have fabric handles
//   FAKE_CUDA_NO_IMEX  ... but the driver does not permit it
//   FAKE_CUDA_THREADS  it has threads, as the real one has: one from cuInit on, one of each context
//   FAKE_CUDA_STRICT   processors cannot touch the devices' memory at all: only copies can
#include "tests/fake/cuda/state.h"

#include <cstdlib>
#include <cstring>

using namespace fake_cuda;

namespace {

/// Of all parts.
const Functions& table() {
  static const Functions all = [] {
    Functions merged;
    for (const Functions& part : {device_functions(), virtual_memory_functions(),
                                  memory_functions(), pointer_functions(), host_functions()})
      merged.insert(part.begin(), part.end());
    return merged;
  }();
  return all;
}

} // namespace

extern "C" {
CUresult cuDriverGetVersion(int* version) {
  *version = driver_version();
  return CUDA_SUCCESS;
}
/// As the real one, it refuses versions that are newer than its own, and gives the function with
/// the parameters that it has in that version, whatever cuda.h declares.
CUresult cuGetProcAddress_v2(const char* name, void** address, int version, cuuint64_t,
                             CUdriverProcAddressQueryResult* found) {
  if (version > driver_version())
    return CUDA_ERROR_INVALID_VALUE;
  const char* missing = std::getenv("FAKE_CUDA_WITHOUT");
  const bool newer = version >= 13000 && std::strcmp(name, "cuCtxGetDevice") == 0;
  const auto entry = table().find(newer ? "cuCtxGetDevice_v2" : name);
  const bool there = entry != table().end() && (!missing || std::strcmp(missing, name) != 0);
  *address = there ? entry->second : nullptr;
  if (found)
    *found = there ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return there ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
/// For tests: what is still held, as text: "reserved 0 mapped 0 committed 0 ...".
const char* fake_cuda_held() {
  const std::lock_guard lock(mutex);
  static thread_local std::string text;
  std::size_t bytes = 0;
  for (const auto& [device, size] : committed)
    bytes += device >= 0 ? size : 0;
  text = "reserved " + std::to_string(reserved.size()) + " mapped " +
         std::to_string(mapped.size()) + " committed " + std::to_string(bytes) + " allocated " +
         std::to_string(allocated.size()) + " host " + std::to_string(host.size() + pinned.size()) +
         " streams " + std::to_string(streams.size()) + " contexts " + std::to_string(retained);
  if (!events.empty())
    text += " events " + std::to_string(events.size());
  return text.c_str();
}
/// For tests: the next call of each function is its first one (FAKE_CUDA_FAIL).
void fake_cuda_count_anew() {
  const std::lock_guard lock(mutex);
  calls.clear();
}
/// For tests: from now on streams are not done, until they are let go.
void fake_cuda_hold(int on) {
  const std::lock_guard lock(mutex);
  held = on != 0;
}
/// For tests: from now on questions about streams do not return, until they are let go.
void fake_cuda_block(int on) {
  const std::lock_guard lock(mutex);
  blocking = on != 0;
  let_go_on.notify_all();
}
/// For tests: how many do not return now.
int fake_cuda_blocked() {
  const std::lock_guard lock(mutex);
  return blocked;
}
/// For tests: where a processor reaches memory of a device, to do what a kernel would.
void* fake_cuda_reach(void* address) {
  const std::lock_guard lock(mutex);
  std::size_t size = 1;
  return reach(reinterpret_cast<CUdeviceptr>(address), size);
}
/// For the fake NIC: the same, and how many of `size` bytes follow there.
void* fake_cuda_reach_piece(void* address, std::size_t* size) {
  const std::lock_guard lock(mutex);
  return reach(reinterpret_cast<CUdeviceptr>(address), *size);
}
/// For tests: what a program gets by cudaMalloc on the first device.
void* fake_cuda_allocate(std::size_t size) {
  const auto call = [](const char* name) { return table().at(name); };
  CUdeviceptr at = 0;
  CUcontext old = nullptr;
  reinterpret_cast<CUresult (*)(CUcontext)>(call("cuCtxPushCurrent"))(
      reinterpret_cast<CUcontext>(std::uintptr_t{1}));
  reinterpret_cast<CUresult (*)(CUdeviceptr*, std::size_t)>(call("cuMemAlloc"))(&at, size);
  reinterpret_cast<CUresult (*)(CUcontext*)>(call("cuCtxPopCurrent"))(&old);
  return reinterpret_cast<void*>(at);
}
/// For tests: from now on the allocation at this address is managed memory (1) or memory of a pool
/// (2).
void fake_cuda_mark(void* address, int kind) {
  const std::lock_guard lock(mutex);
  CUdeviceptr begin_of = 0;
  if (Mapping* const found = mapping_at(reinterpret_cast<CUdeviceptr>(address), begin_of))
    found->kind = static_cast<MemoryKind>(kind);
}
/// For tests: how often a function was called.
int fake_cuda_calls(const char* name) {
  const std::lock_guard lock(mutex);
  return calls[name];
}
}
