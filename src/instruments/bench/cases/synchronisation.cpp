#include "src/instruments/bench/cases/synchronisation.h"

#include <atomic>
#include <chrono>

#include "src/instruments/bench/cases/case_makers.h"

namespace shmemctl::bench {

namespace {

constexpr int rounds_per_pe = 4;
constexpr int max_rounds = 64;
constexpr std::chrono::microseconds lateness{20};
constexpr std::size_t line_bytes = 64;

void spend(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

class BarrierCase final : public SynchronisationCase {
public:
  using SynchronisationCase::SynchronisationCase;

private:
  void synchronise() override { context().collectives.barrier(team_world); }
};

class SyncCase final : public SynchronisationCase {
public:
  using SynchronisationCase::SynchronisationCase;

private:
  void synchronise() override { context().teams.sync(team_world); }
};

} // namespace

std::size_t SynchronisationCase::bytes_for(int n_pes) const {
  return 2 * line_bytes * static_cast<std::size_t>(n_pes);
}

/// The cell in which this PE finds the round number that `pe` has written.
std::uint64_t* SynchronisationCase::cell(int pe) const {
  return reinterpret_cast<std::uint64_t*>(context().memory +
                                          line_bytes * static_cast<std::size_t>(pe));
}

void SynchronisationCase::set_up() {
  calls_ = rounds_ = 0;
}

void SynchronisationCase::iterate(std::uint64_t, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i)
    synchronise();
  calls_ += count;
}

std::optional<WrongByte> SynchronisationCase::check_entered(std::uint64_t round) {
  for (int pe = 0; pe < context().n_pes; ++pe) {
    const std::uint64_t shown = std::atomic_ref(*cell(pe)).load(std::memory_order_acquire);
    if (shown < round)
      return WrongByte{context().pe, static_cast<std::uint64_t>(pe) * line_bytes, round, shown,
                       "number of the call that PE " + std::to_string(pe) + " had begun when PE " +
                           std::to_string(context().pe) + " left it"};
  }
  return std::nullopt;
}

std::optional<WrongByte> SynchronisationCase::verify(std::uint64_t iterations) {
  if (calls_ != iterations)
    return WrongByte{context().pe, 0, iterations, calls_,
                     "calls of PE " + std::to_string(context().pe)};
  std::optional<WrongByte> wrong;
  const int rounds = std::min(max_rounds, rounds_per_pe * context().n_pes);
  for (int i = 0; i < rounds; ++i) {
    const std::uint64_t round = ++rounds_;
    if (i % context().n_pes == context().pe)
      spend(lateness);
    for (int pe = 0; pe < context().n_pes; ++pe)
      context().rma.put(cell(context().pe), &round, sizeof round, pe);
    context().rma.quiet();
    synchronise();
    if (!wrong)
      wrong = check_entered(round);
  }
  return wrong;
}

SHMEMCTL_CASE(barrier_by_host, BarrierCase);
SHMEMCTL_CASE(sync_by_host, SyncCase);

} // namespace shmemctl::bench
