// Runs cases as the engine does, on PEs that are threads.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "src/bench/cases/ground.h"
#include "tests/support/team_world.h"

namespace shmemctl::test {

/// A call of iterate() for each, as many iterations.
using Calls = std::vector<std::uint64_t>;

struct Drive {
  int n_pes = 2;
  int pes_per_node = 0; ///< 0: all mapped
  bench::Point point;
  Calls calls = {1, 3, 70, 1, 130};
  std::uint64_t seed = 7;
  /// On each PE after the last iteration, before verify(): may damage memory.
  std::function<void(bench::HostCase&, TeamPe&, std::byte* memory, std::size_t size_bytes)> damage;
};

using Make = std::function<std::unique_ptr<bench::Case>(const bench::Point&)>;

/// Returns what verify() said on each PE.
inline std::vector<std::optional<bench::WrongByte>> drive(const Make& make, const Drive& how) {
  const auto probe = make(how.point);
  const auto* probed = dynamic_cast<const bench::HostCase*>(probe.get());
  const std::size_t size_bytes = probed->bytes_for(how.n_pes);
  TeamWorldOptions options;
  options.heap_bytes = (size_bytes + 8191) / 4096 * 4096;
  options.pes_per_node = how.pes_per_node;
  std::vector<std::optional<bench::WrongByte>> wrong(static_cast<std::size_t>(how.n_pes));
  run_team_world(
      how.n_pes,
      [&](TeamPe& me) {
        const auto made = make(how.point);
        auto& host_case = dynamic_cast<bench::HostCase&>(*made);
        // What lies behind the case's memory must stay as it is.
        std::memset(me.heap + size_bytes, 0x5a, options.heap_bytes - size_bytes);
        host_case.begin({*me.rma, *me.teams, *me.collectives, me.pe, me.n_pes, me.heap, how.seed});
        std::uint64_t first = 0;
        for (const std::uint64_t count : how.calls) {
          me.collectives->barrier(team_world);
          host_case.iterate(first, count);
          first += count;
        }
        me.collectives->barrier(team_world);
        if (how.damage)
          how.damage(host_case, me, me.heap, size_bytes);
        wrong[static_cast<std::size_t>(me.pe)] = host_case.verify(first);
        for (std::size_t at = size_bytes; at < options.heap_bytes; ++at)
          if (me.heap[at] != std::byte{0x5a})
            throw Error(ExitCode::finding, "the case", "keep to its memory", "it wrote behind it",
                        "give it more");
      },
      options);
  return wrong;
}

inline std::string words_of(const bench::WrongByte& wrong) {
  return "PE " + std::to_string(wrong.pe) + " offset " + std::to_string(wrong.offset_bytes) +
         " expected " + std::to_string(wrong.expected) + " found " + std::to_string(wrong.found) +
         ": " + wrong.what;
}

inline void expect_right(const Make& make, const Drive& how) {
  for (const auto& wrong : drive(make, how))
    EXPECT_FALSE(wrong) << words_of(*wrong);
}

inline std::string describe(const bench::CaseInfo& info, const Drive& how) {
  return info.name + ", " + std::to_string(how.n_pes) + " PEs, " +
         std::to_string(how.point.size_bytes) + " bytes, " + to_string(how.point.traffic) + ", " +
         to_string(how.point.direction) + ", window " + std::to_string(how.point.window) +
         (how.pes_per_node != 0 ? ", not mapped" : "");
}

} // namespace shmemctl::test
