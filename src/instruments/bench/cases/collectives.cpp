// Collectives over all PEs.
#include <cstring>

#include "src/instruments/bench/cases/case_makers.h"
#include "src/instruments/bench/cases/transfer_buffers.h"

namespace shmemctl::bench {

namespace {

/// The arguments of a collective; `size_bytes` is the size of one PE's block.
struct Blocks {
  const HostCaseContext& context;
  std::size_t size_bytes;
  std::byte *source, *target;
};
/// Bytes [from, from + size_bytes) of a PE's source, which must be at offset `at` of the target.
struct Piece {
  int pe;
  std::size_t from, at, size_bytes;
};

/// By default, each PE contributes one block, and the result is one block.
struct CollectiveKind {
  /// The blocks that a PE contributes, which are counted once as payload.
  static std::size_t source_blocks(int) { return 1; }
  static bool gives(int) { return true; }
  static std::size_t target_blocks(int) { return 1; }
};

struct Broadcast : CollectiveKind {
  static constexpr int root = 0;
  static bool gives(int pe) { return pe == root; }
  static void call(const Blocks& it) {
    it.context.collectives.broadcast(team_world, it.target, it.source, it.size_bytes, root);
  }
  static std::vector<Piece> result(const Blocks& it) { return {{root, 0, 0, it.size_bytes}}; }
};

/// The target contains the blocks of all PEs, in the order of the PEs.
struct Gathered : CollectiveKind {
  static std::size_t target_blocks(int n_pes) { return static_cast<std::size_t>(n_pes); }
  static std::vector<Piece> result(const Blocks& it) {
    std::vector<Piece> pieces;
    for (int pe = 0; pe < it.context.n_pes; ++pe)
      pieces.push_back({pe, 0, static_cast<std::size_t>(pe) * it.size_bytes, it.size_bytes});
    return pieces;
  }
};
struct Fcollect : Gathered {
  static void call(const Blocks& it) {
    it.context.collectives.fcollect(team_world, it.target, it.source, it.size_bytes);
  }
};
struct Collect : Gathered {
  static void call(const Blocks& it) {
    it.context.collectives.collect(team_world, it.target, it.source, it.size_bytes);
  }
};

struct Alltoall : Gathered {
  static std::size_t source_blocks(int n_pes) { return static_cast<std::size_t>(n_pes); }
  static void call(const Blocks& it) {
    it.context.collectives.alltoall(team_world, it.target, it.source, it.size_bytes);
  }
  static std::vector<Piece> result(const Blocks& it) {
    std::vector<Piece> pieces = Gathered::result(it);
    for (Piece& piece : pieces)
      piece.from = static_cast<std::size_t>(it.context.pe) * it.size_bytes;
    return pieces;
  }
};

/// The memory and the loop that all collectives share.
template <class Kind>
class CollectiveBase : public HostCase {
public:
  using HostCase::HostCase;

  std::size_t bytes_for(int n_pes) const override {
    return target_offset_bytes(n_pes) +
           (Kind::target_blocks(n_pes) * point().size_bytes + 63) / 64 * 64;
  }
  bool measures() const override { return true; }
  std::uint64_t bytes_per_iteration() const override {
    return Kind::gives(context().pe) ? Kind::source_blocks(context().n_pes) * point().size_bytes
                                     : 0;
  }

  void iterate(std::uint64_t first, std::uint64_t count) override {
    for (std::uint64_t number = first; number < first + count; ++number)
      Kind::call(blocks(number));
  }

protected:
  std::size_t target_offset_bytes(int n_pes) const {
    return source_bytes(Kind::source_blocks(n_pes) * point().size_bytes);
  }
  static std::size_t variant_offset_bytes(std::uint64_t number) {
    return number % variants * variant_step_bytes;
  }
  Blocks blocks(std::uint64_t number) const {
    std::byte* const memory = context().memory;
    return {context(), point().size_bytes, memory + variant_offset_bytes(number),
            memory + target_offset_bytes(context().n_pes)};
  }
  WrongByte wrong(std::size_t offset_bytes, std::uint64_t expected, std::uint64_t found,
                  std::uint64_t number, const std::string& what) const {
    return {context().pe, offset_bytes, expected, found,
            what + " in iteration " + std::to_string(number)};
  }
  /// Checks that nothing was written after the result.
  std::optional<WrongByte> verify_rest(std::uint64_t number) const {
    const std::size_t at = target_offset_bytes(context().n_pes) +
                           Kind::target_blocks(context().n_pes) * point().size_bytes;
    const auto difference = compare_zero(context().memory + at, bytes_for(context().n_pes) - at);
    if (!difference)
      return std::nullopt;
    return wrong(at + difference->offset_bytes, 0, difference->found, number, "after the result");
  }
};

template <class Kind>
class MovingCase final : public CollectiveBase<Kind> {
public:
  using CollectiveBase<Kind>::CollectiveBase;

