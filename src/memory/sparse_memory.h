// Shared memory of which little is used.
#pragma once

#include <cstddef>
#include <memory>

#include "src/memory/backing.h"

namespace shmemctl {

/// Memory for what is much larger than what is used of it, of small pages: zeroed, `used_bytes` of
/// it will be written at once, and the rest takes no memory until somebody touches it. A lack of
/// memory then is the kernel's to answer, as for private memory. Where its answer would be a SIGBUS
/// (/dev/shm has a size of its own) all of it is committed. Throws Error (unavailable).
/// @param backing of host memory: says of which kind
std::unique_ptr<Chunk> create_sparse(HeapBacking& backing, std::size_t size_bytes,
                                     std::size_t used_bytes);

} // namespace shmemctl
