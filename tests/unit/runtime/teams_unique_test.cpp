// Teams of arbitrary members by a unique id.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "src/base/error.h"
#include "src/runtime/cells.h"
#include "tests/unit/runtime/shapes.h"

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

TEST(UniqueId, IsRandomAndNeverZero) {
  std::set<std::uint64_t> ids;
  for (int i = 0; i < 1000; ++i)
    ids.insert(Teams::unique_id());
  EXPECT_EQ(ids.size(), 1000u);
  EXPECT_EQ(ids.count(0), 0u);
}

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

/// All come to PE 0 at once, each for a team of its own.
TEST(UniqueId, OnePeThatAllWaitFor) {
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
    expect_members(me, make(me, 0, {1, 0}), {1, 0}); // 0 is an id like others
  });
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

TEST(UniqueId, AMemberThatStaysAwayIsNamed) {
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

/// On PE 0 one thread waits for PE 1, which comes only after another creation of both has ended:
/// who waits for others may not keep the slots meanwhile.
TEST(TeamThreads, WhoWaitsForOthersKeepsNothing) {
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
            by_id, [&] { return look_at(*me.rma, areas[7].rendezvous.key, 0) != 0; });
        const TeamId parents[] = {*me.teams->split_strided(team_world, 0, 1, 2),
                                  *me.teams->split_strided(team_world, 0, 1, 2)};
        TeamSync& first = me.teams->area(parents[0]);
        const std::uint64_t before = first.epoch.value;
        early_and_late(
            me,
            [&](TeamPe& pe, int which) {
              return pe.teams->split_strided(parents[which], 0, 1, 2).value_or(invalid_team);
            },
            by_split, [&] { return look_at(*me.rma, first.arrived[0], 1) > before; });
      },
      options);
}
