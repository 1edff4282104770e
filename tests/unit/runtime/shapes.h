// Teams of every shape, with their expected members.
#pragma once

#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "tests/support/team_world.h"

namespace shmemctl::test {

/// Ends the whole world with the text; other threads must not wait for this one.
inline void require(bool condition, const std::string& what) {
  if (!condition)
    throw std::runtime_error(what);
}

/// Called by every PE of the world in the same order; returns the team, or invalid_team on PEs that
/// are not members. Intermediate teams are destroyed.
struct Shape {
  std::string name;
  std::vector<int> members;
  std::function<TeamId(TeamPe&)> make;
};

inline bool contains(const std::vector<int>& list, int value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

inline int index_in(const std::vector<int>& list, int value) {
  const auto at = std::find(list.begin(), list.end(), value);
  return at == list.end() ? -1 : static_cast<int>(at - list.begin());
}

inline std::vector<int> strided(const std::vector<int>& parent, int start, int stride, int n) {
  std::vector<int> members;
  for (int i = 0; i < n; ++i)
    members.push_back(parent[static_cast<std::size_t>(start + i * stride)]);
  return members;
}

inline std::vector<int> everybody(int n_pes) {
  std::vector<int> all;
  for (int pe = 0; pe < n_pes; ++pe)
    all.push_back(pe);
  return all;
}

inline std::string text_of(const std::vector<int>& members) {
  std::string text = "{";
  for (const int pe : members)
    text += " " + std::to_string(pe);
  return text + " }";
}

inline Shape world_shape(int n_pes) {
  return {"world", everybody(n_pes), [](TeamPe&) { return team_world; }};
}

inline Shape strided_shape(int n_pes, int start, int stride, int n) {
  return {"start " + std::to_string(start) + " stride " + std::to_string(stride) + " n " +
              std::to_string(n),
          strided(everybody(n_pes), start, stride, n), [=](TeamPe& me) {
            const auto team = me.teams->split_strided(team_world, start, stride, n);
            require(team.has_value(), "a split failed");
            return *team;
          }};
}

/// All that fit into the world.
inline std::vector<Shape> strided_shapes(int n_pes) {
  std::vector<Shape> shapes;
  for (int start = 0; start < n_pes; ++start) {
    shapes.push_back(strided_shape(n_pes, start, 0, 1));
    for (int stride = -n_pes; stride <= n_pes; ++stride)
      for (int n = 1; n <= n_pes; ++n) {
        const int last = start + stride * (n - 1);
        if (stride != 0 && last >= 0 && last < n_pes)
          shapes.push_back(strided_shape(n_pes, start, stride, n));
      }
  }
  return shapes;
}

inline Shape list_shape(const std::vector<int>& members, std::uint64_t id) {
  return {"list " + text_of(members), members, [=](TeamPe& me) {
            const int number = index_in(members, me.pe);
            if (number < 0)
              return invalid_team;
            const auto team = me.teams->from_unique_id(id, number, members);
            require(team.has_value(), "no team from a unique id");
            return *team;
          }};
}

inline std::vector<int> random_list(int n_pes, std::mt19937& random) {
  std::vector<int> members = everybody(n_pes);
  std::shuffle(members.begin(), members.end(), random);
  members.resize(1 + random() % members.size());
  return members;
}

/// Every other member of a list, backwards: a team whose parent is irregular.
inline Shape nested_shape(const std::vector<int>& parent, std::uint64_t id) {
  const int n = static_cast<int>(parent.size());
  const std::vector<int> members = strided(parent, n - 1, -2, (n + 1) / 2);
  return {"nested " + text_of(members), members, [=](TeamPe& me) {
            const TeamId outer = list_shape(parent, id).make(me);
            if (outer == invalid_team)
              return invalid_team;
            const auto team = me.teams->split_strided(outer, n - 1, -2, (n + 1) / 2);
            require(team.has_value(), "a nested split failed");
            me.teams->destroy(outer);
            return *team;
          }};
}

/// Shapes of all kinds, not all of each.
inline std::vector<Shape> some_shapes(int n_pes, std::mt19937& random) {
  std::vector<Shape> shapes = {world_shape(n_pes)};
  const auto all = strided_shapes(n_pes);
  for (int i = 0; i < 4; ++i)
    shapes.push_back(all[random() % all.size()]);
  for (int i = 0; i < 3; ++i)
    shapes.push_back(list_shape(random_list(n_pes, random), random() + 1ULL));
  shapes.push_back(nested_shape(random_list(n_pes, random), random() + 1ULL));
  return shapes;
}

/// For a PE that takes no part: its memory stays until another PE has failed (at most 30 s).
inline void stay_away(TeamPe& me) {
  const Deadline end = Deadline::after(std::chrono::seconds(60));
  while (!end.passed())
    try {
      me.rma->wait([] { return false; }, "the end of the test", -1);
    } catch (const Error& error) {
      if (error.code() == ExitCode::unavailable)
        return;
    }
}

/// The byte of PE `pe` at offset `at` in round `salt`.
inline std::byte pattern(int pe, std::size_t at, std::size_t salt) {
  const std::size_t x = (static_cast<std::size_t>(pe) * 0x9e3779b1u + at) * 0x85ebca6bu + salt;
  return static_cast<std::byte>((x >> 13) ^ (x >> 5) ^ x);
}

} // namespace shmemctl::test
