// Runs cases as the engine does, on PEs that are threads.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "src/instruments/bench/cases/host_case.h"
#include "tests/support/team_world.h"

namespace shmemctl::test {

/// The number of iterations of each call of iterate().
using Calls = std::vector<std::uint64_t>;

struct Drive {
  int n_pes = 2;
  int pes_per_node = 0; ///< 0: all mapped
  bench::Point point;
  Calls calls = {1, 3, 70, 1, 130};
  std::uint64_t seed = 7;
  /// Called on each PE after the last iteration, before verify(): may corrupt memory.
  std::function<void(bench::HostCase&, TeamPe&, std::byte* memory, std::size_t size_bytes)> damage;
};

using Make = std::function<std::unique_ptr<bench::Case>(const bench::Point&)>;

using Found = std::optional<bench::WrongByte>;

inline std::size_t bytes_for(const Make& make, const Drive& how) {
  const auto probe = make(how.point);
  return dynamic_cast<const bench::HostCase&>(*probe).bytes_for(how.n_pes);
}

/// The part of one PE; returns what verify() reported.
inline Found drive_here(const Make& make, const Drive& how, TeamPe& me, std::size_t heap_bytes) {
  const std::size_t size_bytes = bytes_for(make, how);
  const auto made = make(how.point);
  auto& host_case = dynamic_cast<bench::HostCase&>(*made);
  std::memset(me.heap, 0, size_bytes);
  // Memory beyond the case's own must not change.
  std::memset(me.heap + size_bytes, 0x5a, heap_bytes - size_bytes);
  host_case.begin(
      {*me.rma, *me.teams, *me.collectives, me.pe, me.n_pes, me.heap, how.seed, me.transports});
  std::uint64_t first = 0;
  for (const std::uint64_t count : how.calls) {
    me.collectives->barrier(team_world);
    host_case.iterate(first, count);
    first += count;
  }
  me.collectives->barrier(team_world);
  if (how.damage)
    how.damage(host_case, me, me.heap, size_bytes);
  Found wrong = host_case.verify(first);
  for (std::size_t at = size_bytes; at < heap_bytes; ++at)
    if (me.heap[at] != std::byte{0x5a})
      throw Error(ExitCode::finding, "the case", "keep to its memory", "it wrote behind it",
                  "give it more");
  me.collectives->barrier(team_world);
  return wrong;
}

/// Runs points in one world after each other (worlds are expensive under a sanitizer); they differ
/// in `point` and `calls` only. Returns what verify() reported, by point and PE.
inline std::vector<std::vector<Found>> drive_all(const Make& make, const std::vector<Drive>& hows) {
  const int n_pes = hows.at(0).n_pes;
  TeamWorldOptions options;
  options.pes_per_node = hows.at(0).pes_per_node;
  options.heap_bytes = 4096;
  for (const Drive& how : hows)
    options.heap_bytes = std::max(options.heap_bytes, (bytes_for(make, how) + 8191) / 4096 * 4096);
  std::vector<std::vector<Found>> wrong(hows.size(),
                                        std::vector<Found>(static_cast<std::size_t>(n_pes)));
  run_team_world(
      n_pes,
      [&](TeamPe& me) {
        for (std::size_t i = 0; i < hows.size(); ++i) {
          const std::size_t used =
              std::min(options.heap_bytes, (bytes_for(make, hows[i]) + 8191) / 4096 * 4096);
          wrong[i][static_cast<std::size_t>(me.pe)] = drive_here(make, hows[i], me, used);
        }
      },
      options);
  return wrong;
}

inline std::vector<Found> drive(const Make& make, const Drive& how) {
  return drive_all(make, {how}).at(0);
}

inline std::string describe_wrong_byte(const bench::WrongByte& wrong) {
  return "PE " + std::to_string(wrong.pe) + " offset " + std::to_string(wrong.offset_bytes) +
         " expected " + std::to_string(wrong.expected) + " found " + std::to_string(wrong.found) +
         ": " + wrong.what;
}

inline void expect_right(const Make& make, const Drive& how) {
  for (const auto& wrong : drive(make, how))
    EXPECT_FALSE(wrong) << describe_wrong_byte(*wrong);
}

inline std::string describe(const bench::CaseInfo& info, const Drive& how) {
  return info.name + ", " + std::to_string(how.n_pes) + " PEs, " +
         std::to_string(how.point.size_bytes) + " bytes, " + to_string(how.point.traffic) + ", " +
         to_string(how.point.direction) + ", window " + std::to_string(how.point.window) +
         (how.pes_per_node != 0 ? ", not mapped" : "");
}

} // namespace shmemctl::test
