#include "transports/mlx5/emulated/outcome.h"

namespace shmemctl::mlx5 {

const char* text_of(EmulatedFault cause) {
  switch (cause) {
  case EmulatedFault::none:
    return "";
  case EmulatedFault::wrong_index:
    return "the WQE's index is not that of its position: not written, or overwritten";
  case EmulatedFault::wrong_queue:
    return "the WQE names another QP";
  case EmulatedFault::unknown_opcode:
    return "the WQE's opcode is not one of a reliable connection";
  case EmulatedFault::bad_size:
    return "the WQE's size does not fit its opcode";
  case EmulatedFault::behind_producer:
    return "the WQE extends beyond the doorbell record's index";
  case EmulatedFault::bad_modifier:
    return "the atomic's modifier names no size of 4 or 8 bytes";
  case EmulatedFault::bad_inline:
    return "inline data is longer than its WQE, or is in place of a result";
  case EmulatedFault::message_too_long:
    return "the message is longer than 1 GiB";
  case EmulatedFault::bad_result_piece:
    return "an atomic's result needs one piece of the operand's size";
  case EmulatedFault::unknown_lkey:
    return "no memory is registered under this local key";
  case EmulatedFault::lkey_bounds:
    return "the local piece is outside of the memory of its key";
  case EmulatedFault::lkey_access:
    return "the local key does not allow writing";
  case EmulatedFault::unknown_rkey:
    return "no memory is registered under this remote key";
  case EmulatedFault::rkey_bounds:
    return "the remote address is outside of the memory of its key";
  case EmulatedFault::rkey_access:
    return "the remote key does not allow the operation";
  case EmulatedFault::misaligned:
    return "the atomic's address is not aligned to its size";
  case EmulatedFault::queue_overrun:
    return "the doorbell record is further ahead than the queue is long";
  case EmulatedFault::not_connected:
    return "the queue is not connected";
  case EmulatedFault::transport:
    return "the transport below failed";
  case EmulatedFault::gpu_memory:
    return "memory of a GPU, which the emulated HCA does not reach here";
  case EmulatedFault::injected:
    return "a failure that was asked for";
  case EmulatedFault::flushed:
    return "an earlier WQE failed";
  }
  return "";
}

} // namespace shmemctl::mlx5
