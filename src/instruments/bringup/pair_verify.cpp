// The part of a PE as the target of a round: it verifies its own memory.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <thread>

#include "src/instruments/bringup/pair_round.h"
#include "src/instruments/bringup/schedule.h"

namespace shmemctl {

namespace {

constexpr std::size_t shown_bytes = 8;
constexpr const char* nothing_arrived = "nothing arrived";
constexpr const char* rest_missing = "from here on nothing arrived";
constexpr const char* outside = "bytes outside the transfer were overwritten";

constexpr const char* late = "it arrived after quiet had returned";

template <class Word>
Word load(const std::byte* at) {
  return std::atomic_ref<Word>(*reinterpret_cast<Word*>(const_cast<std::byte*>(at)))
      .load(std::memory_order_acquire);
}

std::string hex(const std::byte* bytes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < std::min(count, shown_bytes); ++i)
    text += fmt::format("{:02x}", std::to_integer<unsigned>(bytes[i]));
  return text;
}

std::string hex_pattern(const PatternKey& key, std::size_t from, std::size_t count) {
  std::byte bytes[shown_bytes];
  const std::size_t shown = std::min(count, shown_bytes);
  for (std::size_t i = 0; i < shown; ++i)
    bytes[i] = pattern_byte(key, from + i);
  return hex(bytes, shown);
}

std::string arrived_at(int pe) {
  return fmt::format("it arrived at PE {} instead", pe);
}

} // namespace

std::uint64_t PairRound::signal_value(int source, int target, std::size_t size_index) const {
  // Never 0, which is the cell's initial value.
  return pattern_word(key(PairOp::put_signal, source, target, 8), 1000 + size_index) | 1U;
}

bool PairRound::compare_payload(PairOp op, int source, int target, const std::byte* found,
                                std::size_t size_bytes) {
  const PatternKey expected = key(op, source, target, size_bytes);
  const std::optional<std::size_t> differs = pattern_difference(expected, found, size_bytes);
  if (!differs)
    return true;
  const std::size_t left = size_bytes - *differs;
  const int stray = op == PairOp::get ? -1 : stray_source(op, found, size_bytes);
  if (stray >= 0 && stray != source) {
    PairFailure& failure =
        fail(op, stray, target_of(stray, round_, world_.rma.n_pes()), size_bytes, arrived_at(pe_));
    failure.found = hex(found, size_bytes);
    return false;
  }
  PairFailure& failure = fail(op, source, target, size_bytes, "");
  failure.offset_bytes = *differs;
  failure.expected = hex_pattern(expected, *differs, left);
  failure.found = hex(found + *differs, left);
  if (!sentinel_difference(found + *differs, left))
    failure.note = *differs == 0 ? nothing_arrived : rest_missing;
  return false;
}

void PairRound::verify_landing(const CheckSection& landing) {
  const std::byte* begin = at(landing.begin_bytes);
  const std::size_t end = landing.payload_bytes + landing.size_bytes;
  compare_payload(PairOp::get, pe_, target_, begin + landing.payload_bytes, landing.size_bytes);
  if (sentinel_difference(begin, landing.payload_bytes) ||
      sentinel_difference(begin + end, landing.stride_bytes - end))
    fail(PairOp::get, pe_, target_, landing.size_bytes, outside);
}

bool PairRound::signal_arrived(std::size_t size_index) const {
  return load<std::uint64_t>(at(world_.layout.signal_offset(source_, size_index))) ==
         signal_value(source_, pe_, size_index);
}

