// New teams from a parent.
#include <thread>

#include "src/base/deadline.h"
#include "src/base/error.h"
#include "src/runtime/cells.h"
#include "src/runtime/slot_words.h"
#include "src/runtime/teams.h"

namespace shmemctl {

int Teams::Slice::member(int parent_member) const {
  return TeamMembers{start, stride, n_pes, {}}.member(parent_member);
}

std::optional<TeamId> Teams::split_strided(TeamId parent, int start, int stride, int n) {
  if (!valid(parent) || n < 1 || (stride == 0 && n != 1))
    return std::nullopt;
  const std::int64_t last = start + std::int64_t{stride} * (n - 1);
  if (start < 0 || start >= n_pes(parent) || last < 0 || last >= n_pes(parent))
    return std::nullopt;
  std::uint64_t arguments = slot_words::mixed(1, static_cast<std::uint64_t>(start));
  arguments = slot_words::mixed(arguments, static_cast<std::uint64_t>(stride));
  arguments = slot_words::mixed(arguments, static_cast<std::uint64_t>(n));
  const auto slots = split(parent, {{start, stride == 0 ? 1 : stride, n}}, arguments);
  if (!slots)
    return std::nullopt;
  return slots->front();
}

std::optional<Teams::Grid> Teams::split_2d(TeamId parent, int x_range) {
  if (!valid(parent) || x_range < 1)
    return std::nullopt;
  const int n = n_pes(parent);
  const int columns = std::min(x_range, n);
  std::vector<Slice> slices;
  for (int first = 0; first < n; first += columns)
    slices.push_back({first, 1, std::min(columns, n - first)});
  const int rows = static_cast<int>(slices.size());
  for (int x = 0; x < columns; ++x)
    slices.push_back({x, columns, (n - x + columns - 1) / columns});
  const auto slots =
      split(parent, slices, slot_words::mixed(2, static_cast<std::uint64_t>(columns)));
  if (!slots)
    return std::nullopt;
  const int row = my_pe(parent) / columns, column_slice = rows + my_pe(parent) % columns;
  return Grid{(*slots)[static_cast<std::size_t>(row)],
              (*slots)[static_cast<std::size_t>(column_slice)]};
}

TeamMembers Teams::slice_of(TeamId parent, const Slice& slice) const {
  std::vector<int> list(static_cast<std::size_t>(slice.n_pes));
  for (int i = 0; i < slice.n_pes; ++i)
    list[static_cast<std::size_t>(i)] = world_pe(parent, slice.start + i * slice.stride);
  return team_members(std::move(list));
}

std::optional<Teams::Slots> Teams::split(TeamId parent, const std::vector<Slice>& slices,
                                         std::uint64_t arguments) {
  const int me = my_pe(parent);
  std::vector<std::optional<TeamMembers>> mine(slices.size());
  std::size_t list_members = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (slices[i].member(me) < 0)
      continue;
    mine[i] = slice_of(parent, slices[i]);
    list_members += mine[i]->list.size();
  }
  sync(parent); // all are here: from now on nobody waits for a PE that does something else
  SlotClaims::Claim claim(claims_, {0, static_cast<std::uint64_t>(parent)});
  const Deadline deadline = Deadline::after(std::chrono::duration<double>(rma_.timeout_s()));
  auto words = gather_free(parent, offer(claim, list_members), arguments);
  while (!words) {
    claim.let_go();
    if (deadline.passed())
      rma_.health().give_up("team split", -1);
    std::this_thread::yield();
    words = gather_free(parent, offer(claim, list_members), arguments);
  }
  auto slots = choose_slots(std::move(*words), slices);
  if (!slots)
    return std::nullopt;
  state_.change([&](State& state) {
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (mine[i])
        create(state, (*slots)[i], std::move(*mine[i]));
      else
        (*slots)[i] = invalid_team;
    }
  });
  return slots;
}

/// The words of all members of the parent, in team order; nothing if one of them was busy. The
/// second sync keeps the cells until everybody has read them.
std::optional<std::vector<std::uint64_t>> Teams::gather_free(TeamId parent, std::uint64_t own_word,
                                                             std::uint64_t arguments) {
  TeamSync& own = sync_[parent];
  const int n = n_pes(parent);
  show(own.published[0], own_word);
  show(own.published[1], arguments);
  sync(parent);
  std::vector<std::uint64_t> words(static_cast<std::size_t>(n));
  std::uint64_t all = ~std::uint64_t{0};
  for (int i = 0; i < n; ++i) {
    const int pe = world_pe(parent, i);
    if (look_at(rma_, own.published[1], pe) != arguments)
      throw Error(ExitCode::usage, "team " + std::to_string(parent), "split",
                  "PE " + std::to_string(pe) + " passed different arguments than PE " +
                      std::to_string(rma_.pe()),
                  "pass the same arguments on all members of the parent team");
    all &= words[static_cast<std::size_t>(i)] = look_at(rma_, own.published[0], pe);
  }
  sync(parent);
  if (!(all & slot_words::held))
    return std::nullopt;
  return words;
}

/// All members of the parent compute the slots of all slices, so that all know when one has none.
std::optional<Teams::Slots> Teams::choose_slots(std::vector<std::uint64_t> free_by_member,
                                                const std::vector<Slice>& slices) {
  Slots slots;
  for (const Slice& slice : slices) {
    const auto free_of = [&](int i) -> std::uint64_t& {
      const int member = slice.start + i * slice.stride;
      return free_by_member[static_cast<std::size_t>(member)];
    };
    std::uint64_t common = slot_words::slots_mask;
    for (int i = 0; i < slice.n_pes; ++i)
      common &= free_of(i);
    const TeamId slot = slot_words::lowest(common);
    if (slot == invalid_team)
      return std::nullopt;
    for (int i = 0; i < slice.n_pes; ++i)
      free_of(i) &= ~slot_words::bit(slot);
    slots.push_back(slot);
  }
  return slots;
}

} // namespace shmemctl
