// What the made-up driver says of an address.
#include "tests/fake/cuda/state.h"

#include <cstring>

namespace fake_cuda {

namespace {

template <class Value>
CUresult answer(void* place, Value value) {
  std::memcpy(place, &value, sizeof value);
  return CUDA_SUCCESS;
}

CUresult pointer_attribute(void* value, CUpointer_attribute which, CUdeviceptr at) {
  BEGIN(cuPointerGetAttribute)
  NEED_CONTEXT
  CUdeviceptr begin_of = 0;
  const Mapping* const found = mapping_at(at, begin_of);
  if (!found) // the host's, of which it knows nothing
    return CUDA_ERROR_INVALID_VALUE;
  const bool in_one_piece = allocated.count(begin_of) != 0;
  switch (which) {
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    return answer(value, CU_MEMORYTYPE_DEVICE);
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    return answer(value, found->memory->device);
  case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    return answer<unsigned long long>(value, found->id);
  case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    return answer<int>(value, found->kind == MemoryKind::managed);
  case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    return answer(value, reinterpret_cast<CUmemoryPool>(
                             std::uintptr_t{found->kind == MemoryKind::pool ? 0x700u : 0u}));
  case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    return answer<int>(value, in_one_piece && found->kind == MemoryKind::plain);
  default:
    return CUDA_ERROR_NOT_SUPPORTED;
  }
}
CUresult address_range(CUdeviceptr* base, std::size_t* size, CUdeviceptr at) {
  BEGIN(cuMemGetAddressRange)
  NEED_CONTEXT
  CUdeviceptr begin_of = 0;
  const Mapping* const found = mapping_at(at, begin_of);
  if (!found)
    return CUDA_ERROR_NOT_FOUND;
  *base = begin_of;
  *size = found->size;
  return CUDA_SUCCESS;
}

} // namespace

Functions pointer_functions() {
  return {
      ENTRY("cuPointerGetAttribute", pointer_attribute),
      ENTRY("cuMemGetAddressRange", address_range),
  };
}

} // namespace fake_cuda