void PairRound::await_signals() {
  if (!may(PairOp::put_signal, source_, pe_) || signals_missed_)
    return;
  const auto timeout = std::chrono::duration<double>(world_.signal_timeout_s);
  const Deadline end = Deadline::after(timeout);
  for (std::size_t i = 0; i < world_.layout.n_sizes(); ++i) {
    world_.rma.wait([&] { return signal_arrived(i) || end.passed(); }, "pair check: signal",
                    source_);
    if (!signal_arrived(i)) {
      signals_missed_ = true; // verify() reports which one, when the source is known to be done
      return;
    }
    signal_seen_[i] = true;
    const CheckSection& section = world_.layout.put_signal[i];
    const std::size_t before = failures_.size();
    if (!compare_payload(PairOp::put_signal, source_, pe_, at(section.payload(source_)),
                         section.size_bytes) &&
        failures_.size() > before && failures_.back().note.empty())
      failures_.back().note = "the signal arrived before the payload";
  }
}

void PairRound::verify() {
  const CheckBuffer& layout = world_.layout;
  timed(PairOp::put, [&] {
    for (const CheckSection& section : layout.put)
      verify_section(PairOp::put, section, false);
  });
  timed(PairOp::put_signal, [&] {
    for (std::size_t i = 0; i < layout.n_sizes(); ++i)
      verify_section(PairOp::put_signal, layout.put_signal[i], signal_seen_[i]);
  });
  // The source has read these bytes by get. They are overwritten, because the next round uses
  // different data.
  for (const CheckSection& section : layout.get)
    std::fill_n(at(section.payload(source_)), section.size_bytes, sentinel);
  timed(PairOp::put_signal, [this] { verify_signals(); });
  // Verified together, because they are so few words that their time need not be split.
  timed(PairOp::fetch_add, [this] { verify_atomics(); });
}

void PairRound::verify_section(PairOp op, const CheckSection& section, bool payload_was_verified) {
  const std::size_t own = section.slot_of(source_);
  std::byte* slot = at(section.slot_begin(own));
  const std::size_t end = section.payload_bytes + section.size_bytes;
  if (may(op, source_, pe_)) {
    if (!payload_was_verified)
      compare_payload(op, source_, pe_, slot + section.payload_bytes, section.size_bytes);
    if (sentinel_difference(slot, section.payload_bytes) ||
        sentinel_difference(slot + end, section.stride_bytes - end))
      fail(op, source_, pe_, section.size_bytes, outside);
    std::fill_n(slot, section.stride_bytes, sentinel);
  }
  for (std::size_t other = 0; other < section.slots; ++other)
    verify_slot_of_others(op, section, other);
}

void PairRound::verify_slot_of_others(PairOp op, const CheckSection& section, std::size_t slot) {
  std::byte* begin = at(section.slot_begin(slot));
  if (!sentinel_difference(begin, section.stride_bytes))
    return;
  const std::byte* found = begin + section.payload_bytes;
  // If each PE has its own slot, the slot identifies the source, even for a single byte.
  const int stray = section.slots == static_cast<std::size_t>(world_.rma.n_pes())
                        ? static_cast<int>(slot)
                        : stray_source(op, found, section.size_bytes);
  if (stray >= 0)
    fail_stray(op, stray, found, section.size_bytes);
  else
    fail(op, source_, pe_, section.size_bytes, outside);
  std::fill_n(begin, section.stride_bytes, sentinel);
}

void PairRound::fail_stray(PairOp op, int stray, const std::byte* found, std::size_t size_bytes) {
  const int meant_for = target_of(stray, round_, world_.rma.n_pes());
  const auto bytes_of = [&](int target) {
    return !pattern_difference(key(op, stray, target, size_bytes), found,
                               std::min(size_bytes, shown_bytes));
  };
  const bool is_late = !bytes_of(meant_for) && bytes_of(pe_);
  PairFailure& failure = fail(op, stray, is_late ? pe_ : meant_for, size_bytes,
                              is_late ? std::string(late) : arrived_at(pe_));
  failure.found = hex(found, size_bytes);
}

int PairRound::stray_source(PairOp op, const std::byte* found, std::size_t size_bytes) const {
  constexpr std::size_t enough_bytes = 8; // fewer bytes could match by chance
  if (size_bytes < enough_bytes)
    return -1;
  const int n_pes = world_.rma.n_pes();
  for (int other = 0; other < n_pes; ++other)
    if (!pattern_difference(key(op, other, target_of(other, round_, n_pes), size_bytes), found,
                            enough_bytes))
      return other;
  return -1;
}

