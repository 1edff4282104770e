#include "src/runtime/collectives.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "src/base/error.h"
#include "src/runtime/reduce_kernels.h"
#include "src/runtime/teams.h"

namespace shmemctl {

namespace {

/// If not all members are mapped: up to this size the log2 n steps of a tree cost less than the two
/// passes over the network of a scatter and an allgather.
constexpr std::size_t tree_bytes = std::size_t{64} << 10;

void copy_here(void* target, const void* source, std::size_t size_bytes) {
  if (target != source && size_bytes > 0)
    std::memmove(target, source, size_bytes);
}

} // namespace

void Collectives::barrier(TeamId team) {
  teams_.rma().quiet();
  teams_.sync(team);
}

void Collectives::broadcast(TeamId team, void* target, const void* source, std::size_t size_bytes,
                            int root) {
  const bool direct = teams_.all_load_store(team);
  if (root < 0 || root >= teams_.n_pes(team))
    throw Error(ExitCode::usage, "broadcast", "",
                "invalid root " + std::to_string(root) + ": the team has members 0 to " +
                    std::to_string(teams_.n_pes(team) - 1),
                "pass the index of a member");
  teams_.sync(team);
  if (teams_.my_pe(team) == root)
    copy_here(target, source, size_bytes);
  else if (direct)
    teams_.rma().get(target, source, size_bytes, teams_.world_pe(team, root));
  if (!direct && size_bytes > tree_bytes)
    broadcast_by_parts(team, target, source, size_bytes, root);
  else if (!direct && size_bytes > 0)
    broadcast_by_tree(team, target, source, size_bytes, root);
  teams_.sync(team);
}

/// Binomial tree: members are numbered from the root, and a member's parent has its number without
/// the lowest 1 bit. Only the parent sets the cell that signals the arrival of the data, once in
/// each broadcast; the member clears it.
void Collectives::broadcast_by_tree(TeamId team, void* target, const void* source,
                                    std::size_t size_bytes, int root) {
  Rma& rma = teams_.rma();
  SyncCell& here = teams_.area(team).published[2];
  const int n = teams_.n_pes(team), number = (teams_.my_pe(team) - root + n) % n;
  const auto pe_of = [&](int other) { return teams_.world_pe(team, (other + root) % n); };
  if (number != 0) {
    rma.wait_until(&here.value, Compare::not_equal, 0, "broadcast", pe_of(number & (number - 1)));
    store_flag(here, 0);
  }
  const int below = number == 0 ? 1 << rounds_of(n) : number & -number;
  for (int distance = below / 2; distance > 0; distance /= 2)
    if (number + distance < n)
      rma.put_signal(target, number == 0 ? source : target, size_bytes, &here.value, 1,
                     SignalOp::set, pe_of(number + distance), 0, false);
  rma.quiet();
}

/// Scatter and allgather: each member gets one part from the root and puts it to all others, so the
/// root sends about 2 * size_bytes, whatever the team's size. No member writes to the root, and
/// members read only from the root, so the two steps may overlap.
void Collectives::broadcast_by_parts(TeamId team, void* target, const void* source,
                                     std::size_t size_bytes, int root) {
  Rma& rma = teams_.rma();
  const auto n = static_cast<std::size_t>(teams_.n_pes(team));
  const int me = teams_.my_pe(team);
  const std::size_t part_bytes = (size_bytes + n - 1) / n;
  const std::size_t first = std::min(size_bytes, part_bytes * static_cast<std::size_t>(me));
  const std::size_t length = std::min(size_bytes - first, part_bytes);
  auto* part = static_cast<std::byte*>(target) + first;
  if (me != root)
    rma.get(part, static_cast<const std::byte*>(source) + first, length,
            teams_.world_pe(team, root));
  for (int step = 1; step < static_cast<int>(n); ++step) {
    const int member = (me + step) % static_cast<int>(n);
    if (member != root)
      rma.put(part, part, length, teams_.world_pe(team, member), 0, false);
  }
  rma.quiet();
}

/// Begins with the next member, so that the members do not all write to the same one at once.
void Collectives::put_to_all(TeamId team, std::byte* target, const std::byte* source,
                             std::size_t size_bytes) {
  const int n = teams_.n_pes(team), me = teams_.my_pe(team);
  for (int step = 1; step < n; ++step)
    teams_.rma().put(target, source, size_bytes, teams_.world_pe(team, (me + step) % n), 0, false);
  copy_here(target, source, size_bytes);
}

void Collectives::fcollect(TeamId team, void* target, const void* source, std::size_t size_bytes) {
  teams_.sync(team);
  put_to_all(team,
             static_cast<std::byte*>(target) +
                 size_bytes * static_cast<std::size_t>(teams_.my_pe(team)),
             static_cast<const std::byte*>(source), size_bytes);
  barrier(team);
}

void Collectives::collect(TeamId team, void* target, const void* source, std::size_t size_bytes) {
  Rma& rma = teams_.rma();
  const int me = teams_.my_pe(team);
  if (me < 0)
    return teams_.sync(team); // throws: not a member
  store_flag(teams_.area(team).published[0], size_bytes);
  teams_.sync(team);
  std::size_t before = 0;
  for (int member = 0; member < me; ++member)
    before += load_flag(rma, teams_.area(team).published[0], teams_.world_pe(team, member));
  put_to_all(team, static_cast<std::byte*>(target) + before, static_cast<const std::byte*>(source),
             size_bytes);
  barrier(team);
}

void Collectives::alltoall(TeamId team, void* target, const void* source, std::size_t block_bytes) {
  teams_.sync(team);
  const int n = teams_.n_pes(team), me = teams_.my_pe(team);
  auto* place = static_cast<std::byte*>(target) + block_bytes * static_cast<std::size_t>(me);
  const auto* blocks = static_cast<const std::byte*>(source);
  for (int step = 1; step <= n; ++step) {
    const int member = (me + step) % n;
    const std::byte* block = blocks + block_bytes * static_cast<std::size_t>(member);
    if (member == me)
      copy_here(place, block, block_bytes);
    else
      teams_.rma().put(place, block, block_bytes, teams_.world_pe(team, member), 0, false);
  }
  barrier(team);
}

// Reductions.

namespace {

/// Sizes and offsets in the team's scratch memory during a reduction.
constexpr std::size_t block_bytes = std::size_t{8} << 10; ///< two blocks fit into the L1 cache
/// Up to this size it costs a member less to read all arrays than to exchange shares of the result.
constexpr std::size_t small_bytes = std::size_t{4} << 10;
constexpr std::size_t accumulator_at = small_bytes;
constexpr std::size_t fetched_at = accumulator_at + block_bytes;
constexpr std::size_t fetched_blocks = 16; ///< gets in flight at once
static_assert(fetched_at + fetched_blocks * block_bytes <= limits::team_scratch_bytes);

/// Combines a range of all members' arrays, block by block, in team order. Arrays of members that
/// are mapped are read in place, once; blocks of other members are fetched into scratch memory.
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

