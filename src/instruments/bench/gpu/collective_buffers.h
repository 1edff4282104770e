// The layout and the expected contents of the buffers of kernels' collectives. Needs no GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/bench/collectives.h"
#include "src/instruments/bench/case.h"
#include "src/instruments/bench/cases/pattern.h"

namespace shmemctl::bench {

/// The buffers: source (with room for its variants), dest, a line that no PE writes to, and the
/// lists of alltoallv.
struct CollectiveBuffers {
  CollectiveKernel kernel;
  std::size_t size_bytes;
  int n_pes;

  std::size_t all() const { return static_cast<std::size_t>(n_pes) * size_bytes; }
  bool is_exchange() const {
    return kernel == CollectiveKernel::alltoall || kernel == CollectiveKernel::alltoallv;
  }
  /// Size of each PE's source data.
  std::size_t source_data_bytes() const {
    return is_exchange() || kernel == CollectiveKernel::reducescatter ? all() : size_bytes;
  }
  std::size_t dest_data_bytes() const {
    return is_exchange() || kernel == CollectiveKernel::fcollect ? all() : size_bytes;
  }
  std::size_t dest_offset_bytes() const { return source_bytes(source_data_bytes()); }
  std::size_t dest_bytes() const { return (dest_data_bytes() + 64 + 63) / 64 * 64; }
  std::size_t lists_offset_bytes() const { return dest_offset_bytes() + dest_bytes(); }
  std::size_t total_bytes() const {
    return lists_offset_bytes() +
           (kernel == CollectiveKernel::alltoallv ? 3 * static_cast<std::size_t>(n_pes) * 8 : 0);
  }

  /// The size of the block that PE `from` sends to PE `to`: for alltoallv, the whole size or half
  /// of it.
  std::size_t block_bytes(int from, int to) const {
    return kernel == CollectiveKernel::alltoallv && (from + to) % 2 == 1 ? (size_bytes + 1) / 2
                                                                         : size_bytes;
  }
  /// The bytes that a PE contributes, each counted once.
  std::uint64_t payload_bytes(int pe) const;
  LeastTraffic min_traffic(const std::vector<int>& gpu_of_pe) const;
  /// The lists of that PE for alltoallv, each by receiver: sizes, offsets in the source, offsets in
  /// the dest.
  std::vector<std::uint64_t> lists(int pe) const;

  /// A contiguous part of the result of a collective that moves data.
  struct Part {
    int writer;
    /// at: offset in the dest; from: offset in the writer's source.
    std::size_t at, from, size_bytes;
  };
  std::vector<Part> parts(int pe) const;
};

std::size_t width_of(CollectiveNumber number); ///< in bytes

/// The bits of element `index` of a PE's source. For int64, the words of the pattern. For floating
/// point, whole numbers that the type represents exactly, and whose sums are exact in 32 bits. Most
/// sums of bf16 and fp16 are not representable, so that the result shows how it was rounded.
std::uint64_t source_bits(CollectiveNumber number, std::uint64_t seed, int pe, std::uint64_t index);
/// The bits of the sum of all PEs' elements `index`. int64 wraps around; bf16 and fp16 are added up
/// as 32-bit floats in the order of the PEs and rounded once, to nearest, ties to even.
std::uint64_t sum_bits(CollectiveNumber number, std::uint64_t seed, int n_pes, std::uint64_t index);

/// Rounds to nearest, ties to even; numbers that are too large become infinite.
std::uint16_t fp16_of_float(float value);

} // namespace shmemctl::bench
