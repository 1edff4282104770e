#include "src/runtime/member_lists.h"

#include <algorithm>
#include <cstring>

namespace shmemctl {

std::int32_t* MemberLists::area() const {
  return reinterpret_cast<std::int32_t*>(reinterpret_cast<std::byte*>(&state_) +
                                         state_.members_offset_bytes);
}

std::size_t MemberLists::room() const {
  std::size_t used = 0;
  for (const Span& span : spans_)
    used += span.length;
  return state_.members_capacity - used;
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

void MemberLists::move_together() {
  std::size_t end = 0;
  for (const int team : teams_by_offset()) {
    Span& span = spans_[static_cast<std::size_t>(team)];
    std::memmove(area() + end, area() + span.offset, span.length * sizeof(std::int32_t));
    span.offset = end;
    state_.teams[team].member_offset = static_cast<std::int32_t>(end);
    end += span.length;
  }
}

void MemberLists::place(int team, const std::vector<int>& list) {
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
  if (offset + list.size() > state_.members_capacity) {
    move_together();
    offset = first_fit();
  }
  std::copy(list.begin(), list.end(), area() + offset);
  spans_[static_cast<std::size_t>(team)] = {offset, list.size()};
  state_.teams[team].member_offset = static_cast<std::int32_t>(offset);
}

void MemberLists::release(int team) {
  spans_[static_cast<std::size_t>(team)] = {};
}

} // namespace shmemctl