  /// Combines one block into `to`, which must not be one of the members' blocks.
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
  /// A block of a member that is not mapped. Also fetches the blocks of the next such members.
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

/// The elements that member `me` of `n` reduces for all members: whole cache lines, so that no line
/// has two writers.
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

/// Each member reduces its share of the elements and puts the result to all others: every source is
/// read once, every target is written once. This also works in place: only one member reads a given
/// share of any source, and it overwrites only elements that it has read.
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
      // This member's own source, which is also the target, is combined in team order too.
      reducer.block(reducer.accumulator(), first, count);
      std::memcpy(result, reducer.accumulator(), count * size);
    } else {
      reducer.block(result, first, count);
    }
    put_to_all(team, result, result, count * size); // while the block is still in the cache
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
  const std::size_t own_block = static_cast<std::size_t>(teams_.my_pe(team)) * elements;
  const auto* from = static_cast<const std::byte*>(source);
  auto* to = static_cast<std::byte*>(target);
  const bool in_place = to == from + own_block * size;
  Reducer reducer(teams_, team, from, size, kernel);
  const std::size_t block = reducer.block_elements();
  for (std::size_t first = 0; first < elements; first += block) {
    const std::size_t count = std::min(block, elements - first);
    std::byte* result = in_place ? reducer.accumulator() : to + first * size;
    reducer.block(result, own_block + first, count);
    if (in_place)
      std::memcpy(to + first * size, result, count * size);
  }
  teams_.sync(team);
  return true;
}

