// The result of an operation of the emulated HCA, and the cause of a failure.
#pragma once

#include "src/abi/cqe.h"

namespace shmemctl::mlx5 {

/// Causes of failures of the emulated HCA, which it reports as vendor syndromes.
enum class EmulatedFault : std::uint8_t {
  none,
  wrong_index,
  wrong_queue,
  unknown_opcode,
  bad_size,
  behind_producer,
  bad_modifier,
  bad_inline,
  message_too_long,
  bad_result_piece,
  unknown_lkey,
  lkey_bounds,
  lkey_access,
  unknown_rkey,
  rkey_bounds,
  rkey_access,
  misaligned,
  queue_overrun,
  not_connected,
  transport,
  gpu_memory,
  injected,
  flushed
};

/// One clause, for error messages.
const char* text_of(EmulatedFault cause);

struct Outcome {
  Syndrome syndrome = Syndrome::none;
  EmulatedFault cause = EmulatedFault::none;

  /// True if the operation failed.
  explicit operator bool() const { return syndrome != Syndrome::none; }
};

} // namespace shmemctl::mlx5
