// The random programs that kernels run (tests/support/rma_program.h), by the host's operations: one
// sequential model says what memory must contain afterwards.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/rma_program.h"
#include "tests/unit/runtime/shapes.h"

namespace shmemctl::test {
namespace {

/// One PE's part of a program, by the calls of Rma.
class ProgramOnHost {
public:
  explicit ProgramOnHost(TeamPe& me) : me_(me), rma_(*me.rma) {}

  void run(const std::vector<RmaStep>& steps) {
    for (const RmaStep& step : steps)
      run(step);
    rma_.quiet();
  }

private:
  void run(const RmaStep& step) {
    std::byte *const to = me_.heap + step.to, *const from = me_.heap + step.from;
    switch (step.kind) {
    case RmaStep::put:
    case RmaStep::put_nbi:
      rma_.put(to, from, step.size, step.pe, 0, step.kind == RmaStep::put);
      break;
    case RmaStep::get:
    case RmaStep::get_nbi:
      rma_.get(to, from, step.size, step.pe, 0, step.kind == RmaStep::get);
      break;
    case RmaStep::put_value:
      put_value(to, step);
      break;
    case RmaStep::iput:
    case RmaStep::iput_wide:
    case RmaStep::iget:
    case RmaStep::iget_wide:
      strided(step);
      break;
    case RmaStep::put_signal_add:
    case RmaStep::put_signal_beside:
      put_signal(to, from, step);
      break;
    case RmaStep::wait_signal:
    case RmaStep::wait_count:
      rma_.wait_until(me_.at<std::uint64_t>(step.signal),
                      step.kind == RmaStep::wait_signal ? Compare::equal : Compare::greater_equal,
                      step.value, "a program's signal", step.pe);
      break;
    case RmaStep::own_atomic:
      own_atomic(to, step);
      break;
    case RmaStep::fence:
      rma_.fence();
      break;
    case RmaStep::barrier:
      me_.collectives->barrier(team_world);
      break;
    default:
      shared_atomic(to, step);
    }
  }

