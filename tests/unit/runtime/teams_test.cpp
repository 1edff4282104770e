// The pool: predefined teams, queries, splits, slots, the state's mirror.
#include <atomic>
#include <gtest/gtest.h>
#include <limits>
#include <mutex>
#include <thread>

#include "src/base/error.h"
#include "src/runtime/teams.h"
#include "tests/unit/runtime/shapes.h"

using namespace shmemctl;
using namespace shmemctl::test;

namespace {

/// All that this PE can know about a team of which it is a member.
void expect_team(TeamPe& me, TeamId team, const std::vector<int>& members) {
  const Teams& teams = *me.teams;
  const int n = static_cast<int>(members.size());
  require(teams.valid(team) && teams.n_pes(team) == n, "n_pes of " + text_of(members));
  require(teams.my_pe(team) == index_in(members, me.pe), "my_pe in " + text_of(members));
  require(teams.world_pe(team, -1) == -1 && teams.world_pe(team, n) == -1, "no such member");
  for (int i = 0; i < n; ++i) {
    const int pe = members[static_cast<std::size_t>(i)];
    require(teams.world_pe(team, i) == pe, "member of " + text_of(members));
    require(teams.translate(team, i, team_world) == pe, "translate to the world");
  }
  for (int pe = 0; pe < me.n_pes; ++pe)
    require(teams.translate(team_world, pe, team) == index_in(members, pe),
            "translate from the world");
  const TeamState& state = me.state->teams[team];
  require(state.in_use == 1 && state.n_pes == n && state.my_pe == teams.my_pe(team), "state");
  for (int i = 0; i < n; ++i)
    require((state.stride != 0 ? state.start + i * state.stride
                               : members_of(me.state)[state.member_offset + i]) ==
                members[static_cast<std::size_t>(i)],
            "the state's members of " + text_of(members));
}

void expect_not_a_member(const TeamPe& me, TeamId team) {
  require(!me.teams->valid(team) && me.teams->my_pe(team) == -1 && me.teams->n_pes(team) == -1 &&
              me.teams->world_pe(team, 0) == -1 && me.teams->translate(team, 0, team_world) == -1 &&
              me.teams->translate(team_world, 0, team) == -1,
          "a team that this PE is no member of");
}

/// The same value on all members of the world?
bool same_everywhere(TeamPe& me, std::int64_t value) {
  auto* all = me.at<std::int64_t>(1024);
  *me.at<std::int64_t>(0) = value;
  me.collectives->fcollect(team_world, all, me.at<std::int64_t>(0), sizeof value);
  return std::all_of(all, all + me.n_pes, [&](std::int64_t other) { return other == value; });
}

} // namespace

TEST(TeamMembers, ArithmeticProgressionsNeedNoList) {
  EXPECT_EQ(team_members({4}).stride, 1);
  EXPECT_EQ(team_members({4}).member(4), 0);
  EXPECT_EQ(team_members({4}).member(5), -1);
  EXPECT_EQ(team_members({7, 4, 1}).stride, -3);
  EXPECT_TRUE(team_members({7, 4, 1}).list.empty());
  EXPECT_EQ(team_members({7, 4, 1}).member(1), 2);
  EXPECT_EQ(team_members({7, 4, 1}).member(-2), -1);
  EXPECT_EQ(team_members({7, 4, 1}).member(10), -1);
  EXPECT_EQ(team_members({7, 4, 1}).member(5), -1);
  EXPECT_EQ(team_members({1, 2, 4}).stride, 0);
  EXPECT_EQ(team_members({1, 2, 4}).list.size(), 3u);
  EXPECT_EQ(team_members({1, 2, 4}).member(4), 2);
  EXPECT_EQ(team_members({1, 2, 4}).member(3), -1);
}

TEST(Teams, PredefinedOnes) {
  TeamWorldOptions options;
  options.pes_per_node = 3;
  run_team_world(
      8,
      [](TeamPe& me) {
        std::vector<int> node;
        for (int pe = 0; pe < 8; ++pe)
          if (pe / 3 == me.pe / 3)
            node.push_back(pe);
        expect_team(me, team_world, everybody(8));
        expect_team(me, team_node, node);
        expect_team(me, team_shared, node);
        if (me.pe % 3 == 0)
          expect_team(me, team_leaders, {0, 3, 6});
        else
          expect_not_a_member(me, team_leaders);
        for (const TeamId team : {invalid_team, first_user_team, limits::max_teams, -7})
          expect_not_a_member(me, team);
        require(me.publications() == 1, "published once");
        for (const TeamId team : {team_world, team_node, team_leaders, invalid_team})
          me.teams->destroy(team); // has no effect
        expect_team(me, team_world, everybody(8));
        require(me.publications() == 1, "nothing has changed");
      },
      options);
}