  std::optional<WrongByte> verify(std::uint64_t iterations) override {
    if (iterations == 0)
      return std::nullopt;
    const HostCaseContext& context = this->context();
    const std::uint64_t last = iterations - 1;
    const std::size_t target = this->target_offset_bytes(context.n_pes);
    for (const Piece& piece : Kind::result(this->blocks(last))) {
      const auto difference =
          compare_pattern(context.memory + target + piece.at, piece.size_bytes, context.seed,
                          piece.pe, this->variant_offset_bytes(last) + piece.from);
      if (difference)
        return this->wrong(target + piece.at + difference->offset_bytes, difference->expected,
                           difference->found, last, "block of PE " + std::to_string(piece.pe));
    }
    return this->verify_rest(last);
  }

private:
  void set_up() override {
    const HostCaseContext& context = this->context();
    fill_pattern(context.memory, this->target_offset_bytes(context.n_pes), context.seed,
                 context.pe);
  }
};

/// Element `index` of a PE's source. Floats are small whole numbers, so that their sums are exact.
template <class Element>
Element element_of(std::uint64_t seed, int pe, std::uint64_t index) {
  const std::uint64_t word = pattern_word(seed, pe, index);
  if constexpr (std::is_floating_point_v<Element>)
    return static_cast<Element>(static_cast<std::int64_t>(word & 1023) - 512);
  else
    return static_cast<Element>(word);
}

template <class Element>
struct ElementName;
template <>
struct ElementName<std::int64_t> {
  static constexpr ElementType type = ElementType::int64;
};
template <>
struct ElementName<float> {
  static constexpr ElementType type = ElementType::float32;
};

template <class E>
struct Reduce : CollectiveKind {
  using Element = E;
  static void call(const Blocks& it) {
    it.context.collectives.reduce(team_world, it.target, it.source, it.size_bytes / sizeof(E),
                                  ElementName<E>::type, ReduceOp::sum);
  }
  static std::size_t first_byte(const Blocks&) { return 0; }
};
template <class E>
struct ReduceScatter : CollectiveKind {
  using Element = E;
  static std::size_t source_blocks(int n_pes) { return static_cast<std::size_t>(n_pes); }
  static void call(const Blocks& it) {
    it.context.collectives.reduce_scatter(team_world, it.target, it.source,
                                          it.size_bytes / sizeof(E), ElementName<E>::type,
                                          ReduceOp::sum);
  }
  static std::size_t first_byte(const Blocks& it) {
    return static_cast<std::size_t>(it.context.pe) * it.size_bytes;
  }
};

template <class Kind>
class ReducingCase final : public CollectiveBase<Kind> {
  using Element = typename Kind::Element;

public:
  using CollectiveBase<Kind>::CollectiveBase;

  std::optional<WrongByte> verify(std::uint64_t iterations) override {
    if (iterations == 0)
      return std::nullopt;
    const HostCaseContext& context = this->context();
    const std::uint64_t last = iterations - 1;
    const Blocks blocks = this->blocks(last);
    const std::size_t first =
        (this->variant_offset_bytes(last) + Kind::first_byte(blocks)) / sizeof(Element);
    for (std::size_t i = 0; i < blocks.size_bytes / sizeof(Element); ++i) {
      Element found, expected{};
      std::memcpy(&found, blocks.target + i * sizeof found, sizeof found);
      for (int pe = 0; pe < context.n_pes; ++pe)
        expected = sum(expected, element_of<Element>(context.seed, pe, first + i));
      // Bit for bit. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison)
      if (std::memcmp(&found, &expected, sizeof found) != 0)
        return this->wrong(this->target_offset_bytes(context.n_pes) + i * sizeof found,
                           bits(expected), bits(found), last,
                           "bits of element " + std::to_string(i));
    }
    return this->verify_rest(last);
  }

private:
  /// Adds two elements; integers wrap around.
  static Element sum(Element left, Element right) {
    if constexpr (std::is_floating_point_v<Element>)
      return left + right;
    else
      return static_cast<Element>(static_cast<std::uint64_t>(left) +
                                  static_cast<std::uint64_t>(right));
  }
  static std::uint64_t bits(Element element) {
    std::uint64_t word = 0;
    std::memcpy(&word, &element, sizeof element);
    return word;
  }

  void set_up() override {
    const HostCaseContext& context = this->context();
    for (std::size_t i = 0; i < this->target_offset_bytes(context.n_pes) / sizeof(Element); ++i) {
      const auto element = element_of<Element>(context.seed, context.pe, i);
      std::memcpy(context.memory + i * sizeof element, &element, sizeof element);
    }
  }
};

} // namespace

SHMEMCTL_CASE(broadcast_by_host, MovingCase<Broadcast>);
SHMEMCTL_CASE(fcollect_by_host, MovingCase<Fcollect>);
SHMEMCTL_CASE(collect_by_host, MovingCase<Collect>);
SHMEMCTL_CASE(alltoall_by_host, MovingCase<Alltoall>);
SHMEMCTL_CASE(reduce_by_host, ReducingCase<Reduce<std::int64_t>>);
SHMEMCTL_CASE(reduce_float_by_host, ReducingCase<Reduce<float>>);
SHMEMCTL_CASE(reducescatter_by_host, ReducingCase<ReduceScatter<std::int64_t>>);
SHMEMCTL_CASE(reducescatter_float_by_host, ReducingCase<ReduceScatter<float>>);

} // namespace shmemctl::bench