  void put_value(std::byte* to, const RmaStep& step) {
    if (step.size == 1)
      rma_.put_value(to, static_cast<std::uint8_t>(step.value), step.pe);
    else if (step.size == 2)
      rma_.put_value(to, static_cast<std::uint16_t>(step.value), step.pe);
    else if (step.size == 4)
      rma_.put_value(to, static_cast<std::uint32_t>(step.value), step.pe);
    else
      rma_.put_value(to, step.value, step.pe);
  }
  /// Element by element, as OpenSHMEM's iput and iget do.
  void strided(const RmaStep& step) {
    const bool is_put = step.kind == RmaStep::iput || step.kind == RmaStep::iput_wide;
    const bool is_wide = step.kind == RmaStep::iput_wide || step.kind == RmaStep::iget_wide;
    const std::size_t each = is_wide ? 16 : 4;
    for (std::size_t i = 0; i < step.size; ++i) {
      std::byte* const to =
          me_.heap + step.to + each * i * static_cast<std::size_t>(step.to_stride);
      const std::byte* const from =
          me_.heap + step.from + each * i * static_cast<std::size_t>(step.from_stride);
      if (is_put)
        rma_.put(to, from, each, step.pe, 0, false);
      else
        rma_.get(to, from, each, step.pe);
    }
  }
  void put_signal(std::byte* to, const std::byte* from, const RmaStep& step) {
    const bool adds = step.kind == RmaStep::put_signal_add;
    rma_.put_signal(to, from, step.size, me_.at<std::uint64_t>(step.signal), step.value,
                    adds ? SignalOp::add : SignalOp::set, step.pe, 0, !adds);
  }
  /// With the old value, which is stored after it in the heap.
  void own_atomic(std::byte* to, const RmaStep& step) {
    const auto request = [&step]() -> AtomicRequest {
      switch (static_cast<OwnAtomic>(step.size)) {
      case OwnAtomic::swap:
        return {AtomicOp::swap, 8, step.value};
      case OwnAtomic::compare_swap:
        return {AtomicOp::compare_swap, 8, step.value, step.signal};
      case OwnAtomic::add:
        return {AtomicOp::add, 8, step.value};
      case OwnAtomic::inc:
        return {AtomicOp::add, 8, 1};
      case OwnAtomic::bit_and:
        return {AtomicOp::bit_and, 8, step.value};
      case OwnAtomic::bit_or:
        return {AtomicOp::bit_or, 8, step.value};
      case OwnAtomic::bit_xor:
        return {AtomicOp::bit_xor, 8, step.value};
      default:
        return {AtomicOp::fetch, 8};
      }
    }();
    *me_.at<std::uint64_t>(step.from) = rma_.atomic(to, request, step.pe);
  }
  /// On words that several PEs change: the old value is unknown.
  void shared_atomic(std::byte* to, const RmaStep& step) {
    switch (step.kind) {
    case RmaStep::atomic_add:
      return rma_.post_atomic(to, {AtomicOp::add, 8, step.value}, step.pe);
    case RmaStep::atomic_inc:
      rma_.atomic(to, {AtomicOp::add, 4, 1}, step.pe);
      return;
    case RmaStep::atomic_xor:
      return rma_.post_atomic(to, {AtomicOp::bit_xor, 4, step.value & 0xffffffffu}, step.pe);
    case RmaStep::atomic_or:
      rma_.atomic(to, {AtomicOp::bit_or, 8, step.value}, step.pe);
      return;
    case RmaStep::atomic_and:
      return rma_.post_atomic(to, {AtomicOp::bit_and, 8, step.value}, step.pe);
    case RmaStep::atomic_swap:
      rma_.atomic(to, {AtomicOp::swap, 8, step.value}, step.pe);
      return;
    default:
      require(false, "a step of kind " + std::to_string(step.kind));
    }
  }

  TeamPe& me_;
  Rma& rma_;
};

/// Compares all of every heap. @param per_node as in TeamWorldOptions
void expect_conformance(int n_pes, int per_node, unsigned seed) {
  TeamWorldOptions options;
  options.heap_bytes = RmaPrograms::heap_bytes;
  options.pes_per_node = per_node;
  std::vector<int> nodes;
  for (int pe = 0; per_node > 0 && pe < n_pes; ++pe)
    nodes.push_back(pe / per_node);
  const RmaPrograms programs(n_pes, seed, 4, 60, 20000, nodes);
  run_team_world(
      n_pes,
      [&](TeamPe& me) {
        std::memcpy(me.heap, programs.before(me.pe).data(), RmaPrograms::heap_bytes);
        me.collectives->barrier(team_world);
        ProgramOnHost(me).run(programs.steps(me.pe));
        me.collectives->barrier(team_world);
        const std::vector<std::uint8_t>& expected = programs.after(me.pe);
        std::size_t at = 0;
        while (at < expected.size() && static_cast<std::uint8_t>(me.heap[at]) == expected[at])
          ++at;
        require(at == expected.size(), "program " + std::to_string(seed) + ": byte " +
                                           std::to_string(at) + " of PE " + std::to_string(me.pe));
        me.collectives->barrier(team_world);
      },
      options);
}

TEST(HostConformance, ProgramsOfTheModelByLoadsAndStores) {
  for (const int n_pes : {1, 2, 3, 4})
    for (unsigned seed = 0; seed < 5; ++seed)
      expect_conformance(n_pes, 0, 700 + seed);
}

TEST(HostConformance, ProgramsOfTheModelBetweenNodes) {
  for (const auto& [n_pes, per_node] : {std::pair{2, 1}, std::pair{3, 1}, std::pair{4, 2}})
    for (unsigned seed = 0; seed < 5; ++seed)
      expect_conformance(n_pes, per_node, 800 + seed);
}

} // namespace
} // namespace shmemctl::test