// All-to-all with strides.

namespace {

/// One block in flight from this PE to one member.
struct StridedBlock {
  std::byte* target; ///< local address; on the member it is the same symmetric address
  const std::byte* source;
  std::size_t target_step_bytes, source_step_bytes;
  std::size_t elements, element_bytes;
};

template <std::size_t element_bytes>
void copy_elements(const StridedBlock& block, std::byte* to) {
  for (std::size_t i = 0; i < block.elements; ++i)
    std::memcpy(to + i * block.target_step_bytes, block.source + i * block.source_step_bytes,
                element_bytes);
}

/// Uses copies of a compile-time size for the usual element sizes.
void copy_elements(const StridedBlock& block, std::byte* to) {
  switch (block.element_bytes) {
  case 1:
    return copy_elements<1>(block, to);
  case 2:
    return copy_elements<2>(block, to);
  case 4:
    return copy_elements<4>(block, to);
  case 8:
    return copy_elements<8>(block, to);
  case 16:
    return copy_elements<16>(block, to);
  default:
    for (std::size_t i = 0; i < block.elements; ++i)
      std::memcpy(to + i * block.target_step_bytes, block.source + i * block.source_step_bytes,
                  block.element_bytes);
  }
}

/// Puts the block to a member that is not mapped here. Elements that are contiguous in the target
/// are packed in scratch memory; others are put one by one.
void put_elements(const StridedBlock& block, Rma& rma, int pe, TeamSync& area) {
  if (block.target_step_bytes != block.element_bytes ||
      block.element_bytes > limits::team_scratch_bytes) {
    for (std::size_t i = 0; i < block.elements; ++i)
      rma.put(block.target + i * block.target_step_bytes,
              block.source + i * block.source_step_bytes, block.element_bytes, pe, 0, false);
    return;
  }
  const std::size_t pack = limits::team_scratch_bytes / block.element_bytes;
  for (std::size_t first = 0; first < block.elements; first += pack) {
    StridedBlock part = block;
    part.source += first * block.source_step_bytes;
    part.elements = std::min(pack, block.elements - first);
    copy_elements(part, area.scratch);
    rma.put(block.target + first * block.element_bytes, area.scratch,
            part.elements * block.element_bytes, pe, 0, true);
  }
}

} // namespace

void Collectives::alltoalls(TeamId team, void* target, const void* source,
                            std::ptrdiff_t target_stride, std::ptrdiff_t source_stride,
                            std::size_t elements, std::size_t element_bytes) {
  if (target_stride < 1 || source_stride < 1)
    throw Error(ExitCode::usage, "alltoalls", "", "invalid stride: it is less than 1",
                "pass strides of at least 1 element");
  teams_.sync(team);
  const int n = teams_.n_pes(team), me = teams_.my_pe(team);
  const std::size_t target_step = static_cast<std::size_t>(target_stride) * element_bytes;
  const std::size_t source_step = static_cast<std::size_t>(source_stride) * element_bytes;
  for (int step = 1; step <= n && elements > 0 && element_bytes > 0; ++step) {
    const int member = (me + step) % n;
    const int pe = teams_.world_pe(team, member);
    const StridedBlock block{static_cast<std::byte*>(target) +
                                 static_cast<std::size_t>(me) * elements * target_step,
                             static_cast<const std::byte*>(source) +
                                 static_cast<std::size_t>(member) * elements * source_step,
                             target_step,
                             source_step,
                             elements,
                             element_bytes};
    if (void* direct = teams_.rma().direct(block.target, pe))
      copy_elements(block, static_cast<std::byte*>(direct));
    else
      put_elements(block, teams_.rma(), pe, teams_.area(team));
  }
  barrier(team);
}

} // namespace shmemctl
