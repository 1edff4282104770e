// Random programs of one-sided operations, and what memory has to hold behind them: a sequential
// model. Run by kernels on GPUs and by threads of the host.
//
// A program has phases with a barrier of all PEs behind each. In phase k all PEs put into area k %
// 2 of each other, everybody into a slice of its own, and get from the other area, which is at
// rest. Payloads with signals are looked at in the phase itself, behind the wait.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

namespace shmemctl::test {

struct RmaStep {
  enum Kind {
    put,
    put_nbi,
    get,
    get_nbi,
    put_value,
    iput,
    iget,
    put_signal_add,
    put_signal_beside,
    wait_signal,
    wait_count,
    atomic_add,
    atomic_inc,
    atomic_xor,
    atomic_or,
    atomic_and,
    atomic_swap,
    own_atomic, ///< the model knows the old value, since no other PE uses this word
    iput_wide,
    iget_wide,
    fence,
    barrier,
    kinds
  };
  Kind kind;
  int pe;
  std::uint64_t to, from, size;        ///< offsets in the heap, bytes
  std::uint64_t signal, value;         ///< offset (compare_swap: expected); added, or waited for
  std::int32_t to_stride, from_stride; ///< in 4-byte elements, or 16-byte ones (`_wide`)
};
/// What an own_atomic does: RmaStep::size. `value` is the operand.
enum class OwnAtomic : std::uint64_t {
  fetch,
  swap,
  compare_swap,
  add,
  inc,
  bit_and,
  bit_or,
  bit_xor,
  kinds
};

class RmaPrograms {
public:
  /// Size of one of each PE's two areas.
  static constexpr std::uint64_t area_bytes = 256 << 10;
  static constexpr std::uint64_t own_bytes = 512 << 10; ///< sources; targets of gets
  static constexpr std::uint64_t source = 2 * area_bytes, target = source + own_bytes / 2;
  static constexpr std::uint64_t words = source + own_bytes; ///< atomics and signals
  static constexpr std::uint64_t heap_bytes = words + 4096;

  /// @param node_of_pe PEs of one node reach each other by memory, others by a network; empty: all
  ///                   by memory. Words that several PEs change are changed over the network only:
  ///                   both ways on one word do not mix.
  RmaPrograms(int n_pes, unsigned seed, int phases, int steps, std::uint64_t max_bytes,
              std::vector<int> node_of_pe = {})
      : n_(n_pes), random_(seed), most_(max_bytes), nodes_(std::move(node_of_pe)),
        steps_(at(n_pes)), heaps_(at(n_pes), std::vector<std::uint8_t>(heap_bytes)),
        sent_(at(n_pes), std::vector<std::uint64_t>(at(n_pes))) {
    for (int pe = 0; pe < n_; ++pe)
      fill(pe);
    start_ = heaps_;
    for (int phase = 0; phase < phases; ++phase)
      make(phase, steps);
  }

  const std::vector<RmaStep>& steps(int pe) const { return steps_[at(pe)]; }
  /// What a PE's heap holds before and behind.
  const std::vector<std::uint8_t>& before(int pe) const { return start_[at(pe)]; }
  const std::vector<std::uint8_t>& after(int pe) const { return heaps_[at(pe)]; }

private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  int any_pe() { return static_cast<int>(below(at(n_))); }

  void fill(int pe) {
    for (std::uint64_t i = source; i < target; ++i)
      heaps_[at(pe)][i] = static_cast<std::uint8_t>(random_());
  }
  std::uint64_t slice_bytes() const { return area_bytes / at(n_) / 64 * 64; }
  std::uint64_t some_size() { return 1 + below(below(6) == 0 ? most_ : 48); }

  /// In an area: near the beginning of a slice, where the last phase has put.
  std::uint64_t somewhere_used() { return at(any_pe()) * slice_bytes() + below(2000); }

  /// Room of `size` bytes from `next` on, with a gap; false if there is none.
  static bool take(std::uint64_t& next, std::uint64_t end, std::uint64_t size, std::uint64_t align,
                   std::uint64_t gap, std::uint64_t& place) {
    place = (next + gap + align - 1) / align * align;
    if (place + size > end)
      return false;
    next = place + size;
    return true;
  }
  template <class T>
  T& word(int pe, std::uint64_t offset) {
    return *reinterpret_cast<T*>(heaps_[at(pe)].data() + offset);
  }
  void move(int to_pe, std::uint64_t to, int from_pe, std::uint64_t from, std::uint64_t size) {
    std::memcpy(heaps_[at(to_pe)].data() + to, heaps_[at(from_pe)].data() + from, size);
  }

  struct Payload {
    int from, to;
    std::uint64_t offset, size, signal, value; ///< counts have no value
  };

