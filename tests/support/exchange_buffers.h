// Descriptors of registered buffers, told to all PEs; patterns that tell PEs and places apart.
#pragma once

#include <vector>

#include "src/runtime/buffers.h"
#include "src/runtime/runtime.h"

namespace shmemctl::test {

/// Every PE's descriptor, at every PE.
inline std::vector<BufferDescriptor> exchange(Runtime& runtime, const BufferDescriptor& mine) {
  const auto count = static_cast<std::size_t>(runtime.n_pes());
  auto* all = static_cast<BufferDescriptor*>(
      runtime.allocate(count * sizeof(BufferDescriptor), alignof(BufferDescriptor)));
  for (int pe = 0; pe < runtime.n_pes(); ++pe)
    runtime.rma().put(all + runtime.pe(), &mine, sizeof mine, pe);
  runtime.collectives().barrier(team_world);
  std::vector<BufferDescriptor> descriptors(all, all + count);
  runtime.free(all);
  return descriptors;
}

} // namespace shmemctl::test
