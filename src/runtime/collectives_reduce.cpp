// Reductions.
#include <algorithm>
#include <cstring>
#include <vector>

#include "src/runtime/collectives.h"
#include "src/runtime/reduce_kernels.h"

namespace shmemctl {

namespace {

/// The team's scratch memory during a reduction.
constexpr std::size_t block_bytes = std::size_t{8} << 10; ///< fits the first cache twice
/// Up to here reading all arrays costs a member less than handing shares of the result to others.
constexpr std::size_t small_bytes = std::size_t{4} << 10;
constexpr std::size_t accumulator_at = small_bytes;
constexpr std::size_t fetched_at = accumulator_at + block_bytes;
constexpr std::size_t fetched_blocks = 16; ///< gets that are under way at once
static_assert(fetched_at + fetched_blocks * block_bytes <= limits::team_scratch_bytes);

/// Combines a range of all members' arrays, block by block, in team order. Members that are mapped
/// are read where they lie, once; others' blocks are fetched into the scratch memory.
class Reducer {
public:
  Reducer(Teams& teams, TeamId team, const std::byte* source, std::size_t element_size,
          ReduceKernel kernel)
      : teams_(teams), team_(team), source_(source), element_size_(element_size), kernel_(kernel),
        area_(teams.area(team)) {
    const auto n = static_cast<std::size_t>(teams.n_pes(team));
    mapped_.resize(n);
    for (std::size_t i = 0; i < n; ++i)
      mapped_[i] = static_cast<const std::byte*>(
          teams.rma().direct(source, teams.world_pe(team, static_cast<int>(i))));
  }

  std::size_t block_elements() const { return block_bytes / element_size_; }
  std::byte* accumulator() const { return area_.scratch + accumulator_at; }

  /// `to` must not be one of the members' blocks.
  void block(std::byte* to, std::size_t first, std::size_t elements) {
    fetched_end_ = 0;
    for (std::size_t member = 0; member < mapped_.size(); ++member) {
      const std::byte* from = mapped_[member] ? mapped_[member] + first * element_size_
                                              : fetched(member, first, elements);
      if (member == 0)
        std::memcpy(to, from, elements * element_size_);
      else
        kernel_(to, from, elements);
    }
  }

private:
  /// A block of a member that is not mapped. Fetches those of the next ones too.
  const std::byte* fetched(std::size_t member, std::size_t first, std::size_t elements) {
    if (member >= fetched_end_) {
      places_.assign(mapped_.size(), nullptr);
      std::byte* place = area_.scratch + fetched_at;
      std::size_t under_way = 0;
      for (fetched_end_ = member; fetched_end_ < mapped_.size(); ++fetched_end_) {
        if (mapped_[fetched_end_])
          continue;
        if (under_way++ == fetched_blocks)
          break;
        teams_.rma().get(place, source_ + first * element_size_, elements * element_size_,
                         teams_.world_pe(team_, static_cast<int>(fetched_end_)), 0, false);
        places_[fetched_end_] = place;
        place += block_bytes;
      }
      teams_.rma().quiet();
    }
    return places_[member];
  }

  Teams& teams_;
  TeamId team_;
  const std::byte* source_;
  std::size_t element_size_;
  ReduceKernel kernel_;
  TeamSync& area_;
  std::vector<const std::byte*> mapped_; ///< by member
  std::vector<const std::byte*> places_; ///< by member: its block in the scratch memory
  std::size_t fetched_end_ = 0;          ///< members before this one have been fetched
};

/// The elements that member `me` of n reduces for all: whole cache lines, so that no line has two
/// writers.
struct Share {
  std::size_t first, elements;
};
Share share_of(std::size_t me, std::size_t n, std::size_t elements, std::size_t element_size) {
  const std::size_t line = 64 / element_size;
  const std::size_t each = ((elements + n - 1) / n + line - 1) / line * line;
  const std::size_t first = std::min(elements, me * each);
  return {first, std::min(each, elements - first)};
}

} // namespace

bool Collectives::reduce(TeamId team, void* target, const void* source, std::size_t elements,
                         ElementType type, ReduceOp op) {
  const ReduceKernel kernel = reduce_kernel(type, op);
  if (!kernel)
    return false;
  const std::size_t size = element_bytes(type), size_bytes = elements * size;
  auto* to = static_cast<std::byte*>(target);
  const auto* from = static_cast<const std::byte*>(source);
  const bool in_place = target == source;
  if (size_bytes <= small_bytes) {
    if (teams_.valid(team) && in_place && elements > 0) {
      // Others read this copy while the result is written over the original.
      std::memcpy(teams_.area(team).scratch, source, size_bytes);
      from = teams_.area(team).scratch;
    }
    teams_.sync(team);
    Reducer reducer(teams_, team, from, size, kernel);
    const std::size_t block = reducer.block_elements();
    for (std::size_t first = 0; first < elements; first += block)
      reducer.block(to + first * size, first, std::min(block, elements - first));
    teams_.sync(team);
    return true;
  }
  teams_.sync(team);
  reduce_large(team, to, from, elements, size, kernel);
  return true;
}

/// Each member reduces its share of the elements and hands the result to the others: every source
/// is read once, every target is written once. In place too: only one member reads a share of any
/// source, and it writes there only what it has read.
void Collectives::reduce_large(TeamId team, std::byte* target, const std::byte* source,
                               std::size_t elements, std::size_t size, ReduceKernel kernel) {
  const Share share = share_of(static_cast<std::size_t>(teams_.my_pe(team)),
                               static_cast<std::size_t>(teams_.n_pes(team)), elements, size);
  Reducer reducer(teams_, team, source, size, kernel);
  const std::size_t block = reducer.block_elements();
  for (std::size_t done = 0; done < share.elements; done += block) {
    const std::size_t first = share.first + done;
    const std::size_t count = std::min(block, share.elements - done);
    std::byte* result = target + first * size;
    if (target == source) {
      // The own source is read when its turn comes.
      reducer.block(reducer.accumulator(), first, count);
      std::memcpy(result, reducer.accumulator(), count * size);
    } else {
      reducer.block(result, first, count);
    }
    put_to_all(team, result, result, count * size); // while the cache has it
  }
  barrier(team);
}

bool Collectives::reduce_scatter(TeamId team, void* target, const void* source,
                                 std::size_t elements, ElementType type, ReduceOp op) {
  const ReduceKernel kernel = reduce_kernel(type, op);
  if (!kernel)
    return false;
  const std::size_t size = element_bytes(type);
  teams_.sync(team);
  const std::size_t mine = static_cast<std::size_t>(teams_.my_pe(team)) * elements;
  const auto* from = static_cast<const std::byte*>(source);
  auto* to = static_cast<std::byte*>(target);
  const bool in_place = to == from + mine * size;
  Reducer reducer(teams_, team, from, size, kernel);
  const std::size_t block = reducer.block_elements();
  for (std::size_t first = 0; first < elements; first += block) {
    const std::size_t count = std::min(block, elements - first);
    std::byte* result = in_place ? reducer.accumulator() : to + first * size;
    reducer.block(result, mine + first, count);
    if (in_place)
      std::memcpy(to + first * size, result, count * size);
  }
  teams_.sync(team);
  return true;
}

} // namespace shmemctl