void PairRound::verify_signals() {
  const CheckBuffer& layout = world_.layout;
  if (may(PairOp::put_signal, source_, pe_))
    for (std::size_t i = 0; i < layout.n_sizes(); ++i) {
      std::byte* cell = at(layout.signal_offset(source_, i));
      const auto found = load<std::uint64_t>(cell);
      const std::uint64_t expected = signal_value(source_, pe_, i);
      if (found != expected) {
        PairFailure& failure =
            fail(PairOp::put_signal, source_, pe_, layout.put_signal[i].size_bytes,
                 found == 0 ? "the signal did not arrive" : "the signal's value");
        failure.expected = fmt::format("{:016x}", expected);
        failure.found = fmt::format("{:016x}", found);
      }
      std::fill_n(cell, sizeof(std::uint64_t), sentinel);
    }
  verify_idle_cells(layout.signals, PairOp::put_signal, PairOp::put_signal);
}

void PairRound::verify_atomics() {
  const CheckBuffer& layout = world_.layout;
  if (may(PairOp::fetch_add, source_, pe_)) {
    const auto check = [&](PairOp op, AtomicTarget cell, std::uint64_t expected, bool wide) {
      std::byte* word_at = at(layout.atomic_offset(source_, cell));
      const std::uint64_t found =
          wide ? load<std::uint64_t>(word_at) : load<std::uint32_t>(word_at);
      const std::size_t width_bytes = wide ? 8 : 4;
      if (!wide)
        expected &= 0xFFFFFFFFU;
      if (found != expected) {
        PairFailure& failure = fail(op, source_, pe_, width_bytes, "the word in memory");
        failure.expected = fmt::format("{:0{}x}", expected, width_bytes * 2);
        failure.found = fmt::format("{:0{}x}", found, width_bytes * 2);
      }
      std::fill_n(word_at, width_bytes, sentinel);
    };
    const auto value = [&](PairOp op, AtomicTarget cell, std::uint64_t index) {
      return word(op, source_, pe_, cell, index);
    };
    for (const AtomicTarget cell : {AtomicTarget::add_8, AtomicTarget::add_4})
      check(PairOp::fetch_add, cell,
            value(PairOp::fetch_add, cell, 0) + value(PairOp::fetch_add, cell, 1),
            cell == AtomicTarget::add_8);
    for (const AtomicTarget cell : {AtomicTarget::swap_8, AtomicTarget::swap_4})
      check(PairOp::compare_swap, cell, value(PairOp::compare_swap, cell, 1),
            cell == AtomicTarget::swap_8);
  }
  verify_idle_cells(layout.atomics, PairOp::fetch_add, PairOp::compare_swap);
}

void PairRound::verify_idle_cells(const CheckSection& section, PairOp first, PairOp second) {
  for (std::size_t slot = 0; slot < section.slots; ++slot) {
    std::byte* begin = at(section.slot_begin(slot));
    const auto differs = sentinel_difference(begin, section.stride_bytes);
    if (!differs)
      continue;
    const int other = static_cast<int>(slot);
    const PairOp op = *differs < section.stride_bytes / 2 ? first : second;
    bool is_late = false;
    for (std::size_t i = 0; op == PairOp::put_signal && i < world_.layout.n_sizes(); ++i)
      is_late = is_late || load<std::uint64_t>(at(world_.layout.signal_offset(other, i))) ==
                               signal_value(other, pe_, i);
    if (other == source_) // something was written next to the word
      fail(op, other, pe_, 8, outside);
    else if (is_late)
      fail(op, other, pe_, 8, late);
    else
      fail(op, other, target_of(other, round_, world_.rma.n_pes()), 8, arrived_at(pe_));
    std::fill_n(begin, section.stride_bytes, sentinel);
  }
}

} // namespace shmemctl
