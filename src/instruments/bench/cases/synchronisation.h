// Barrier and sync.
#pragma once

#include "src/instruments/bench/cases/host_case.h"

namespace shmemctl::bench {

/// A call that returns only after all PEs have begun it. The timed loop contains nothing but the
/// call; verify() makes more calls and checks this property.
class SynchronisationCase : public HostCase {
public:
  using HostCase::HostCase;

  std::size_t bytes_for(int n_pes) const override;
  bool measures() const override { return true; }
  std::uint64_t bytes_per_iteration() const override { return 0; }
  void iterate(std::uint64_t first, std::uint64_t count) override;
  /// Collective. In each of several rounds, every PE writes the round's number to all PEs before
  /// its call; one PE does so late. After the call, each PE checks that it has the numbers of all.
  std::optional<WrongByte> verify(std::uint64_t iterations) override;

protected:
  virtual void synchronise() = 0;

private:
  void set_up() override;
  std::uint64_t* cell(int pe) const;
  std::optional<WrongByte> check_entered(std::uint64_t round);

  std::uint64_t calls_ = 0, rounds_ = 0;
};

} // namespace shmemctl::bench
