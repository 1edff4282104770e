#include "src/runtime/collectives.h"

#include <algorithm>
#include <cstring>

#include "src/base/error.h"
#include "src/runtime/cells.h"

namespace shmemctl {

namespace {

/// Where not all members are mapped: up to here a tree's log2 n steps cost less than the two passes
/// over the network of a scatter and a gather.
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
  const bool direct = teams_.everyone_direct(team);
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

/// Binomial tree: numbered from the root, a member's parent is its number without its lowest one
/// bit. Only the parent writes the cell that says "it is there", once in each broadcast.
void Collectives::broadcast_by_tree(TeamId team, void* target, const void* source,
                                    std::size_t size_bytes, int root) {
  Rma& rma = teams_.rma();
  SyncCell& here = teams_.area(team).published[2];
  const int n = teams_.n_pes(team), number = (teams_.my_pe(team) - root + n) % n;
  const auto pe_of = [&](int other) { return teams_.world_pe(team, (other + root) % n); };
  if (number != 0) {
    rma.wait_until(&here.value, Compare::not_equal, 0, "broadcast", pe_of(number & (number - 1)));
    show(here, 0);
  }
  const int below = number == 0 ? 1 << rounds_of(n) : number & -number;
  for (int distance = below / 2; distance > 0; distance /= 2)
    if (number + distance < n)
      rma.put_signal(target, number == 0 ? source : target, size_bytes, &here.value, 1,
                     SignalOp::set, pe_of(number + distance), 0, false);
  rma.quiet();
}

/// Each member fetches a part from the root and hands it on to the others: the root sends every
/// byte twice, however many members there are. Nobody writes to the root, and of the others nobody
/// is read from, so both may run into each other.
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

/// Begins with the next member, so that not all write to one at the same time.
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
  show(teams_.area(team).published[0], size_bytes);
  teams_.sync(team);
  std::size_t before = 0;
  for (int member = 0; member < me; ++member)
    before += look_at(rma, teams_.area(team).published[0], teams_.world_pe(team, member));
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

} // namespace shmemctl
