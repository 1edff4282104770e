// Double-buffered messages are sufficient for every order in which members can take their steps,
// and the rule's conditions are necessary.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "kernels/device_plan.h"

namespace shmemctl {
namespace {

/// What a member does next in its current collective.
enum Step : int { to_begin, to_send, to_tell, to_read, finished };

struct Member {
  int epoch = 1, step = to_begin, target = 0, received = 0;
  auto operator<=>(const Member&) const = default;
};

/// One word per sender in each half, and which members have announced their start to which.
struct Cells {
  std::vector<int> words[2];
  std::vector<int> entered;
  auto operator<=>(const Cells&) const = default;
};

struct Machine {
  std::vector<Member> members;
  std::vector<Cells> cells;
  auto operator<=>(const Machine&) const = default;
};

/// `roots[e - 1]` is the root of collective e, a broadcast; -1: all to all.
class Explorer {
public:
  Explorer(int n, std::vector<int> roots, bool two_halves, bool rule)
      : n_(n), roots_(std::move(roots)), two_halves_(two_halves), rule_(rule) {}

  /// Whether all schedules end, with what was sent.
  bool all_well() {
    Machine start;
    start.members.resize(static_cast<std::size_t>(n_));
    Cells empty;
    empty.words[0].resize(static_cast<std::size_t>(n_));
    empty.words[1].resize(static_cast<std::size_t>(n_));
    empty.entered.resize(static_cast<std::size_t>(n_));
    start.cells.assign(static_cast<std::size_t>(n_), empty);
    std::vector<Machine> open{start};
    std::set<Machine> known{start};
    while (!open.empty()) {
      const Machine now = open.back();
      open.pop_back();
      bool moved = false, over = true;
      for (int i = 0; i < n_; ++i) {
        over = over && at(now.members, i).epoch > static_cast<int>(roots_.size());
        Machine next = now;
        if (!move(next, i))
          continue;
        moved = true;
        if (known.insert(next).second)
          open.push_back(next);
      }
      if (!moved && !over)
        return false; // a member waits for a word that was overwritten by then
    }
    return true;
  }

private:
  template <class T>
  static T& at(std::vector<T>& all, int i) {
    return all[static_cast<std::size_t>(i)];
  }
  template <class T>
  static const T& at(const std::vector<T>& all, int i) {
    return all[static_cast<std::size_t>(i)];
  }
  int half(int epoch) const {
    return two_halves_ ? static_cast<int>(plan::half_of(static_cast<unsigned>(epoch))) : 0;
  }

  /// False if the member has to wait, or is done.
  bool move(Machine& machine, int i) const {
    Member& me = at(machine.members, i);
    Cells& mine = at(machine.cells, i);
    if (me.epoch > static_cast<int>(roots_.size()))
      return false;
    const int root = at(roots_, me.epoch - 1);
    const bool sends = root < 0 || root == i;
    const auto to_all = [&](int next_step, const auto& act) {
      if (me.target == i)
        ++me.target;
      if (me.target < n_)
        act(at(machine.cells, me.target++));
      if (me.target == i)
        ++me.target;
      if (me.target >= n_) {
        me.target = 0;
        me.step = next_step;
      }
    };
    switch (me.step) {
    case to_begin:
      if (rule_ &&
          plan::must_wait(static_cast<unsigned>(me.received), static_cast<unsigned>(me.epoch)))
        for (int j = 0; j < n_; ++j)
          if (j != i && at(mine.entered, j) < me.epoch - 1)
            return false;
      me.step = sends ? to_send : to_tell;
      return true;
    case to_send:
      to_all(root < 0 ? to_read : to_tell,
             [&](Cells& theirs) { at(theirs.words[half(me.epoch)], i) = me.epoch; });
      return true;
    case to_tell:
      to_all(sends ? finished : to_read, [&](Cells& theirs) { at(theirs.entered, i) = me.epoch; });
      return true;
    case to_read: {
      const int from = root < 0 ? me.target : root;
      if (from < n_ && from != i && at(mine.words[half(me.epoch)], from) != me.epoch)
        return false;
      if (root >= 0 || ++me.target >= n_) {
        me.target = 0;
        me.step = finished;
      }
      return true;
    }
    default:
      if (root < 0)
        me.received = me.epoch;
      ++me.epoch;
      me.step = to_begin;
      return true;
    }
  }

  int n_;
  std::vector<int> roots_;
  bool two_halves_, rule_;
};

/// All sequences of that many collectives.
std::vector<std::vector<int>> sequences(int n, int length) {
  std::vector<std::vector<int>> all{{}};
  for (int i = 0; i < length; ++i) {
    std::vector<std::vector<int>> longer;
    for (const std::vector<int>& one : all)
      for (int root = -1; root < n; ++root) {
        longer.push_back(one);
        longer.back().push_back(root);
      }
    all = longer;
  }
  return all;
}

TEST(DevicePlanHalves, AreEnoughForTwoMembers) {
  for (const std::vector<int>& roots : sequences(2, 5))
    EXPECT_TRUE(Explorer(2, roots, true, true).all_well());
}
TEST(DevicePlanHalves, AreEnoughForThreeMembers) {
  for (const std::vector<int>& roots : sequences(3, 3))
    EXPECT_TRUE(Explorer(3, roots, true, true).all_well());
  for (const std::vector<int>& roots :
       {std::vector<int>{0, 0, 0, 0}, {-1, 0, 1, -1}, {0, 1, 2, 0}, {-1, -1, -1, -1}})
    EXPECT_TRUE(Explorer(3, roots, true, true).all_well());
}
TEST(DevicePlanHalves, OneHalfLosesData) {
  EXPECT_FALSE(Explorer(3, {-1, -1}, false, true).all_well());
}
TEST(DevicePlanHalves, BroadcastsWithoutTheRuleLoseData) {
  EXPECT_FALSE(Explorer(2, {0, 0, 0}, true, false).all_well());
}

} // namespace
} // namespace shmemctl
