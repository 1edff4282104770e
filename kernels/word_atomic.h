// Launches an atomic on a word of GPU memory, on behalf of the host.
#pragma once

#include <cstdint>
#include <string>

#include "src/abi/op_types.h"

namespace shmemctl {

/// Enqueues a kernel of one thread that performs the operation at system scope.
/// @param word       in memory of the stream's device, or mapped for it; aligned to its size
/// @param size_bytes 4 or 8
/// @param old        receives the old value; host memory that the device maps
/// Returns why the launch failed; "" on success.
std::string launch_word_atomic(void* stream, void* word, AtomicOp op, unsigned size_bytes,
                               std::uint64_t operand, std::uint64_t compare, std::uint64_t* old);

} // namespace shmemctl
