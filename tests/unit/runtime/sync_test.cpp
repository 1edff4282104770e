// The barrier, above all on slots that are reused by other members in other numbers.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>

#include "src/base/error.h"
#include "tests/unit/runtime/shapes.h"

using namespace shmemctl;
using namespace shmemctl::test;

namespace {

/// What all PEs do, in one order, each only if it takes part.
struct Step {
  enum Kind { strided_split, grid, by_id, destroy, syncs } kind = syncs;
  int team = 0; ///< number of the parent, or of the team
  int start = 0, stride = 1, n = 1;
  std::uint64_t id = 0;
  /// The expected result: teams by number; none if there is no slot.
  std::vector<int> made;
};

/// A team in the model: its members and the slot that it must get.
struct ModelTeam {
  std::vector<int> members;
  TeamId slot = invalid_team;
};

/// Generates a random program and knows its expected results.
class Model {
public:
  Model(int n_pes, unsigned seed, int n_steps) : n_pes_(n_pes), random_(seed) {
    free_.assign(static_cast<std::size_t>(n_pes), {});
    for (auto& slots : free_)
      for (TeamId slot = first_user_team; slot < limits::max_teams; ++slot)
        slots.insert(slot);
    teams.push_back({everybody(n_pes), team_world});
    live_ = {0};
    for (int i = 0; i < n_steps; ++i)
      steps.push_back(next());
  }

  std::vector<Step> steps;
  std::vector<ModelTeam> teams; ///< by number, destroyed teams included

private:
  int any_live() { return live_[random_() % live_.size()]; }

  Step next() {
    Step step;
    const unsigned dice = random_() % 100;
    if (dice < 25) {
      step.kind = Step::strided_split;
      step.team = any_live();
      const int n = static_cast<int>(teams[static_cast<std::size_t>(step.team)].members.size());
      step.start = static_cast<int>(random_()) & 0xff;
      step.start %= n;
      do {
        step.stride = static_cast<int>(random_() % static_cast<unsigned>(2 * n + 1)) - n;
        step.n = 1 + static_cast<int>(random_() % static_cast<unsigned>(n));
      } while (!fits(step, n));
      make(step, {strided(teams[static_cast<std::size_t>(step.team)].members, step.start,
                          step.stride, step.n)});
    } else if (dice < 35) {
      step.kind = Step::grid;
      step.team = any_live();
      const std::vector<int>& parent = teams[static_cast<std::size_t>(step.team)].members;
      const int n = static_cast<int>(parent.size());
      step.n = 1 + static_cast<int>(random_() % static_cast<unsigned>(n));
      std::vector<std::vector<int>> parts;
      for (int first = 0; first < n; first += step.n)
        parts.push_back(strided(parent, first, 1, std::min(step.n, n - first)));
      for (int x = 0; x < step.n; ++x)
        parts.push_back(strided(parent, x, step.n, (n - x + step.n - 1) / step.n));
      make(step, parts);
    } else if (dice < 50) {
      step.kind = Step::by_id;
      step.id = random_() + 1ULL;
      make(step, {random_list(n_pes_, random_)});
    } else if (dice < 75 && live_.size() > 1) {
      step.kind = Step::destroy;
      const std::size_t at = 1 + random_() % (live_.size() - 1);
      step.team = live_[at];
      live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(at));
      const ModelTeam& team = teams[static_cast<std::size_t>(step.team)];
      for (const int pe : team.members)
        free_[static_cast<std::size_t>(pe)].insert(team.slot);
    } else {
      step.team = any_live();
      step.n = 1 + static_cast<int>(random_() % 20);
    }
    return step;
  }

  static bool fits(const Step& step, int n) {
    const int last = step.start + step.stride * (step.n - 1);
    return last >= 0 && last < n && (step.stride != 0 || step.n == 1);
  }

  /// The lowest slot that is free on all members; in this order, all or none.
  void make(Step& step, const std::vector<std::vector<int>>& parts) {
    auto free = free_;
    std::vector<ModelTeam> made;
    for (const std::vector<int>& members : parts) {
      std::optional<TeamId> slot;
      for (const TeamId candidate : free[static_cast<std::size_t>(members.front())])
        if (!slot && std::all_of(members.begin(), members.end(), [&](int pe) {
              return free[static_cast<std::size_t>(pe)].count(candidate) > 0;
            }))
          slot = candidate;
      if (!slot)
        return;
      for (const int pe : members)
        free[static_cast<std::size_t>(pe)].erase(*slot);
      made.push_back({members, *slot});
    }
    free_ = std::move(free);
    for (ModelTeam& team : made) {
      step.made.push_back(static_cast<int>(teams.size()));
      live_.push_back(static_cast<int>(teams.size()));
      teams.push_back(std::move(team));
    }
  }