TEST(Teams, PredefinedTeamsThatDoNotFit) {
  run_thread_world(1, 4096, [](ThreadPe& me) {
    StateBlock block = make_state(0, 1, 2);
    const auto make = [&](const std::vector<int>& node) {
      const Teams teams(*me.rma, block, reinterpret_cast<TeamSync*>(me.internal), node, node, node);
    };
    EXPECT_NO_THROW(make({0, 2, 4, 6}));
    EXPECT_THROW(make({0, 2, 5, 6}), Error);
  });
}

TEST(Teams, EveryStridedSplit) {
  for (const int n_pes : {1, 2, 5, 8})
    run_team_world(n_pes, [&](TeamPe& me) {
      for (const Shape& shape : strided_shapes(n_pes)) {
        const TeamId team = shape.make(me);
        if (contains(shape.members, me.pe)) {
          require(team == first_user_team, "the lowest free slot");
          expect_team(me, team, shape.members);
        } else {
          require(team == invalid_team, "no member, no team");
        }
        me.teams->destroy(team);
        expect_not_a_member(me, first_user_team);
      }
    });
}

TEST(Teams, TripletsOutOfRange) {
  constexpr int huge = std::numeric_limits<int>::max(), low = std::numeric_limits<int>::min();
  run_team_world(8, [](TeamPe& me) {
    const int triplets[][3] = {{0, 1, 0},    {0, 1, -1},      {-1, 1, 2},     {8, 1, 1},
                               {0, 1, 9},    {3, 3, 3},       {4, -3, 3},     {0, 0, 2},
                               {0, huge, 2}, {7, low, 2},     {7, low, huge}, {huge, huge, huge},
                               {0, 2, huge}, {low, low, low}, {0, -1, 2},     {7, 1, 2}};
    for (const auto& [start, stride, n] : triplets)
      require(!me.teams->split_strided(team_world, start, stride, n).has_value(),
              "wrong triplet " + std::to_string(start) + " " + std::to_string(stride) + " " +
                  std::to_string(n));
    require(!me.teams->split_strided(invalid_team, 0, 1, 1).has_value(), "invalid parent");
    require(!me.teams->split_2d(invalid_team, 1).has_value(), "invalid parent");
    require(!me.teams->split_2d(team_world, 0).has_value(), "empty rows");
    require(!me.teams->split_2d(team_world, low).has_value(), "negative rows");
    // The legal extremes.
    require(me.teams->split_strided(team_world, 7, low, 1).has_value(), "stride of one member");
    require(me.teams->split_strided(team_world, 0, huge, 1).has_value(), "stride of one member");
    require(me.teams->split_strided(team_world, 0, 7, 2).has_value(), "first and last");
    require(me.teams->split_strided(team_world, 7, -7, 2).has_value(), "last and first");
  });
}

TEST(Teams, EveryGrid) {
  for (int n_pes = 1; n_pes <= 8; ++n_pes)
    run_team_world(n_pes, [&](TeamPe& me) {
      for (int x_range = 1; x_range <= n_pes + 2; ++x_range) {
        const int columns = std::min(x_range, n_pes);
        std::vector<int> row, column;
        for (int pe = 0; pe < n_pes; ++pe) {
          if (pe / columns == me.pe / columns)
            row.push_back(pe);
          if (pe % columns == me.pe % columns)
            column.push_back(pe);
        }
        const auto grid = me.teams->split_2d(team_world, x_range);
        require(grid.has_value() && grid->x != grid->y, "split_2d");
        expect_team(me, grid->x, row);
        expect_team(me, grid->y, column);
        require(me.teams->my_pe(grid->x) == me.pe % columns, "x coordinate");
        require(me.teams->my_pe(grid->y) == me.pe / columns, "y coordinate");
        me.teams->sync(grid->x);
        me.teams->sync(grid->y);
        me.teams->destroy(grid->y);
        me.teams->destroy(grid->x);
      }
    });
}

