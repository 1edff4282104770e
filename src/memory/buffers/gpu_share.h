// Registered memory of a GPU, as its owner hands it to other processes of the machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/file_descriptor.h"

namespace shmemctl {

/// What a registered buffer is made of, and how other processes map it.
enum class BufferMemory : std::uint32_t {
  host,            ///< pages of files
  gpu_descriptors, ///< of a GPU (cuMemCreate): a descriptor for each allocation
  gpu_handle,      ///< of a GPU (cudaMalloc): CUDA's handle of one allocation
  gpu_unshared     ///< of a GPU: not at all, there is a reason
};

/// One allocation (or mapping of one) that a buffer touches.
struct GpuPiece {
  std::uint64_t begin = 0; ///< in the owner's address space
  std::uint64_t size_bytes = 0;
  std::uint64_t id = 0; ///< CUDA's, which it never gives again; 0 if it has none
  bool operator==(const GpuPiece&) const = default;
};

/// Holds what was exported until the buffer is unregistered.
struct GpuShare {
  BufferMemory memory = BufferMemory::gpu_unshared;
  std::string device;                ///< uuid
  std::vector<GpuPiece> pieces;      ///< ascending, without a gap; the first holds the first byte
  std::vector<FileDescriptor> files; ///< by piece, of gpu_descriptors
  std::string handle;                ///< of gpu_handle
  std::string reason;                ///< why that way, or why none: one clause
};

} // namespace shmemctl
