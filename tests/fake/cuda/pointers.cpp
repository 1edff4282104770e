// What the fake driver says of an address.
#include "tests/fake/cuda/state.h"

#include <cstdlib>
#include <cstring>

namespace fake_cuda {

namespace {

template <class Value>
void answer(void* place, Value value) {
  std::memcpy(place, &value, sizeof value);
}

/// Zeros of what it does not know.
void attribute_of(void* value, CUpointer_attribute which, const Mapping* found, bool in_one_piece) {
  switch (which) {
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    return answer(value, found ? CU_MEMORYTYPE_DEVICE : CUmemorytype{});
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    return answer<int>(value, found ? found->memory->device : 0);
  case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    return answer<unsigned long long>(value, found ? found->id : 0);
  case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    return answer<int>(value, found && found->kind == MemoryKind::managed);
  case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    return answer(value, found && found->kind == MemoryKind::pool
                             ? reinterpret_cast<CUmemoryPool>(std::uintptr_t{0x700})
                             : nullptr);
  case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    return answer<int>(value, found && in_one_piece && found->kind == MemoryKind::plain);
  default:
    std::abort(); // nobody asks for it
  }
}
CUresult pointer_attributes(unsigned count, CUpointer_attribute* which, void** values,
                            CUdeviceptr at) {
  BEGIN(cuPointerGetAttributes)
  NEED_CONTEXT
  CUdeviceptr begin_of = 0;
  const Mapping* const found = mapping_at(at, begin_of); // none: the host's
  for (unsigned i = 0; i < count; ++i)
    attribute_of(values[i], which[i], found, found && allocated.count(begin_of) != 0);
  return CUDA_SUCCESS;
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
      ENTRY("cuPointerGetAttributes", pointer_attributes),
      ENTRY("cuMemGetAddressRange", address_range),
  };
}

} // namespace fake_cuda