TEST(Teams, GridOfATeamBackwards) {
  run_team_world(7, [](TeamPe& me) {
    const TeamId back = *me.teams->split_strided(team_world, 6, -1, 7);
    const auto grid = me.teams->split_2d(back, 3);
    const int number = 6 - me.pe;
    std::vector<int> row, column;
    for (int i = 0; i < 7; ++i) {
      if (i / 3 == number / 3)
        row.push_back(6 - i);
      if (i % 3 == number % 3)
        column.push_back(6 - i);
    }
    expect_team(me, grid->x, row);
    expect_team(me, grid->y, column);
  });
}

TEST(Teams, AllMembersFailIfNoSlotIsLeft) {
  run_team_world(4, [](TeamPe& me) {
    constexpr int user_slots = limits::max_teams - first_user_team;
    std::vector<TeamId> alone; // PE 2 alone is short of slots
    for (int i = 0; i < user_slots - 1; ++i)
      if (const TeamId team = *me.teams->split_strided(team_world, 2, 1, 1); team != invalid_team)
        alone.push_back(team);
    const auto last = me.teams->split_strided(team_world, 0, 1, 4);
    require(last == limits::max_teams - 1, "the one slot that is free on all");
    require(!me.teams->split_strided(team_world, 1, 1, 2).has_value(), "PE 2 has no slot");
    require(me.teams->split_strided(team_world, 0, 1, 2).has_value(), "PEs 0 and 1 have some");
    require(!me.teams->split_2d(team_world, 2).has_value(), "a team of PE 2 cannot be made");
    me.teams->destroy(*last);
    // One free slot is not enough for a row and a column.
    require(!me.teams->split_2d(team_world, 2).has_value(), "PE 2 has one slot only");
    if (me.pe == 2)
      me.teams->destroy(alone[7]);
    const auto grid = me.teams->split_2d(team_world, 2);
    require(grid.has_value(), "two slots are enough");
    if (me.pe >= 2)
      require(grid->x == first_user_team + 7, "the slot that was freed");
    me.teams->sync(grid->x);
    me.teams->sync(grid->y);
    require(!me.teams->split_strided(team_world, 0, 1, 4).has_value(), "full again");
    require(same_everywhere(me, 1), "the world still works");
  });
}

TEST(Teams, ListsThatDoNotFitFailOnAllMembers) {
  TeamWorldOptions options;
  options.list_capacity = 10;
  run_team_world(
      8,
      [](TeamPe& me) {
        const std::vector<int> irregular = {0, 1, 3, 4, 6};
        const auto make = [&](std::uint64_t id) {
          return contains(irregular, me.pe)
                     ? me.teams->from_unique_id(id, index_in(irregular, me.pe), irregular)
                     : std::optional<TeamId>(invalid_team);
        };
        const auto first = make(1), second = make(2);
        require(first && second, "two lists of five fit");
        if (contains(irregular, me.pe))
          require(!make(3).has_value(), "a third one does not");
        // A list of two PEs is a progression and needs no room.
        require(me.teams->split_strided(team_world, 6, -3, 2).has_value(), "no list needed");
        me.teams->destroy(*first);
        const auto third = make(4);
        require(third.has_value(), "room again");
        if (contains(irregular, me.pe)) {
          expect_team(me, *second, irregular);
          expect_team(me, *third, irregular);
        }
      },
      options);
}

TEST(Teams, ListsAreMovedTogether) {
  TeamWorldOptions options;
  options.list_capacity = 12;
  run_team_world(
      7,
      [](TeamPe& me) {
        const std::vector<int> three = {0, 1, 5}, six = {0, 1, 2, 3, 5, 6};
        const auto make = [&](const std::vector<int>& list, std::uint64_t id) {
          return list_shape(list, id).make(me);
        };
        const TeamId teams[] = {make(three, 1), make(three, 2), make(three, 3), make(three, 4)};
        me.teams->destroy(teams[0]);
        me.teams->destroy(teams[2]);
        const TeamId large = make(six, 5); // no gap of six, but two of three
        if (contains(three, me.pe)) {
          expect_team(me, teams[1], three);
          expect_team(me, teams[3], three);
        }
        if (contains(six, me.pe))
          expect_team(me, large, six);
      },
      options);
}