  void make(int phase, int count) {
    const std::uint64_t area = at(phase % 2) * area_bytes, other = area_bytes - area;
    std::vector<std::vector<std::uint64_t>> next(at(n_), std::vector<std::uint64_t>(at(n_)));
    std::vector<std::uint64_t> got(at(n_), target);
    std::vector<Payload> payloads;
    // What gets bring is of the phase before: the other area does not change in this one.
    for (int pe = 0; pe < n_; ++pe) {
      for (int to = 0; to < n_; ++to)
        next[at(pe)][at(to)] = area + at(pe) * slice_bytes();
      for (int i = 0; i < count; ++i)
        add_step(pe, area, other, next[at(pe)], got[at(pe)], payloads);
    }
    for (const Payload& payload : payloads)
      look(payload, got[at(payload.to)]);
    for (int pe = 0; pe < n_; ++pe)
      push(pe, {RmaStep::barrier, 0, 0, 0, 0, 0, 0, 0, 0});
  }
  void push(int pe, const RmaStep& step) { steps_[at(pe)].push_back(step); }

  void add_step(int pe, std::uint64_t area, std::uint64_t other, std::vector<std::uint64_t>& next,
                std::uint64_t& got, std::vector<Payload>& payloads) {
    const auto kind = static_cast<RmaStep::Kind>(below(RmaStep::barrier));
    RmaStep step{kind, any_pe(), 0, 0, some_size(), 0, 0, 1, 1};
    const std::uint64_t slice_end = area + (at(pe) + 1) * slice_bytes();
    std::uint64_t& there = next[at(step.pe)];
    const std::uint64_t gap = below(20), sources = target - source;
    switch (kind) {
    case RmaStep::put:
    case RmaStep::put_nbi:
      if (!take(there, slice_end, step.size, 1, gap, step.to))
        return;
      if (step.size > 0 && below(2) == 0)
        put_before(pe, step);
      step.from = source + below(sources - step.size);
      move(step.pe, step.to, pe, step.from, step.size);
      break;
    case RmaStep::get:
    case RmaStep::get_nbi:
      if (!take(got, words, step.size, 1, gap, step.to))
        return;
      step.from = other + somewhere_used();
      move(pe, step.to, step.pe, step.from, step.size);
      break;
    case RmaStep::put_value:
      step.size = std::uint64_t{1} << below(4);
      if (!take(there, slice_end, step.size, step.size, gap, step.to))
        return;
      step.value = random_();
      std::memcpy(heaps_[at(step.pe)].data() + step.to, &step.value, step.size);
      break;
    case RmaStep::iput:
    case RmaStep::iget:
    case RmaStep::iput_wide:
    case RmaStep::iget_wide: {
      const std::uint64_t each = kind == RmaStep::iput || kind == RmaStep::iget ? 4 : 16;
      step.size = 1 + below(20); // words
      step.to_stride = static_cast<std::int32_t>(1 + below(3));
      step.from_stride = static_cast<std::int32_t>(1 + below(3));
      const std::uint64_t span = step.size * each * at(step.to_stride);
      const bool is_put = kind == RmaStep::iput || kind == RmaStep::iput_wide;
      if (!(is_put ? take(there, slice_end, span, each, gap, step.to)
                   : take(got, words, span, each, gap, step.to)))
        return;
      step.from = (is_put ? source + below(4000) : other + somewhere_used()) / each * each;
      for (std::uint64_t i = 0; i < step.size; ++i)
        move(is_put ? step.pe : pe, step.to + each * i * at(step.to_stride), is_put ? pe : step.pe,
             step.from + each * i * at(step.from_stride), each);
      break;
    }
    case RmaStep::put_signal_add:
      if (!take(there, slice_end, step.size, 1, gap, step.to))
        return;
      step.from = source + below(sources - step.size);
      step.signal = words + 2048 + 8 * at(pe);
      step.value = 1;
      move(step.pe, step.to, pe, step.from, step.size);
      word<std::uint64_t>(step.pe, step.signal) += 1;
      payloads.push_back({pe, step.pe, step.to, step.size, step.signal, 0});
      sent_[at(pe)][at(step.pe)] += 1;
      break;
    case RmaStep::put_signal_beside: { // data and signal in 16 bytes
      std::uint64_t place = 0;
      if (!take(there, slice_end, 16, 16, gap, place))
        return;
      step.size = 8;
      step.to = place;
      step.signal = place + 8;
      step.from = source + below(sources - 8);
      step.value = random_() | 1;
      move(step.pe, step.to, pe, step.from, 8);
      word<std::uint64_t>(step.pe, step.signal) = step.value;
      payloads.push_back({pe, step.pe, step.to, 8, step.signal, step.value});
      break;
    }
    case RmaStep::atomic_add:
      if (mixes_paths(pe, step.pe))
        return;
      step.to = words + 8 * below(8);
      step.value = random_();
      word<std::uint64_t>(step.pe, step.to) += step.value;
      break;
    case RmaStep::atomic_inc:
      if (mixes_paths(pe, step.pe))
        return;
      step.to = words + 256 + 4 * below(8);
      word<std::uint32_t>(step.pe, step.to) += 1;
      break;
    case RmaStep::atomic_xor:
      if (mixes_paths(pe, step.pe))
        return;
      step.to = words + 512 + 4 * below(8);
      step.value = random_();
      word<std::uint32_t>(step.pe, step.to) ^= static_cast<std::uint32_t>(step.value);
      break;
    case RmaStep::atomic_or:
      if (mixes_paths(pe, step.pe))
        return;
      step.to = words + 768 + 8 * below(8);
      step.value = std::uint64_t{1} << below(64);
      word<std::uint64_t>(step.pe, step.to) |= step.value;
      break;
    case RmaStep::atomic_and:
      if (mixes_paths(pe, step.pe))
        return;
      step.to = words + 1536 + 8 * below(8);
      step.value = ~(std::uint64_t{1} << below(64));
      word<std::uint64_t>(step.pe, step.to) &= step.value;
      break;
    case RmaStep::own_atomic:
      if (!take(got, words, 8, 8, 0, step.from))
        return;
      step.to = words + 1280 + 8 * at(pe);
      step.size = below(static_cast<std::uint64_t>(OwnAtomic::kinds));
      step.value = random_();
      // every other wait finds the value
      step.signal = word<std::uint64_t>(step.pe, step.to) + below(2);
      move(pe, step.from, step.pe, step.to, 8);
      change(word<std::uint64_t>(step.pe, step.to), static_cast<OwnAtomic>(step.size), step.value,
             step.signal);
      break;
    case RmaStep::atomic_swap: // a word at that PE that only this PE uses
      step.to = words + 1024 + 8 * at(pe);
      step.value = random_();
      word<std::uint64_t>(step.pe, step.to) = step.value;
      break;
    default: // a wait belongs to a payload
      step.kind = RmaStep::fence;
      break;
    }
    push(pe, step);
  }