  int n_pes_;
  std::mt19937 random_;
  std::vector<std::set<TeamId>> free_; ///< by PE
  std::vector<int> live_;
};

/// One PE's execution of the program.
class Player {
public:
  Player(TeamPe& me, const Model& model) : me_(me), model_(model) { ids_[0] = team_world; }

  void play() {
    for (const Step& step : model_.steps)
      play(step);
  }

private:
  const ModelTeam& team(int number) const { return model_.teams[static_cast<std::size_t>(number)]; }
  bool in(int number) const { return contains(team(number).members, me_.pe); }

  void play(const Step& step) {
    Teams& teams = *me_.teams;
    switch (step.kind) {
    case Step::strided_split:
      if (in(step.team)) {
        const auto made = teams.split_strided(ids_[step.team], step.start, step.stride, step.n);
        require(made.has_value() == !step.made.empty(), "split_strided: is there a slot");
        if (made)
          take(step.made.front(), *made);
      }
      return;
    case Step::grid:
      if (in(step.team)) {
        const auto made = teams.split_2d(ids_[step.team], step.n);
        require(made.has_value() == !step.made.empty(), "split_2d: are there slots");
        if (!made)
          return;
        const int me = index_in(team(step.team).members, me_.pe);
        const int rows = static_cast<int>(step.made.size()) - step.n;
        take(step.made[static_cast<std::size_t>(me / step.n)], made->x);
        take(step.made[static_cast<std::size_t>(rows + me % step.n)], made->y);
      }
      return;
    case Step::by_id:
      return make_by_id(step);
    case Step::destroy:
      if (in(step.team)) {
        teams.destroy(ids_[step.team]);
        require(!teams.valid(ids_[step.team]), "destroyed");
        ids_.erase(step.team);
      }
      return;
    case Step::syncs:
      if (in(step.team))
        check_syncs(step.team, step.n);
      return;
    }
  }

  void make_by_id(const Step& step) {
    // A team that cannot be created is not in the model: its members are drawn, but discarded.
    if (step.made.empty() || !in(step.made.front()))
      return;
    const std::vector<int>& members = team(step.made.front()).members;
    const auto made = me_.teams->from_unique_id(step.id, index_in(members, me_.pe), members);
    require(made.has_value(), "a team from a unique id");
    take(step.made.front(), *made);
  }

  void take(int number, TeamId id) {
    require(id == (in(number) ? team(number).slot : invalid_team),
            "the lowest slot that is free on all members");
    if (!in(number))
      return;
    ids_[number] = id;
    check_syncs(number, 3);
  }

  /// No PE leaves a sync before all have entered: plain stores before it are visible to all after
  /// it, without any other synchronisation (ThreadSanitizer checks that too). Two sets of cells are
  /// enough, since no PE is more than one sync ahead.
  void check_syncs(int number, int turns) {
    const TeamId id = ids_[number];
    std::uint64_t& turn = turns_[number];
    for (int i = 0; i < turns; ++i) {
      const std::size_t cell = (static_cast<std::size_t>(id) * 2 + ++turn % 2) * 64;
      *me_.at<std::uint64_t>(cell) = stamp(number, turn);
      me_.teams->sync(id);
      for (const int pe : team(number).members) {
        require(seen(cell, pe) == stamp(number, turn),
                "PE " + std::to_string(me_.pe) + " left a sync of " +
                    text_of(team(number).members) + " before PE " + std::to_string(pe) + " came");
      }
    }
    me_.teams->sync(id); // before the cells are used for another team of this slot
  }

  /// That PE's cell: by a load if its memory is mapped, else by a get.
  std::uint64_t seen(std::size_t cell, int pe) const {
    const auto* own = me_.at<std::uint64_t>(cell);
    if (const void* place = me_.rma->direct(own, pe))
      return *static_cast<const std::uint64_t*>(place);
    std::uint64_t value = 0;
    me_.rma->get(&value, own, sizeof value, pe);
    return value;
  }

  static std::uint64_t stamp(int number, std::uint64_t turn) {
    return (static_cast<std::uint64_t>(number) << 32) + turn;
  }

  TeamPe& me_;
  const Model& model_;
  std::map<int, TeamId> ids_;
  std::map<int, std::uint64_t> turns_;
};

void play(int n_pes, unsigned seed, int n_steps) {
  const Model model(n_pes, seed, n_steps);
  TeamWorldOptions options;
  options.list_capacity = 4096;
  run_team_world(
      n_pes, [&](TeamPe& me) { Player(me, model).play(); }, options);
}

} // namespace