TEST(Teams, EveryChangeIsPublished) {
  run_team_world(4, [](TeamPe& me) {
    const auto pair = me.teams->split_strided(team_world, 0, 2, 2);
    require(me.publications() == (me.pe % 2 == 0 ? 2 : me.publications()), "a new team");
    const std::uint64_t before = me.publications();
    me.teams->destroy(*pair);
    require(me.publications() == before + (me.pe % 2 == 0 ? 1 : 0), "a team that has gone");
    const TeamState& state = me.state->teams[first_user_team];
    require(state.in_use == 0 && state.my_pe == -1 && state.n_pes == 0, "state of a free slot");
  });
}

TEST(Teams, DifferentArgumentsAreNoticed) {
  const auto messages = [](const std::function<void(Teams&, int)>& split) {
    std::string text;
    try {
      run_team_world(3, [&](TeamPe& me) { split(*me.teams, me.pe); });
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      text = error.message();
    }
    return text;
  };
  EXPECT_NE(messages([](Teams& teams, int pe) {
              teams.split_strided(team_world, pe == 1 ? 1 : 0, 1, 2);
            }).find("different arguments"),
            std::string::npos);
  EXPECT_NE(messages([](Teams& teams, int pe) {
              teams.split_2d(team_world, pe == 1 ? 1 : 2);
            }).find("different arguments"),
            std::string::npos);
}

TEST(Teams, TranslationBetweenTeamsThatOverlap) {
  run_team_world(8, [](TeamPe& me) {
    const TeamId even = *me.teams->split_strided(team_world, 0, 2, 4);
    const TeamId back = *me.teams->split_strided(team_world, 5, -1, 6);
    if (me.pe == 2 || me.pe == 4 || me.pe == 0) {
      require(me.teams->translate(even, 1, back) == 3, "PE 2 is member 3 of the other team");
      require(me.teams->translate(back, 3, even) == 1, "and back");
      require(me.teams->translate(even, 3, back) == -1, "PE 6 is not in the other team");
      require(me.teams->translate(back, 0, even) == -1, "PE 5 is not in the first team");
      require(me.teams->translate(even, 4, back) == -1, "there is no such member");
    }
  });
}

TEST(MemberLists, RandomListsKeepTheirMembers) {
  constexpr std::size_t capacity = 100;
  StateBlock block = make_state(0, 1, capacity);
  const State& state = block.master();
  MemberLists lists(capacity);
  std::mt19937 random(1);
  std::vector<std::vector<int>> model(limits::max_teams);
  std::size_t used = 0;
  for (int turn = 0; turn < 20000; ++turn) {
    const std::size_t team = random() % model.size();
    if (!model[team].empty()) {
      used -= model[team].size();
      model[team].clear();
      lists.release(static_cast<int>(team));
    } else if (const std::size_t length = 1 + random() % 40; length <= lists.room()) {
      for (std::size_t i = 0; i < length; ++i)
        model[team].push_back(static_cast<int>(random() % 1000));
      used += length;
      block.change(
          [&](State& writable) { lists.place(writable, static_cast<int>(team), model[team]); });
    }
    ASSERT_EQ(lists.room(), capacity - used);
    for (std::size_t other = 0; other < model.size(); ++other)
      for (std::size_t i = 0; i < model[other].size(); ++i)
        ASSERT_EQ(
            members_of(&state)[static_cast<std::size_t>(state.teams[other].member_offset) + i],
            model[other][i]);
  }
}

// Teams of arbitrary members by a unique id.

using namespace shmemctl;
using namespace shmemctl::test;

namespace {

void expect_members(TeamPe& me, TeamId team, const std::vector<int>& members) {
  require(me.teams->n_pes(team) == static_cast<int>(members.size()), "n_pes");
  for (std::size_t i = 0; i < members.size(); ++i)
    require(me.teams->world_pe(team, static_cast<int>(i)) == members[i], "member");
  me.teams->sync(team);
}

TeamId make(TeamPe& me, std::uint64_t id, const std::vector<int>& members) {
  const auto team = me.teams->from_unique_id(id, index_in(members, me.pe), members);
  require(team.has_value(), "a team of " + text_of(members));
  return *team;
}

} // namespace