  bool mixes_paths(int pe, int to) const {
    return !nodes_.empty() && nodes_[at(pe)] == nodes_[at(to)];
  }
  static void change(std::uint64_t& word, OwnAtomic op, std::uint64_t value,
                     std::uint64_t expected) {
    switch (op) {
    case OwnAtomic::swap:
      word = value;
      break;
    case OwnAtomic::compare_swap:
      word = word == expected ? value : word;
      break;
    case OwnAtomic::add:
      word += value;
      break;
    case OwnAtomic::inc:
      word += 1;
      break;
    case OwnAtomic::bit_and:
      word &= value;
      break;
    case OwnAtomic::bit_or:
      word |= value;
      break;
    case OwnAtomic::bit_xor:
      word ^= value;
      break;
    default:
      break;
    }
  }

  /// Another put to the place of `step`, which a fence orders behind it and which covers but a part
  /// of the same bytes from now on.
  void put_before(int pe, RmaStep& step) {
    RmaStep earlier = step;
    earlier.kind = RmaStep::put_nbi;
    earlier.from = source + below(target - source - earlier.size);
    move(earlier.pe, earlier.to, pe, earlier.from, earlier.size);
    push(pe, earlier);
    push(pe, {RmaStep::fence, 0, 0, 0, 0, 0, 0, 0, 0});
    const std::uint64_t begin = below(step.size);
    step.to += begin;
    step.size = 1 + below(step.size - begin);
  }

  /// The receiver waits for the signal, and copies the payload at once.
  void look(const Payload& payload, std::uint64_t& got) {
    // While several payloads are on their way, a count does not say which have come, until all
    // have. A word beside data held anything before.
    const bool counts = payload.signal >= words;
    push(payload.to,
         {counts ? RmaStep::wait_count : RmaStep::wait_signal, payload.from, 0, 0, 0,
          payload.signal, counts ? sent_[at(payload.from)][at(payload.to)] : payload.value, 1, 1});
    std::uint64_t place = 0;
    if (!take(got, words, payload.size, 1, 0, place))
      return;
    push(payload.to, {RmaStep::get, payload.to, place, payload.offset, payload.size, 0, 0, 1, 1});
    move(payload.to, place, payload.to, payload.offset, payload.size);
  }

  int n_;
  std::mt19937 random_;
  std::uint64_t most_;
  std::vector<int> nodes_;
  std::vector<std::vector<RmaStep>> steps_;
  std::vector<std::vector<std::uint8_t>> heaps_, start_;
  std::vector<std::vector<std::uint64_t>> sent_;
};

} // namespace shmemctl::test
