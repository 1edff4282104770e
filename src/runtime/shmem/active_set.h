// Collectives over an active set (OpenSHMEM before 1.5), among its members only, with the work
// array of the caller.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/runtime/reduce_kernels.h"
#include "src/runtime/shmem/world.h"

namespace shmemctl::api {

/// The arguments PE_start, logPE_stride, PE_size and pSync of a collective.
struct ActiveSetArguments {
  int start, log_stride, n_pes;
  long* work;
};

/// Collectives that move data begin with a sync (sources and destinations are ready on all members)
/// and end with one (results are in place). The work array counts arrivals, one word for each round
/// of a dissemination barrier, and each arrival is subtracted again. So it is zero when no member
/// is in a collective, but may already contain arrivals of the next one when this PE leaves.
class ActiveSet {
public:
  /// Throws Error (usage) if the set is invalid.
  ActiveSet(World& world, const ActiveSetArguments& arguments);
  /// Whether this PE is a member. Only members may call the functions below.
  bool member() const { return me_ >= 0; }

  void sync();
  /// Completes this PE's operations on the default context, then syncs.
  void barrier();
  /// The `dest` of the root itself is not written.
  void broadcast(void* dest, const void* source, std::size_t size_bytes, int root);
  void collect(void* dest, const void* source, std::size_t size_bytes);
  void fcollect(void* dest, const void* source, std::size_t size_bytes);
  void alltoall(void* dest, const void* source, std::size_t block_bytes);
  void alltoalls(void* dest, const void* source, std::ptrdiff_t dest_stride,
                 std::ptrdiff_t source_stride, std::size_t nelems, std::size_t element_bytes);
  /// Each member reduces its share of the elements, in the order of members, and puts the result to
  /// all of them. dest == source is legal.
  void reduce(void* dest, const void* source, std::size_t elements, std::size_t element_bytes,
              ReduceKernel combine);

private:
  static constexpr int rounds = limits::sync_rounds;
  static constexpr int published = rounds; ///< the word in which collect() publishes its size
  static_assert(published < SHMEM_SYNC_SIZE);

  int pe(int member) const { return start_ + member * stride_; }
  /// The member at distance +`distance`, modulo the size of the set.
  int neighbour(int distance) const { return (me_ + distance) % n_pes_; }
  std::uint64_t* word(int index) const;
  void put(void* dest, const void* source, std::size_t size_bytes, int member);

  World& world_;
  int start_, stride_, n_pes_, me_;
  long* work_;
};

} // namespace shmemctl::api