TEST(UniqueId, RandomListsWithoutTheOthers) {
  for (int n_pes = 1; n_pes <= 8; ++n_pes)
    run_team_world(n_pes, [&](TeamPe& me) {
      std::mt19937 random(static_cast<unsigned>(n_pes));
      std::vector<TeamId> live;
      for (int turn = 0; turn < 200; ++turn) {
        const std::vector<int> members = random_list(n_pes, random);
        const std::uint64_t id = random() | 1ULL << 40;
        const bool keep = random() % 8 == 0;
        if (!contains(members, me.pe))
          continue;
        const TeamId team = make(me, id, members);
        expect_members(me, team, members);
        if (!keep)
          me.teams->destroy(team);
      }
    });
}

TEST(UniqueId, AcrossNodes) {
  TeamWorldOptions options;
  options.pes_per_node = 1;
  run_team_world(
      6,
      [&](TeamPe& me) {
        std::mt19937 random(1);
        for (int turn = 0; turn < 40; ++turn) {
          const std::vector<int> members = random_list(6, random);
          if (!contains(members, me.pe))
            continue;
          const TeamId team = make(me, static_cast<std::uint64_t>(turn) + 1, members);
          expect_members(me, team, members);
          me.teams->destroy(team);
        }
      },
      options);
}

/// Every team shares a PE with the next one, and all wait for the last PE.
TEST(UniqueId, ManyAtOnceThatShareMembers) {
  constexpr int n_pes = 12;
  run_team_world(n_pes, [](TeamPe& me) {
    for (int turn = 0; turn < 20; ++turn) {
      std::vector<TeamId> made;
      for (int first = n_pes - 2; first >= 0; --first) // the last pair begins
        if (me.pe == first || me.pe == first + 1)
          made.push_back(
              make(me, static_cast<std::uint64_t>(turn * n_pes + first + 1), {first, first + 1}));
      for (const TeamId team : made)
        me.teams->sync(team);
      for (const TeamId team : made)
        me.teams->destroy(team);
    }
  });
}

/// All call PE 0 at once, each for a team of its own.
TEST(UniqueId, AllWaitForOnePe) {
  constexpr int n_pes = 16;
  run_team_world(n_pes, [](TeamPe& me) {
    std::vector<TeamId> made;
    for (int other = n_pes - 1; other > 0; --other)
      if (me.pe == 0 || me.pe == other)
        made.push_back(make(me, static_cast<std::uint64_t>(other) * 64, {other, 0})); // ids collide
    for (const TeamId team : made)
      me.teams->sync(team);
  });
}

TEST(UniqueId, AnIdMayBeUsedAgain) {
  run_team_world(3, [](TeamPe& me) {
    for (int turn = 0; turn < 100; ++turn) {
      const TeamId team = make(me, 5, {2, 0, 1});
      require(team == first_user_team, "the lowest slot");
      me.teams->destroy(team);
    }
  });
}

TEST(UniqueId, NoSlotLeft) {
  run_team_world(3, [](TeamPe& me) {
    for (int i = first_user_team; i < limits::max_teams; ++i)
      me.teams->split_strided(team_world, 1, 1, 1);
    const std::vector<int> all = {2, 1, 0};
    for (std::uint64_t id = 1; id < 20; ++id)
      require(!me.teams->from_unique_id(id, 2 - me.pe, all).has_value(), "PE 1 has no slot");
    if (me.pe != 1)
      require(me.teams->from_unique_id(20, me.pe / 2, {0, 2}).has_value(), "the others have");
    if (me.pe == 1)
      me.teams->destroy(40);
    require(me.teams->from_unique_id(21, 2 - me.pe, all) == 40, "the only one");
  });
}

TEST(UniqueId, WrongArguments) {
  run_team_world(2, [](TeamPe& me) {
    const std::vector<std::vector<int>> lists = {{}, {0, 1, 0}, {0, 2}, {-1, 0, 1}};
    for (const auto& list : lists)
      require(!me.teams->from_unique_id(1, me.pe, list).has_value(), text_of(list));
    require(!me.teams->from_unique_id(1, 1 - me.pe, {0, 1}).has_value(), "another one's number");
    require(!me.teams->from_unique_id(1, -1, {0, 1}).has_value(), "no number");
    require(!me.teams->from_unique_id(1, 2, {0, 1}).has_value(), "a number too high");
    expect_members(me, make(me, 0, {1, 0}), {1, 0}); // 0 is a valid id
  });
}

