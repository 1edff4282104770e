#include "transports/mlx5/soft/outcome.h"

namespace shmemctl::mlx5 {

const char* text_of(SoftCause cause) {
  switch (cause) {
  case SoftCause::none:
    return "";
  case SoftCause::wrong_index:
    return "the WQE's index is not that of its position: not written, or overwritten";
  case SoftCause::wrong_queue:
    return "the WQE names another QP";
  case SoftCause::unknown_opcode:
    return "the WQE's opcode is not one of a reliable connection";
  case SoftCause::bad_size:
    return "the WQE's size does not fit its opcode";
  case SoftCause::behind_producer:
    return "the WQE extends beyond the doorbell record's index";
  case SoftCause::bad_modifier:
    return "the atomic's modifier names no size of 4 or 8 bytes";
  case SoftCause::bad_inline:
    return "inline data is longer than its WQE, or is in place of a result";
  case SoftCause::message_too_long:
    return "the message is longer than 1 GiB";
  case SoftCause::bad_result_piece:
    return "an atomic's result needs one piece of the operand's size";
  case SoftCause::unknown_lkey:
    return "no memory is registered under this local key";
  case SoftCause::lkey_bounds:
    return "the local piece is outside of the memory of its key";
  case SoftCause::lkey_access:
    return "the local key does not allow writing";
  case SoftCause::unknown_rkey:
    return "no memory is registered under this remote key";
  case SoftCause::rkey_bounds:
    return "the remote address is outside of the memory of its key";
  case SoftCause::rkey_access:
    return "the remote key does not allow the operation";
  case SoftCause::misaligned:
    return "the atomic's address is not aligned to its size";
  case SoftCause::queue_overrun:
    return "the doorbell record is further ahead than the queue is long";
  case SoftCause::not_connected:
    return "the queue is not connected";
  case SoftCause::transport:
    return "the transport below failed";
  case SoftCause::gpu_memory:
    return "memory of a GPU, which the software does not reach here";
  case SoftCause::injected:
    return "a failure that was asked for";
  case SoftCause::flushed:
    return "an earlier WQE failed";
  }
  return "";
}

} // namespace shmemctl::mlx5
