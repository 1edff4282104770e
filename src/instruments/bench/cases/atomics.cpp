// Atomic operations on words of a peer. Each PE has its own words there, so that their values
// follow from the number of operations.
#include <atomic>
#include <cstring>

#include "src/base/error.h"
#include "src/instruments/bench/cases/case_makers.h"
#include "src/instruments/bench/cases/transfer_buffers.h"

namespace shmemctl::bench {

namespace {

/// The operand of one kind of operation, and the word after j operations (modulo its width). Both
/// depend only on the number of the operation, so that verify() needs no replay.
template <class Word>
struct Fetch {
  static constexpr AtomicOp op = AtomicOp::fetch;
  static Word operand(std::uint64_t) { return 0; }
  static Word after(std::uint64_t) { return static_cast<Word>(0x5a17c0de00000001ULL); }
};

/// Values that differ from one operation to the next.
template <class Word>
struct Stored {
  static Word operand(std::uint64_t j) { return after(j + 1); }
  static Word after(std::uint64_t j) { return static_cast<Word>((j + 1) * 0x9e3779b97f4a7c15ULL); }
};
template <class Word>
struct Set : Stored<Word> {
  static constexpr AtomicOp op = AtomicOp::set;
};
template <class Word>
struct Swap : Stored<Word> {
  static constexpr AtomicOp op = AtomicOp::swap;
};
/// The expected value is always the current one, so that every exchange succeeds.
template <class Word>
struct CompareSwap : Stored<Word> {
  static constexpr AtomicOp op = AtomicOp::compare_swap;
};

template <class Word>
struct Add {
  static constexpr AtomicOp op = AtomicOp::add;
  static constexpr Word step = static_cast<Word>(0x100000001b3ULL);
  static Word operand(std::uint64_t) { return step; }
  static Word after(std::uint64_t j) { return static_cast<Word>(j * step); }
};
template <class Word>
struct Increment {
  static constexpr AtomicOp op = AtomicOp::add;
  static Word operand(std::uint64_t) { return 1; }
  static Word after(std::uint64_t j) { return static_cast<Word>(j); }
};

template <class Word>
Word bit_of(std::uint64_t j) {
  return static_cast<Word>(Word{1} << (j % (8 * sizeof(Word))));
}
/// A word whose lowest j bits are set.
template <class Word>
Word low_bits(std::uint64_t j) {
  return j >= 8 * sizeof(Word) ? static_cast<Word>(-1) : static_cast<Word>(bit_of<Word>(j) - 1);
}
/// Clears, sets or flips one bit after the other.
template <class Word>
struct And {
  static constexpr AtomicOp op = AtomicOp::bit_and;
  static Word operand(std::uint64_t j) { return static_cast<Word>(~bit_of<Word>(j)); }
  static Word after(std::uint64_t j) { return static_cast<Word>(~low_bits<Word>(j)); }
};
template <class Word>
struct Or {
  static constexpr AtomicOp op = AtomicOp::bit_or;
  static Word operand(std::uint64_t j) { return bit_of<Word>(j); }
  static Word after(std::uint64_t j) { return low_bits<Word>(j); }
};
template <class Word>
struct Xor {
  static constexpr AtomicOp op = AtomicOp::bit_xor;
  static Word operand(std::uint64_t j) { return bit_of<Word>(j); }
  static Word after(std::uint64_t j) {
    constexpr std::uint64_t bits = 8 * sizeof(Word);
    const Word low = static_cast<Word>(bit_of<Word>(j) - 1);
    return j / bits % 2 == 0 ? low : static_cast<Word>(~low);
  }
};

/// Atomics through the runtime, which return the old value.
struct ByRma {
  static constexpr bool direct = false, fetches = true;
  template <class Kind, class Word>
  [[gnu::always_inline]] static Word execute(Rma& rma, std::byte* word, std::ptrdiff_t, int pe,
                                             Word operand, Word compare) {
    return static_cast<Word>(rma.atomic(
        word,
        {Kind::op, sizeof(Word), operand, Kind::op == AtomicOp::compare_swap ? compare : Word{0}},
        pe));
  }
  static void complete(Rma& rma) { rma.quiet(); }
};
/// The same without the old value: over a network they are under way until complete().
struct Posted {
  static constexpr bool direct = false, fetches = false;
  template <class Kind, class Word>
  [[gnu::always_inline]] static Word execute(Rma& rma, std::byte* word, std::ptrdiff_t, int pe,
                                             Word operand, Word) {
    rma.post_atomic(word, {Kind::op, sizeof(Word), operand, Word{0}}, pe);
    return 0;
  }
  static void complete(Rma& rma) { rma.quiet(); }
};
/// Atomic instructions of the processor on mapped memory.
struct Bare {
  static constexpr bool direct = true, fetches = true;
  template <class Kind, class Word>
  [[gnu::always_inline]] static Word execute(Rma&, std::byte* word, std::ptrdiff_t delta_bytes, int,
                                             Word operand, Word) {
    static_assert(Kind::op == AtomicOp::add);
    return std::atomic_ref(*reinterpret_cast<Word*>(word + delta_bytes))
        .fetch_add(operand, std::memory_order_seq_cst);
  }
  static void complete(Rma&) {}
};

template <template <class> class KindOf, class Path, bool one_by_one>
class AtomicCase final : public HostCase {
public:
  using HostCase::HostCase;

