#include "transports/mlx5/syndrome_text.h"

#include <fmt/format.h>

#include "src/abi/cqe.h"
#include "src/abi/mlx5_format.h"

namespace shmemctl::mlx5 {

namespace {

constexpr const char* report = "report this as a bug in shmemctl, with the command line";

} // namespace

SyndromeText syndrome_text(std::uint8_t syndrome) {
  switch (static_cast<Syndrome>(syndrome)) {
  case Syndrome::none:
    return {"no error", report};
  case Syndrome::local_length:
    return {"local length error", report};
  case Syndrome::local_operation:
    return {"local queue operation error", report};
  case Syndrome::local_protection:
    return {"local protection error",
            "use memory that is registered: symmetric memory, or a registered buffer"};
  case Syndrome::flushed:
    return {"flushed: an earlier operation of this queue failed", "check the first error"};
  case Syndrome::memory_window:
    return {"memory window bind error", report};
  case Syndrome::bad_response:
    return {"bad response error", "check the peer's device and the error counters of the fabric; "
                                  "update the firmware on both sides"};
  case Syndrome::local_access:
    return {"local access error", report};
  case Syndrome::remote_invalid_request:
    return {"remote invalid request error",
            "check that the address of an atomic is aligned to its size, and that both ends have "
            "the same limits of outstanding reads"};
  case Syndrome::remote_access:
    return {"remote access error",
            "check that the peer has not freed the memory, and that the address is inside of it"};
  case Syndrome::remote_operation:
    return {"remote operation error", "check the kernel log and the NIC's counters on the peer"};
  case Syndrome::retries_exceeded:
    return {"transport retry counter exceeded",
            "check that the peer still runs, the link and the route to it, and on Ethernet "
            "PFC, MTU and GID index at both ends"};
  case Syndrome::receiver_not_ready:
    return {"receiver not ready retry counter exceeded", "check that the peer still runs"};
  case Syndrome::remote_aborted:
    return {"remote aborted error", "check the first error of the peer"};
  }
  return {fmt::format("unknown syndrome {:#04x}", syndrome),
          "look up the syndrome in the device's manual, and check its counters"};
}

std::string opcode_text(std::uint8_t opcode) {
  switch (static_cast<Opcode>(opcode)) {
  case Opcode::nop:
    return "NOP";
  case Opcode::rdma_write:
    return "RDMA WRITE";
  case Opcode::rdma_read:
    return "RDMA READ";
  case Opcode::atomic_cs:
  case Opcode::atomic_masked_cs:
    return "atomic compare and swap";
  case Opcode::atomic_fa:
  case Opcode::atomic_masked_fa:
    return "atomic fetch and add";
  }
  return fmt::format("operation {:#04x}", opcode);
}

} // namespace shmemctl::mlx5