TEST(UniqueId, MembersFindEachOther) {
  for (const int pes_per_node : {6, 1})
    for (int n_pes = 1; n_pes <= 6; ++n_pes) {
      TeamWorldOptions options;
      options.pes_per_node = pes_per_node;
      const auto program = [n_pes](TeamPe& me) {
        std::mt19937 random(static_cast<unsigned>(n_pes));
        for (std::uint64_t id = 0; id < 40; ++id) {
          const std::vector<int> members = random_list(n_pes, random);
          if (!contains(members, me.pe))
            continue;
          const auto team = me.teams->from_numbers(id, index_in(members, me.pe),
                                                   static_cast<int>(members.size()));
          require(team.has_value(), "a team of " + text_of(members));
          expect_members(me, *team, members);
          me.teams->destroy(*team);
        }
      };
      run_team_world(n_pes, program, options);
    }
}

TEST(UniqueId, MembersFindEachOtherByTheSameIdAgain) {
  run_team_world(3, [](TeamPe& me) {
    for (int turn = 0; turn < 100; ++turn) {
      std::vector<int> members = {2, 0, 1};
      std::rotate(members.begin(), members.begin() + turn % 3, members.end());
      const auto team = me.teams->from_numbers(5, index_in(members, me.pe), 3);
      require(team == first_user_team, "the lowest slot");
      expect_members(me, *team, members);
      me.teams->destroy(*team);
    }
  });
}

TEST(UniqueId, NumbersThatNoMemberHas) {
  run_team_world(2, [](TeamPe& me) {
    require(!me.teams->from_numbers(1, 2, 2).has_value(), "a number too high");
    require(!me.teams->from_numbers(1, -1, 2).has_value(), "no number");
    require(!me.teams->from_numbers(1, 0, 0).has_value(), "no members");
    require(!me.teams->from_numbers(1, me.pe, 3).has_value(), "more members than PEs");
    const std::uint64_t own_id = 2 + static_cast<std::uint64_t>(me.pe);
    for (int i = first_user_team; i < limits::max_teams; ++i)
      require(me.teams->from_numbers(own_id, 0, 1).has_value(), "a team of its own");
    require(!me.teams->from_numbers(1, me.pe, 2).has_value(), "no slot");
  });
}

TEST(UniqueId, NumbersThatDoNotFitAreNoticed) {
  const auto message_of = [](int number_of_1, int members_of_1) {
    std::string message;
    try {
      run_team_world(3, [&](TeamPe& me) {
        if (me.pe == 2)
          stay_away(me);
        else
          me.teams->from_numbers(1, me.pe == 0 ? 0 : number_of_1, me.pe == 0 ? 3 : members_of_1);
      });
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      message = error.message();
    }
    return message;
  };
  const std::string same_number = message_of(0, 3), other_count = message_of(1, 2);
  EXPECT_NE(same_number.find("it has number 0 in the team"), std::string::npos) << same_number;
  EXPECT_NE(other_count.find(" members, PE "), std::string::npos) << other_count;
}

TEST(UniqueId, DifferentListsAreNoticed) {
  std::string message;
  try {
    run_team_world(3, [](TeamPe& me) {
      const std::vector<int> list = me.pe == 1 ? std::vector<int>{0, 1} : std::vector<int>{0, 1, 2};
      me.teams->from_unique_id(1, me.pe, list);
    });
  } catch (const Error& error) {
    message = error.message();
    EXPECT_EQ(error.code(), ExitCode::usage);
  }
  EXPECT_NE(message.find("its list of members differs"), std::string::npos) << message;
}

TEST(UniqueId, NamesAMissingMember) {
  std::string message;
  TeamWorldOptions options;
  options.timeout_s = 3;
  try {
    run_team_world(
        3,
        [](TeamPe& me) {
          if (me.pe == 0)
            me.teams->from_unique_id(1, 0, {0, 2});
          else
            stay_away(me);
        },
        options);
  } catch (const Error& error) {
    message = error.message();
    EXPECT_EQ(error.code(), ExitCode::deadline);
  }
  EXPECT_NE(message.find("PE 2"), std::string::npos) << message;
  EXPECT_NE(message.find("unique id"), std::string::npos) << message;
}