TEST(Sync, RandomTeamsAreCreatedAndDestroyed) {
  for (int n_pes = 1; n_pes <= 8; ++n_pes)
    for (unsigned seed = 0; seed < 8; ++seed)
      play(n_pes, seed, 150);
}

TEST(Sync, RandomTeamsWithMorePesThanCores) {
  play(33, 1, 120);
  play(64, 2, 40);
}

TEST(Sync, OneSlotForTeamsOfAllSizes) {
  run_team_world(8, [](TeamPe& me) {
    std::mt19937 random(3);
    for (int turn = 0; turn < 300; ++turn) {
      const int start = static_cast<int>(random() % 8);
      const int n = 1 + static_cast<int>(random() % static_cast<unsigned>(8 - start));
      const auto team = me.teams->split_strided(team_world, start, 1, n);
      require(team.has_value() && (*team == first_user_team || *team == invalid_team), "the slot");
      for (unsigned i = random() % 7; i > 0 && *team != invalid_team; --i)
        me.teams->sync(*team);
      me.teams->destroy(*team);
    }
  });
}

/// Each of these writes something into the same cells before it synchronises.
TEST(Sync, CollectivesInARowDoNotDisturbEachOther) {
  run_team_world(4, [](TeamPe& me) {
    for (int turn = 0; turn < 1500; ++turn) {
      const auto team = me.teams->split_strided(team_world, turn % 4, 1, 1);
      require(team && *team == (turn % 4 == me.pe ? first_user_team : invalid_team), "a split");
      auto* from = me.at<std::byte>(0);
      std::fill_n(from, me.pe + turn % 3, static_cast<std::byte>(me.pe));
      auto* to = me.at<std::byte>(1024);
      me.collectives->collect(team_world, to, from, static_cast<std::size_t>(me.pe + turn % 3));
      for (int pe = 0; pe < 4; ++pe)
        for (int i = 0; i < pe + turn % 3; ++i)
          require(*to++ == static_cast<std::byte>(pe), "collect");
      me.teams->destroy(*team);
    }
  });
}

TEST(Sync, AcrossNodes) {
  TeamWorldOptions options;
  options.pes_per_node = 2;
  run_team_world(
      7,
      [](TeamPe& me) {
        for (std::uint64_t turn = 1; turn <= 50; ++turn) {
          for (int pe = 0; pe < 7; ++pe)
            me.rma->put(me.at<std::uint64_t>(64 * static_cast<std::size_t>(me.pe)), &turn,
                        sizeof turn, pe);
          me.collectives->barrier(team_world); // unlike sync(), completes the puts
          for (std::size_t pe = 0; pe < 7; ++pe)
            require(*me.at<std::uint64_t>(64 * pe) == turn, "a put before a barrier");
          me.teams->sync(team_world);
        }
      },
      options);
}

TEST(Sync, NamesTheMissingPe) {
  TeamWorldOptions options;
  options.timeout_s = 3;
  for (const int absent : {0, 2}) {
    std::string message;
    try {
      run_team_world(
          3,
          [&](TeamPe& me) {
            if (me.pe != absent)
              me.teams->sync(team_world);
            else
              stay_away(me);
          },
          options);
    } catch (const Error& error) {
      message = error.message();
      EXPECT_EQ(error.code(), ExitCode::deadline);
    }
    EXPECT_NE(message.find("team sync"), std::string::npos) << message;
    EXPECT_NE(message.find("PE " + std::to_string(absent)), std::string::npos) << message;
  }
}

TEST(Sync, NotAMember) {
  run_team_world(1, [](TeamPe& me) {
    for (const TeamId team : {invalid_team, first_user_team, limits::max_teams})
      EXPECT_THROW(me.teams->sync(team), Error);
  });
}

TEST(Sync, EpochsGoOnOverAllUsesOfASlot) {
  run_team_world(3, [](TeamPe& me) {
    std::uint64_t syncs = 0;
    for (int use = 0; use < 5; ++use) {
      const TeamId team = *me.teams->split_strided(team_world, 0, 1, 3 - use % 2);
      if (team == invalid_team)
        continue;
      require(me.state->teams[team].epoch == syncs, "the epoch at the start of a use");
      for (int i = 0; i < use; ++i, ++syncs)
        me.teams->sync(team);
      me.teams->destroy(team);
      ++syncs;
      const TeamSync& area = me.teams->area(first_user_team);
      require(area.epoch.value == syncs, "the epoch goes on");
      for (const SyncCell& cell : area.arrived)
        require(cell.value == syncs, "all counters of a free slot are at the epoch");
    }
  });
}
