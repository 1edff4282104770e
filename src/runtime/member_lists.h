// The list area of the state: members of teams that are not an arithmetic progression.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "src/abi/device_state.h"

namespace shmemctl {

/// Allocates by first fit in the gaps between the existing lists; if no gap is large enough, the
/// lists are first moved together. Not thread safe.
class MemberLists {
public:
  /// @param capacity State::members_capacity
  explicit MemberLists(std::size_t capacity) : capacity_(capacity) {}

  /// The number of members that can still be stored, in lists of any size.
  std::size_t room() const;
  /// Stores the list in the state and sets the team's member_offset (and that of lists that had to
  /// move). The list must fit into room(); the state is the same one in each call.
  void place(State& state, int team, const std::vector<int>& list);
  void release(int team);

private:
  struct Span {
    std::size_t offset = 0, length = 0;
  };
  std::vector<int> teams_by_offset() const;
  void move_together(State& state);

  std::size_t capacity_;
  std::array<Span, limits::max_teams> spans_{}; ///< length 0: the team has no list
};

} // namespace shmemctl
