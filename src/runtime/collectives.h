// Host collectives on any team. They use only one-sided operations, so they work on any transport.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/runtime/teams.h"

namespace shmemctl {

enum class ElementType : std::uint8_t {
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float32,
  float64,
  long_double,
  complex_float,
  complex_double
};
std::size_t element_bytes(ElementType type);

enum class ReduceOp : std::uint8_t { bit_and, bit_or, bit_xor, minimum, maximum, sum, product };

/// `source` and `target` are symmetric addresses. Each call is collective over the team. All except
/// barrier() begin with a sync (buffers are ready on all members) and end with one (results are in
/// place). `size_bytes` is that of one PE's contribution; all sizes may be 0. Reductions combine
/// members in team order, so that every PE gets the same bits. Calls throw Error (usage) on PEs
/// that are not members, and the transports' errors. See docs/explanation/teams.md.
class Collectives {
public:
  explicit Collectives(Teams& teams) : teams_(teams) {}

  /// Completes this PE's puts of context 0, then syncs (shmem_barrier_all on the world team).
  void barrier(TeamId team);
  /// Also writes the root's target. In place (target == source) is allowed.
  void broadcast(TeamId team, void* target, const void* source, std::size_t size_bytes, int root);
  /// Concatenates contributions of any size in team order. A contribution may already be at its
  /// final position in the target; otherwise the buffers must not overlap.
  void collect(TeamId team, void* target, const void* source, std::size_t size_bytes);
  void fcollect(TeamId team, void* target, const void* source, std::size_t size_bytes);
  void alltoall(TeamId team, void* target, const void* source, std::size_t block_bytes);
  /// As in OpenSHMEM, strides are in elements and at least 1: element i of block b is at
  /// (b * elements + i) * stride.
  void alltoalls(TeamId team, void* target, const void* source, std::ptrdiff_t target_stride,
                 std::ptrdiff_t source_stride, std::size_t elements, std::size_t element_bytes);
  /// In place (target == source) is allowed. Returns false, without communication, if the operation
  /// is not defined for the type.
  bool reduce(TeamId team, void* target, const void* source, std::size_t elements, ElementType type,
              ReduceOp op);
  /// Member i gets elements [i * elements, (i + 1) * elements) of the reduction. The target may be
  /// exactly these elements of the source; otherwise the buffers must not overlap. Returns false as
  /// reduce() does.
  bool reduce_scatter(TeamId team, void* target, const void* source, std::size_t elements,
                      ElementType type, ReduceOp op);

private:
  void broadcast_by_tree(TeamId team, void* target, const void* source, std::size_t size_bytes,
                         int root);
  void broadcast_by_parts(TeamId team, void* target, const void* source, std::size_t size_bytes,
                          int root);
  void reduce_large(TeamId team, std::byte* target, const std::byte* source, std::size_t elements,
                    std::size_t element_size, void (*kernel)(void*, const void*, std::size_t));
  void put_to_all(TeamId team, std::byte* target, const std::byte* source, std::size_t size_bytes);

  Teams& teams_;
};

} // namespace shmemctl