  std::size_t bytes_for(int n_pes) const override {
    return line_bytes * words_per_peer() *
           static_cast<std::size_t>(peers_of_a_sender(point(), n_pes));
  }
  bool measures() const override { return !routes_.to.empty(); }
  std::uint64_t bytes_per_iteration() const override { return measures() ? point().size_bytes : 0; }
  std::uint64_t operations_per_iteration() const override { return measures() ? 1 : 0; }

  void iterate(std::uint64_t first, std::uint64_t count) override {
    if (routes_.to.empty())
      return;
    if (point().size_bytes == 8)
      iterate_words<std::uint64_t>(first, count);
    else
      iterate_words<std::uint32_t>(first, count);
  }

  std::uint64_t batch_multiple() const override { return words_per_peer(); }

  std::optional<WrongByte> verify(std::uint64_t iterations) override {
    return point().size_bytes == 8 ? verify_words<std::uint64_t>(iterations)
                                   : verify_words<std::uint32_t>(iterations);
  }

  std::string cannot_run(Runtime& runtime) const override {
    return Path::direct ? unmapped_peer(runtime) : "";
  }

private:
  static constexpr std::size_t line_bytes = 64;

  std::uint64_t words_per_peer() const {
    return one_by_one ? 1 : static_cast<std::uint64_t>(std::max(point().window, 1));
  }
  /// The offset of word `number` in that area.
  std::size_t offset_bytes(std::uint64_t area, std::uint64_t number) const {
    return (area * words_per_peer() + number) * line_bytes;
  }
  std::byte* word(std::uint64_t area, std::uint64_t number) const {
    return context().memory + offset_bytes(area, number);
  }

  void set_up() override {
    if (point().size_bytes != 4 && point().size_bytes != 8)
      throw Error(ExitCode::usage, "atomic", "",
                  "unsupported size of " + std::to_string(point().size_bytes) + " bytes",
                  "pass -b 4 or -b 8")
          .on_all_pes();
    routes_ = routes_of(point(), context().pe, context().n_pes);
    peers_ = static_cast<std::uint64_t>(peers_of_a_sender(point(), context().n_pes));
    deltas_ = deltas_to(routes_.to);
    for (std::uint64_t area = 0; area < peers_; ++area)
      for (std::uint64_t number = 0; number < words_per_peer(); ++number) {
        const std::uint64_t initial = point().size_bytes == 8 ? KindOf<std::uint64_t>::after(0)
                                                              : KindOf<std::uint32_t>::after(0);
        std::memcpy(word(area, number), &initial, point().size_bytes);
      }
  }

  template <class Word>
  void iterate_words(std::uint64_t first, std::uint64_t count) {
    if (!one_by_one)
      iterate_windows<Word>(first, count);
    else if (peers_ == 1)
      iterate_to_one_peer<Word>(first, count);
    else
      iterate_one_by_one<Word>(first, count);
  }

  template <class Word>
  void iterate_one_by_one(std::uint64_t first, std::uint64_t count) {
    using Kind = KindOf<Word>;
    const std::uint64_t peers = peers_;
    const int* const to = routes_.to.data();
    const std::ptrdiff_t* const deltas = deltas_.data();
    std::byte* const memory = context().memory;
    Rma& rma = context().rma;
    Word fetched = 0;
    std::uint64_t peer = first % peers, turn = first / peers;
    for (std::uint64_t i = 0; i < count; ++i) {
      fetched =
          Path::template execute<Kind, Word>(rma, memory + peer * line_bytes, deltas[peer],
                                             to[peer], Kind::operand(turn), Kind::after(turn));
      if (++peer < peers)
        continue;
      peer = 0;
      ++turn;
    }
    Path::complete(rma);
    fetched_ = fetched;
  }

  /// Uses so few variables that all stay in registers. On Intel's processors a locked instruction
  /// takes 1.5 times as long after a store, or after a load that depends on another load.
  template <class Word>
  void iterate_to_one_peer(std::uint64_t first, std::uint64_t count) {
    using Kind = KindOf<Word>;
    const int pe = routes_.to[0];
    const std::ptrdiff_t delta_bytes = deltas_[0];
    std::byte* const memory = context().memory;
    Rma& rma = context().rma;
    Word fetched = 0;
    for (std::uint64_t turn = first; turn < first + count; ++turn)
      fetched = Path::template execute<Kind, Word>(rma, memory, delta_bytes, pe,
                                                   Kind::operand(turn), Kind::after(turn));
    Path::complete(rma);
    fetched_ = fetched;
  }

