// The operations of a PE as the source of a round.
#include "src/instruments/bringup/pair_round.h"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>

#include "src/base/error.h"
#include "src/instruments/bringup/schedule.h"

namespace shmemctl {

namespace {

constexpr std::uint64_t words_per_cell = 8; ///< room in the pattern for each cell's values

template <class Word>
void store(std::byte* at, Word value) {
  std::atomic_ref<Word>(*reinterpret_cast<Word*>(at)).store(value, std::memory_order_relaxed);
}

std::uint64_t cut(std::uint64_t value, std::uint8_t width_bytes) {
  return width_bytes == 8 ? value : value & 0xFFFFFFFFU;
}

} // namespace

PairRound::PairRound(const PairWorld& world, int round, std::vector<PairFailure>& failures,
                     bool& signals_missed)
    : world_(world), pe_(world.rma.pe()), round_(round),
      source_(source_of(pe_, round, world.rma.n_pes())),
      target_(target_of(pe_, round, world.rma.n_pes())), failures_(failures),
      signals_missed_(signals_missed), signal_seen_(world.layout.n_sizes()) {}

bool PairRound::may(PairOp op, int source, int target) const {
  return (world_.capabilities(source, target) & needed_capability(op)) != 0;
}

PatternKey PairRound::key(PairOp op, int source, int target, std::size_t size_bytes) const {
  return {source, target, world_.transport, static_cast<int>(op), size_bytes};
}

std::uint64_t PairRound::word(PairOp op, int source, int target, AtomicTarget cell,
                              std::uint64_t index) const {
  return pattern_word(key(op, source, target, 8),
                      static_cast<std::uint64_t>(cell) * words_per_cell + index);
}

PairFailure& PairRound::fail(PairOp op, int source, int target, std::size_t size_bytes,
                             const std::string& note) {
  if (failures_.size() >= max_failures)
    return overflow_;
  PairFailure failure;
  failure.transport = world_.transport;
  failure.op = op;
  failure.source = source;
  failure.target = target;
  failure.size_bytes = size_bytes;
  failure.note = note;
  failures_.push_back(std::move(failure));
  return failures_.back();
}

void PairRound::fail_returned(PairOp op, std::uint8_t width_bytes, std::uint64_t expected,
                              std::uint64_t found, const std::string& note) {
  PairFailure& failure = fail(op, pe_, target_, width_bytes, note);
  failure.expected = fmt::format("{:0{}x}", cut(expected, width_bytes), width_bytes * 2);
  failure.found = fmt::format("{:0{}x}", cut(found, width_bytes), width_bytes * 2);
}

void PairRound::prepare() {
  const CheckBuffer& layout = world_.layout;
  if (may(PairOp::get, source_, pe_))
    for (const CheckSection& section : layout.get)
      fill_pattern(key(PairOp::get, source_, pe_, section.size_bytes), at(section.payload(source_)),
                   section.size_bytes);
  if (may(PairOp::put_signal, source_, pe_))
    for (std::size_t i = 0; i < layout.n_sizes(); ++i)
      store<std::uint64_t>(at(layout.signal_offset(source_, i)), 0);
  if (!may(PairOp::fetch_add, source_, pe_))
    return;
  for (const auto& [op, wide, narrow] :
       {std::tuple(PairOp::fetch_add, AtomicTarget::add_8, AtomicTarget::add_4),
        std::tuple(PairOp::compare_swap, AtomicTarget::swap_8, AtomicTarget::swap_4)}) {
    store<std::uint64_t>(at(layout.atomic_offset(source_, wide)), word(op, source_, pe_, wide, 0));
    store<std::uint32_t>(at(layout.atomic_offset(source_, narrow)),
                         static_cast<std::uint32_t>(word(op, source_, pe_, narrow, 0)));
  }
}

void PairRound::act() {
  if (may(PairOp::put, pe_, target_))
    timed(PairOp::put, [this] { put_all(); });
  if (may(PairOp::get, pe_, target_))
    timed(PairOp::get, [this] { get_all(); });
  if (may(PairOp::fetch_add, pe_, target_))
    atomic_all();
  if (may(PairOp::put_signal, pe_, target_))
    timed(PairOp::put_signal, [this] { put_signal_all(); });
}

template <class Operation>
void PairRound::attempt(PairOp op, std::size_t size_bytes, Operation operation) {
  try {
    operation();
  } catch (const Error& error) {
    // Throws if the job has failed, because then this pair is not to blame.
    world_.rma.health().check();
    if (error.code() == ExitCode::deadline)
      throw;
    fail(op, pe_, target_, size_bytes, error.message());
  }
}

void PairRound::put_all() {
  const CheckBuffer& layout = world_.layout;
  for (std::size_t i = 0; i < layout.n_sizes(); ++i) {
    const std::size_t size_bytes = layout.put[i].size_bytes;
    std::byte* from = at(layout.staging[i].payload(0));
    fill_pattern(key(PairOp::put, pe_, target_, size_bytes), from, size_bytes);
    attempt(PairOp::put, size_bytes, [&] {
      world_.rma.put(at(layout.put[i].payload(pe_)), from, size_bytes, target_, 0, i % 2 == 0);
    });
  }
  attempt(PairOp::put, 0, [&] { world_.rma.quiet(); });
}

void PairRound::get_all() {
  const CheckBuffer& layout = world_.layout;
  for (std::size_t i = 0; i < layout.n_sizes(); ++i) {
    const CheckSection& landing = layout.landing[i];
    std::fill_n(at(landing.begin_bytes), landing.total_bytes(), sentinel);
    attempt(PairOp::get, landing.size_bytes, [&] {
      world_.rma.get(at(landing.payload(0)), at(layout.get[i].payload(pe_)), landing.size_bytes,
                     target_, 0, i % 2 == 0);
    });
  }
  attempt(PairOp::get, 0, [&] { world_.rma.quiet(); });
  for (const CheckSection& landing : layout.landing)
    verify_landing(landing);
}

void PairRound::atomic_all() {
  timed(PairOp::fetch_add, [this] {
    fetch_add(AtomicTarget::add_8, 8);
    fetch_add(AtomicTarget::add_4, 4);
  });
  timed(PairOp::compare_swap, [this] {
    compare_swap(AtomicTarget::swap_8, 8);
    compare_swap(AtomicTarget::swap_4, 4);
  });
  attempt(PairOp::fetch_add, 0, [&] { world_.rma.quiet(); });
}

void PairRound::fetch_add(AtomicTarget cell, std::uint8_t width_bytes) {
  const std::uint64_t before = word(PairOp::fetch_add, pe_, target_, cell, 0);
  const std::uint64_t operand = word(PairOp::fetch_add, pe_, target_, cell, 1);
  attempt(PairOp::fetch_add, width_bytes, [&] {
    const std::uint64_t old =
        world_.rma.atomic(at(world_.layout.atomic_offset(pe_, cell)),
                          {AtomicOp::add, width_bytes, cut(operand, width_bytes), 0}, target_);
    if (cut(old, width_bytes) != cut(before, width_bytes))
      fail_returned(PairOp::fetch_add, width_bytes, before, old, "the old value that it returned");
  });
}

void PairRound::compare_swap(AtomicTarget cell, std::uint8_t width_bytes) {
  const std::uint64_t before = word(PairOp::compare_swap, pe_, target_, cell, 0);
  const std::uint64_t after = word(PairOp::compare_swap, pe_, target_, cell, 1);
  const auto swap = [&](std::uint64_t compare, std::uint64_t operand) {
    return world_.rma.atomic(
        at(world_.layout.atomic_offset(pe_, cell)),
        {AtomicOp::compare_swap, width_bytes, cut(operand, width_bytes), cut(compare, width_bytes)},
        target_);
  };
  attempt(PairOp::compare_swap, width_bytes, [&] {
    std::uint64_t old = swap(before, after);
    if (cut(old, width_bytes) != cut(before, width_bytes))
      fail_returned(PairOp::compare_swap, width_bytes, before, old,
                    "the old value that it returned");
    // A compare-and-swap whose comparison fails must change nothing.
    old = swap(before, ~after);
    if (cut(old, width_bytes) != cut(after, width_bytes))
      fail_returned(PairOp::compare_swap, width_bytes, after, old,
                    "the value that it returned where the comparison does not hold");
  });
}

void PairRound::put_signal_all() {
  const CheckBuffer& layout = world_.layout;
  for (std::size_t i = 0; i < layout.n_sizes(); ++i) {
    const std::size_t size_bytes = layout.put_signal[i].size_bytes;
    std::byte* from = at(layout.staging[i].payload(0));
    fill_pattern(key(PairOp::put_signal, pe_, target_, size_bytes), from, size_bytes);
    auto* signal = reinterpret_cast<std::uint64_t*>(at(layout.signal_offset(pe_, i)));
    // The cell was 0, so set and add lead to the same value.
    attempt(PairOp::put_signal, size_bytes, [&] {
      world_.rma.put_signal(at(layout.put_signal[i].payload(pe_)), from, size_bytes, signal,
                            signal_value(pe_, target_, i),
                            i % 2 == 0 ? SignalOp::set : SignalOp::add, target_, 0, i % 2 != 0);
    });
  }
  attempt(PairOp::put_signal, 0, [&] { world_.rma.quiet(); });
}

} // namespace shmemctl
