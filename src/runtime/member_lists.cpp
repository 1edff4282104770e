#include "src/runtime/member_lists.h"

#include <algorithm>
#include <cstring>

namespace shmemctl {

namespace {

std::int32_t* area_of(State& state) {
  return reinterpret_cast<std::int32_t*>(reinterpret_cast<std::byte*>(&state) +
                                         state.members_offset_bytes);
}

} // namespace

std::size_t MemberLists::room() const {
  std::size_t used = 0;
  for (const Span& span : spans_)
    used += span.length;
  return capacity_ - used;
}

std::vector<int> MemberLists::teams_by_offset() const {
  std::vector<int> teams;
  for (int team = 0; team < limits::max_teams; ++team)
    if (spans_[static_cast<std::size_t>(team)].length > 0)
      teams.push_back(team);
  std::sort(teams.begin(), teams.end(), [this](int left, int right) {
    return spans_[static_cast<std::size_t>(left)].offset <
           spans_[static_cast<std::size_t>(right)].offset;
  });
  return teams;
}

void MemberLists::move_together(State& state) {
  std::int32_t* const area = area_of(state);
  std::size_t end = 0;
  for (const int team : teams_by_offset()) {
    Span& span = spans_[static_cast<std::size_t>(team)];
    std::memmove(area + end, area + span.offset, span.length * sizeof(std::int32_t));
    span.offset = end;
    state.teams[team].member_offset = static_cast<std::int32_t>(end);
    end += span.length;
  }
}

void MemberLists::place(State& state, int team, const std::vector<int>& list) {
  const auto first_fit = [&]() -> std::size_t {
    std::size_t end = 0;
    for (const int other : teams_by_offset()) {
      const Span& span = spans_[static_cast<std::size_t>(other)];
      if (span.offset - end >= list.size())
        return end;
      end = span.offset + span.length;
    }
    return end;
  };
  std::size_t offset = first_fit();
  if (offset + list.size() > capacity_) {
    move_together(state);
    offset = first_fit();
  }
  std::copy(list.begin(), list.end(), area_of(state) + offset);
  spans_[static_cast<std::size_t>(team)] = {offset, list.size()};
  state.teams[team].member_offset = static_cast<std::int32_t>(offset);
}

void MemberLists::release(int team) {
  spans_[static_cast<std::size_t>(team)] = {};
}

} // namespace shmemctl