  /// The operations of a window are in flight together, each on its own word.
  template <class Word>
  void iterate_windows(std::uint64_t first, std::uint64_t count) {
    using Kind = KindOf<Word>;
    const std::uint64_t words = words_per_peer();
    // Copies, so that they stay in registers.
    const std::uint64_t peers = peers_;
    const int* const to = routes_.to.data();
    const std::ptrdiff_t* const deltas = deltas_.data();
    std::byte* const memory = context().memory;
    Rma& rma = context().rma;
    Word fetched = 0;
    std::uint64_t peer = first % peers, operation = first / peers, under_way = 0;
    std::uint64_t number = operation % words, turn = operation / words;
    for (std::uint64_t i = 0; i < count; ++i) {
      fetched = Path::template execute<Kind, Word>(
          rma, memory + (peer * words + number) * line_bytes, deltas[peer], to[peer],
          Kind::operand(turn), Kind::after(turn));
      if (++under_way == words) {
        Path::complete(rma);
        under_way = 0;
      }
      if (++peer < peers)
        continue;
      peer = 0;
      if (++number < words)
        continue;
      number = 0;
      ++turn;
    }
    if (under_way > 0)
      Path::complete(rma);
    fetched_ = fetched;
  }

  template <class Word>
  std::optional<WrongByte> verify_words(std::uint64_t iterations) const {
    using Kind = KindOf<Word>;
    const std::uint64_t words = words_per_peer();
    for (std::size_t area = 0; area < routes_.from.size(); ++area)
      for (std::uint64_t number = 0; number < words; ++number) {
        const std::uint64_t to_area = iterations > area ? (iterations - area - 1) / peers_ + 1 : 0;
        const std::uint64_t turns = to_area > number ? (to_area - number - 1) / words + 1 : 0;
        Word found = 0;
        std::memcpy(&found, word(area, number), sizeof found);
        const Word expected = Kind::after(turns);
        const std::size_t at = offset_bytes(area, number);
        if (found != expected)
          return WrongByte{context().pe, at, expected, found,
                           "word after " + std::to_string(turns) + " operations of PE " +
                               std::to_string(routes_.from[area])};
        if (auto wrong = stray_byte(context(), at + sizeof found, line_bytes - sizeof found))
          return wrong;
      }
    return verify_fetched<Word>(iterations);
  }

  /// Checks the result of the last operation: the word before it.
  template <class Word>
  std::optional<WrongByte> verify_fetched(std::uint64_t iterations) const {
    using Kind = KindOf<Word>;
    if (!Path::fetches || !measures() || iterations == 0 || Kind::op == AtomicOp::set)
      return std::nullopt;
    const std::uint64_t last = iterations - 1, peer = last % peers_, operation = last / peers_;
    const Word expected = Kind::after(operation / words_per_peer());
    if (fetched_ == expected)
      return std::nullopt;
    return WrongByte{
        routes_.to[peer],
        static_cast<std::uint64_t>(word(peer, operation % words_per_peer()) - context().memory),
        expected, fetched_,
        "value that iteration " + std::to_string(last) + " of PE " + std::to_string(context().pe) +
            " fetched"};
  }

  Routes routes_;
  std::uint64_t peers_ = 1;
  std::vector<std::ptrdiff_t> deltas_; ///< by peer: distance to its mapped memory
  std::uint64_t fetched_ = 0;
};

} // namespace

SHMEMCTL_CASE(atomic_fetch_by_host, AtomicCase<Fetch, ByRma, true>);
SHMEMCTL_CASE(atomic_set_by_host, AtomicCase<Set, ByRma, true>);
SHMEMCTL_CASE(atomic_swap_by_host, AtomicCase<Swap, ByRma, true>);
SHMEMCTL_CASE(atomic_compare_swap_by_host, AtomicCase<CompareSwap, ByRma, true>);
SHMEMCTL_CASE(atomic_fetch_add_by_host, AtomicCase<Add, ByRma, true>);
SHMEMCTL_CASE(atomic_fetch_inc_by_host, AtomicCase<Increment, ByRma, true>);
SHMEMCTL_CASE(atomic_fetch_and_by_host, AtomicCase<And, ByRma, true>);
SHMEMCTL_CASE(atomic_fetch_or_by_host, AtomicCase<Or, ByRma, true>);
SHMEMCTL_CASE(atomic_fetch_xor_by_host, AtomicCase<Xor, ByRma, true>);
SHMEMCTL_CASE(atomic_rate_by_host, AtomicCase<Add, Posted, false>);
SHMEMCTL_CASE(bare_atomic_by_host, AtomicCase<Add, Bare, true>);

} // namespace shmemctl::bench