/// Threads of all PEs make and destroy teams at the same time: their claims on slots must neither
/// mix nor wait for each other in a circle.
TEST(TeamThreads, CreateAtTheSameTime) {
  constexpr int n_pes = 4, n_threads = 3;
  run_team_world(n_pes, [](TeamPe& me) {
    std::vector<TeamId> parents;
    for (int i = 0; i < n_threads; ++i)
      parents.push_back(*me.teams->split_strided(team_world, 0, 1, n_pes));
    std::exception_ptr failure;
    std::mutex mutex;
    std::vector<std::thread> threads;
    for (int thread = 0; thread < n_threads; ++thread)
      threads.emplace_back([&, thread] {
        try {
          const TeamId parent = parents[static_cast<std::size_t>(thread)];
          std::mt19937 random(static_cast<unsigned>(thread));
          for (int turn = 0; turn < 200; ++turn) {
            const int stride = 1 + static_cast<int>(random() % 3);
            const int n = 1 + static_cast<int>(random() % static_cast<unsigned>(1 + 3 / stride));
            const auto list = random_list(n_pes, random);
            const std::uint64_t id = random() | static_cast<std::uint64_t>(thread + 1) << 40;
            const auto child = me.teams->split_strided(parent, 0, stride, n);
            require(child.has_value(), "a split");
            if (contains(list, me.pe)) {
              const TeamId by_id = make(me, id, list);
              expect_members(me, by_id, list);
              me.teams->destroy(by_id);
            }
            const auto grid = me.teams->split_2d(parent, 1 + turn % 4);
            require(grid.has_value(), "a grid");
            if (*child != invalid_team)
              expect_members(me, *child, strided(everybody(n_pes), 0, stride, n));
            me.teams->sync(grid->y);
            me.teams->destroy(grid->x);
            me.teams->destroy(*child);
            me.teams->destroy(grid->y);
          }
        } catch (...) {
          const std::lock_guard lock(mutex);
          failure = std::current_exception();
        }
      });
    for (std::thread& thread : threads)
      thread.join();
    if (failure)
      std::rethrow_exception(failure);
  });
}

/// On PE 0 one thread waits for PE 1, which arrives only after another creation of both has ended:
/// a waiting creation must not hold the slots meanwhile.
TEST(TeamThreads, AWaitingCreationHoldsNoSlots) {
  using Create = std::function<TeamId(TeamPe&, int which)>;
  const auto early_and_late = [](TeamPe& me, const Create& create, std::atomic<bool>& begun,
                                 const std::function<bool()>& first_has_come) {
    std::thread other;
    if (me.pe == 0)
      other = std::thread([&] { EXPECT_NE(create(me, 0), invalid_team); });
    else
      me.rma->wait(first_has_come, "the first creation's beginning", 0);
    if (me.pe == 1)
      begun = true;
    me.rma->wait([&] { return begun.load(); }, "the first creation's beginning", 1);
    EXPECT_NE(create(me, 1), invalid_team);
    if (me.pe == 0)
      other.join();
    else
      EXPECT_NE(create(me, 0), invalid_team);
  };
  TeamWorldOptions options;
  options.timeout_s = 60;
  std::atomic<bool> by_id{false}, by_split{false};
  run_team_world(
      2,
      [&](TeamPe& me) {
        const TeamSync* areas = &me.teams->area(team_world);
        early_and_late(
            me,
            [](TeamPe& pe, int which) {
              return make(pe, static_cast<std::uint64_t>(7 + which), {0, 1});
            },
            by_id, [&] { return load_flag(*me.rma, areas[7].rendezvous.key, 0) != 0; });
        const TeamId parents[] = {*me.teams->split_strided(team_world, 0, 1, 2),
                                  *me.teams->split_strided(team_world, 0, 1, 2)};
        TeamSync& first = me.teams->area(parents[0]);
        const std::uint64_t before = first.epoch.value;
        early_and_late(
            me,
            [&](TeamPe& pe, int which) {
              return pe.teams->split_strided(parents[which], 0, 1, 2).value_or(invalid_team);
            },
            by_split, [&] { return load_flag(*me.rma, first.arrived[0], 1) > before; });
      },
      options);
}
