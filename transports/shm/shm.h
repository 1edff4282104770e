// Loads and stores into memory that another process of this node has shared.
#pragma once

#include <memory>

#include "transports/transport.h"

namespace shmemctl {

std::unique_ptr<Transport> make_shm_transport();

/// memcpy for the heap: one atomic store (release) for an aligned word of 1, 2, 4 or 8 bytes, plain
/// up to half of the last cache, non-temporal stores above that (they keep the target's lines out
/// of this core's cache). Ends with a store fence when it used them. The ranges must not overlap,
/// unless equal.
void copy_to_shared(void* target, const void* source, std::size_t size_bytes);

/// Executes `request` on memory mapped here with the processor's own atomics.
std::uint64_t execute_atomic(void* target, const AtomicRequest& request);

} // namespace shmemctl
