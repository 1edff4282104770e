// Random programs of collectives, and what each has to bring: run by kernels on GPUs and by threads
// of the host.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "src/abi/op_types.h"

namespace shmemctl::test {

/// One collective of a program.
struct Call {
  enum Kind {
    broadcast,
    fcollect,
    alltoall,
    alltoallv,
    collect,
    alltoalls,
    reduce,
    reducescatter,
    sync,
    kinds
  };
  /// Types of numbers.
  enum Type {
    int32,
    int64,
    float32,
    bf16,
    fp16,
    float64,
    int8,
    int16,
    uint8,
    uint16,
    uint32,
    uint64,
    types
  };
  Kind kind;
  int team, root, type;
  device::ReduceOp op;
  std::size_t size;     ///< bytes, or numbers
  std::size_t to, from; ///< offsets in bytes
};

/// `most`: bytes from each member to each; mostly few. Teams are 0 to 2.
inline std::vector<Call> random_calls(unsigned seed, int count, std::size_t most) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  std::vector<Call> calls;
  for (int i = 0; i < count; ++i) {
    Call call{};
    call.kind = static_cast<Call::Kind>(below(Call::kinds));
    call.team = static_cast<int>(below(3));
    call.root = static_cast<int>(below(8));
    call.type = static_cast<int>(below(Call::types));
    const bool is_whole =
        call.type == Call::int32 || call.type == Call::int64 || call.type >= Call::int8;
    call.op = static_cast<device::ReduceOp>(below(is_whole ? 7 : 4));
    const std::size_t largest = call.kind >= Call::reduce ? most / 8 : most;
    call.size = 1 + below(below(4) == 0 ? largest : 64);
    call.to = below(3) == 0 ? below(64) : 0;
    call.from = below(3) == 0 ? below(64) : 0;
    calls.push_back(call);
  }
  return calls;
}

} // namespace shmemctl::test
