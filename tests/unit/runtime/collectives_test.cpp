// Data movement on every team shape, against the result of a loop over all members.
#include <complex>
#include <gtest/gtest.h>
#include <limits>
#include <type_traits>

#include "src/base/error.h"
#include "tests/unit/runtime/shapes.h"

using namespace shmemctl;
using namespace shmemctl::test;

namespace {

constexpr std::byte canary{0xa5};
constexpr std::size_t canary_bytes = 64;

/// One PE's view of one collective: buffers, and the members in team order.
struct Call {
  TeamPe& me;
  TeamId team;
  const std::vector<int>& members;
  std::size_t salt;
  std::string name;

  std::byte* source() const { return me.at<std::byte>(0) + salt % 7; }
  std::byte* target() const { return me.at<std::byte>(half_bytes) + salt % 5; }
  int number() const { return index_in(members, me.pe); }
  std::size_t n() const { return members.size(); }

  void fill_source(std::size_t size_bytes) const {
    for (std::size_t i = 0; i < size_bytes; ++i)
      source()[i] = pattern(me.pe, i, salt);
  }
  void fill_target(std::size_t size_bytes) const {
    std::fill_n(target(), size_bytes + canary_bytes, canary);
  }
  void expect(std::size_t at, std::byte value) const {
    if (target()[at] != value)
      throw std::runtime_error(name + " on " + text_of(members) + ", PE " + std::to_string(me.pe) +
                               ": byte " + std::to_string(at) + " is wrong");
  }
  void expect_canary(std::size_t size_bytes) const {
    for (std::size_t i = 0; i < canary_bytes; ++i)
      expect(size_bytes + i, canary);
  }

  static std::size_t half_bytes;
};
std::size_t Call::half_bytes = 0;

void check_broadcast(const Call& call, std::size_t size_bytes, int root) {
  call.fill_source(size_bytes);
  call.fill_target(size_bytes);
  call.me.collectives->broadcast(call.team, call.target(), call.source(), size_bytes, root);
  const int from = call.members[static_cast<std::size_t>(root)];
  for (std::size_t i = 0; i < size_bytes; ++i)
    call.expect(i, pattern(from, i, call.salt));
  call.expect_canary(size_bytes);
}

void check_broadcast_in_place(const Call& call, std::size_t size_bytes, int root) {
  call.fill_target(size_bytes);
  for (std::size_t i = 0; i < size_bytes; ++i)
    call.target()[i] = pattern(call.me.pe, i, call.salt);
  call.me.collectives->broadcast(call.team, call.target(), call.target(), size_bytes, root);
  const int from = call.members[static_cast<std::size_t>(root)];
  for (std::size_t i = 0; i < size_bytes; ++i)
    call.expect(i, pattern(from, i, call.salt));
  call.expect_canary(size_bytes);
}

void check_fcollect(const Call& call, std::size_t size_bytes, bool in_place) {
  call.fill_target(size_bytes * call.n());
  std::byte* source = call.source();
  if (in_place)
    source = call.target() + size_bytes * static_cast<std::size_t>(call.number());
  for (std::size_t i = 0; i < size_bytes; ++i)
    source[i] = pattern(call.me.pe, i, call.salt);
  call.me.collectives->fcollect(call.team, call.target(), source, size_bytes);
  for (std::size_t member = 0; member < call.n(); ++member)
    for (std::size_t i = 0; i < size_bytes; ++i)
      call.expect(member * size_bytes + i, pattern(call.members[member], i, call.salt));
  call.expect_canary(size_bytes * call.n());
}

/// Sizes differ between members; some are 0.
void check_collect(const Call& call, std::size_t size_bytes) {
  const auto size_of = [&](int pe) {
    const std::size_t part = (static_cast<std::size_t>(pe) * 7 + call.salt) % 5;
    return size_bytes * part / 4;
  };
  std::size_t total = 0;
  for (const int pe : call.members)
    total += size_of(pe);
  call.fill_source(size_of(call.me.pe));
  call.fill_target(total);
  call.me.collectives->collect(call.team, call.target(), call.source(), size_of(call.me.pe));
  std::size_t at = 0;
  for (const int pe : call.members)
    for (std::size_t i = 0; i < size_of(pe); ++i)
      call.expect(at++, pattern(pe, i, call.salt));
  call.expect_canary(total);
}

void check_alltoall(const Call& call, std::size_t block_bytes) {
  call.fill_source(block_bytes * call.n());
  call.fill_target(block_bytes * call.n());
  call.me.collectives->alltoall(call.team, call.target(), call.source(), block_bytes);
  const auto mine = static_cast<std::size_t>(call.number());
  for (std::size_t member = 0; member < call.n(); ++member)
    for (std::size_t i = 0; i < block_bytes; ++i)
      call.expect(member * block_bytes + i,
                  pattern(call.members[member], mine * block_bytes + i, call.salt));
  call.expect_canary(block_bytes * call.n());
}

void check_alltoalls(const Call& call, std::size_t elements, std::size_t element_bytes,
                     std::size_t target_stride, std::size_t source_stride) {
  const std::size_t source_bytes = elements * call.n() * source_stride * element_bytes;
  const std::size_t target_bytes = elements * call.n() * target_stride * element_bytes;
  call.fill_source(source_bytes);
  call.fill_target(target_bytes);
  call.me.collectives->alltoalls(
      call.team, call.target(), call.source(), static_cast<std::ptrdiff_t>(target_stride),
      static_cast<std::ptrdiff_t>(source_stride), elements, element_bytes);
  const auto mine = static_cast<std::size_t>(call.number());
  for (std::size_t slot = 0; slot < elements * call.n() * target_stride; ++slot) {
    const std::size_t element = slot / target_stride;
    const std::size_t member = element / elements, i = element % elements;
    for (std::size_t byte = 0; byte < element_bytes; ++byte) {
      const std::size_t from = (mine * elements + i) * source_stride * element_bytes + byte;
      call.expect(slot * element_bytes + byte, slot % target_stride == 0
                                                   ? pattern(call.members[member], from, call.salt)
                                                   : canary);
    }
  }
  call.expect_canary(target_bytes);
}

void check_all(TeamPe& me, TeamId team, const Shape& shape, const std::vector<std::size_t>& sizes,
               std::mt19937& random) {
  const auto call = [&](const char* name) {
    return Call{me, team, shape.members, random(), std::string(name) + ", " + shape.name};
  };
  const int n = static_cast<int>(shape.members.size());
  for (const std::size_t size : sizes) {
    check_broadcast(call("broadcast"), size, static_cast<int>(random() % shape.members.size()));
    check_broadcast(call("broadcast"), size, n - 1);
    check_broadcast_in_place(call("broadcast in place"), size, n / 2);
    check_fcollect(call("fcollect"), size, false);
    check_fcollect(call("fcollect in place"), size, true);
    check_collect(call("collect"), size);
    check_alltoall(call("alltoall"), size);
  }
  constexpr std::size_t element_sizes[] = {1, 2, 3, 4, 8, 16, 24};
  const std::size_t element_bytes = element_sizes[random() % 7];
  check_alltoalls(call("alltoalls"), random() % 40, element_bytes, 1 + random() % 3,
                  1 + random() % 3);
  check_alltoalls(call("alltoalls"), 1 + random() % 3, element_bytes, 1, 1 + random() % 3);
}

/// All PEs draw the same numbers, also those that are not members.
void run_shapes(int n_pes, const std::vector<Shape>& shapes, std::vector<std::size_t> sizes,
                unsigned seed, int pes_per_node = 0) {
  std::size_t largest = 4096;
  for (const std::size_t size : sizes)
    largest = std::max(largest, size);
  Call::half_bytes = largest * static_cast<std::size_t>(n_pes) + (std::size_t{1} << 16);
  TeamWorldOptions options;
  options.heap_bytes = 2 * Call::half_bytes;
  options.pes_per_node = pes_per_node;
  run_team_world(
      n_pes,
      [&](TeamPe& me) {
        for (std::size_t i = 0; i < shapes.size(); ++i) {
          std::mt19937 random(seed + static_cast<unsigned>(i));
          const TeamId team = shapes[i].make(me);
          require((team != invalid_team) == contains(shapes[i].members, me.pe),
                  "membership of " + shapes[i].name);
          if (team == invalid_team)
            continue;
          check_all(me, team, shapes[i], sizes, random);
          me.teams->destroy(team);
        }
      },
      options);
}

} // namespace

TEST(Collectives, EveryStridedTeamUpToEightPes) {
  for (const int n_pes : {1, 2, 3, 5, 8})
    run_shapes(n_pes, strided_shapes(n_pes), {0, 1, 37}, 1);
}

TEST(Collectives, ListsAndNestedTeamsOfRandomSizes) {
  std::mt19937 random(2);
  for (int n_pes = 1; n_pes <= 8; ++n_pes)
    run_shapes(n_pes, some_shapes(n_pes, random), {0, 1, random() % 100, random() % 6000}, 2);
}

TEST(Collectives, LargerThanTheScratchMemory) {
  std::mt19937 random(3);
  for (const int n_pes : {2, 5})
    run_shapes(n_pes, {world_shape(n_pes), list_shape(random_list(n_pes, random), 77)},
               {limits::team_scratch_bytes + 1, 70001}, 3);
}

TEST(Collectives, Megabytes) {
  run_shapes(2, {world_shape(2)}, {(std::size_t{2} << 20) + 13}, 4);
}

TEST(Collectives, AcrossNodes) {
  std::mt19937 random(5);
  for (const int n_pes : {2, 3, 5, 8})
    for (const int per_node : {1, 2, 3})
      run_shapes(n_pes, some_shapes(n_pes, random), {0, 1, 999, 8192 + random() % 999}, 5,
                 per_node);
}

TEST(Collectives, AcrossNodesLargerThanTheScratchMemory) {
  run_shapes(5, {world_shape(5), list_shape({4, 0, 3}, 5)}, {limits::team_scratch_bytes + 9, 65537},
             6, 2);
}

TEST(Collectives, MorePesThanCores) {
  run_shapes(40, {world_shape(40), strided_shape(40, 39, -3, 13)}, {1, 777}, 7);
}

TEST(Collectives, RowsAndColumnsAtTheSameTime) {
  for (int n_pes = 2; n_pes <= 8; ++n_pes)
    for (int columns = 1; columns <= n_pes; ++columns) {
      Call::half_bytes = std::size_t{1} << 16;
      TeamWorldOptions options;
      options.heap_bytes = 2 * Call::half_bytes;
      run_team_world(
          n_pes,
          [&](TeamPe& me) {
            const auto grid = me.teams->split_2d(team_world, columns);
            require(grid.has_value(), "split_2d failed");
            std::vector<int> row, column;
            for (int pe = 0; pe < n_pes; ++pe) {
              if (pe / columns == me.pe / columns)
                row.push_back(pe);
              if (pe % columns == me.pe % columns)
                column.push_back(pe);
            }
            for (std::size_t salt = 0; salt < 5; ++salt) {
              check_fcollect({me, grid->x, row, salt, "row"}, 100 + salt, false);
              check_alltoall({me, grid->y, column, salt, "column"}, 50 + salt);
              check_fcollect({me, team_world, everybody(n_pes), salt, "world"}, salt, false);
            }
          },
          options);
    }
}

TEST(Collectives, WrongArguments) {
  run_team_world(2, [](TeamPe& me) {
    auto* at = me.at<std::byte>(0);
    EXPECT_THROW(me.collectives->broadcast(team_world, at, at, 8, 2), Error);
    EXPECT_THROW(me.collectives->broadcast(team_world, at, at, 8, -1), Error);
    EXPECT_THROW(me.collectives->alltoalls(team_world, at, at, 0, 1, 1, 1), Error);
    EXPECT_THROW(me.collectives->alltoalls(team_world, at, at, 1, -1, 1, 1), Error);
    for (const TeamId team : {invalid_team, first_user_team, limits::max_teams}) {
      EXPECT_THROW(me.collectives->barrier(team), Error);
      EXPECT_THROW(me.collectives->broadcast(team, at, at, 8, 0), Error);
      EXPECT_THROW(me.collectives->collect(team, at, at, 8), Error);
      EXPECT_THROW(me.collectives->fcollect(team, at, at, 8), Error);
      EXPECT_THROW(me.collectives->alltoall(team, at, at, 8), Error);
      EXPECT_THROW(me.collectives->alltoalls(team, at, at, 1, 1, 1, 1), Error);
    }
  });
}

TEST(Collectives, NamesAnAddressThatIsNotSymmetric) {
  run_team_world(2, [](TeamPe& me) {
    std::uint64_t here = 0;
    try {
      me.collectives->fcollect(team_world, &here, me.at<std::byte>(0), 8);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(error.message().find("not in a symmetric object"), std::string::npos);
    }
    me.teams->sync(team_world); // both threads have arrived at the same point
  });
}

// Reductions of every type with every operation, against a loop over the members in team order.

using namespace shmemctl;
using namespace shmemctl::test;

namespace {

constexpr ReduceOp every_op[] = {ReduceOp::bit_and, ReduceOp::bit_or,  ReduceOp::bit_xor,
                                 ReduceOp::minimum, ReduceOp::maximum, ReduceOp::sum,
                                 ReduceOp::product};

template <class T>
struct IsComplex : std::false_type {};
template <class T>
struct IsComplex<std::complex<T>> : std::true_type {};

template <class T>
bool defined(ReduceOp op) {
  if (op == ReduceOp::sum || op == ReduceOp::product)
    return true;
  if (op == ReduceOp::minimum || op == ReduceOp::maximum)
    return !IsComplex<T>::value;
  return std::is_integral_v<T>;
}

/// The oracle: one operation, written differently from the kernels.
template <class T>
T apply(ReduceOp op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    switch (op) {
    case ReduceOp::bit_and:
      return static_cast<T>(x & y);
    case ReduceOp::bit_or:
      return static_cast<T>(x | y);
    case ReduceOp::bit_xor:
      return static_cast<T>(x ^ y);
    case ReduceOp::sum:
      return static_cast<T>(x + y);
    case ReduceOp::product:
      return static_cast<T>(x * y);
    default:
      return op == ReduceOp::minimum ? std::min(a, b) : std::max(a, b);
    }
  } else if constexpr (IsComplex<T>::value) {
    if (op == ReduceOp::sum)
      return {a.real() + b.real(), a.imag() + b.imag()};
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  } else {
    switch (op) {
    case ReduceOp::minimum:
      return std::min(a, b);
    case ReduceOp::maximum:
      return std::max(a, b);
    case ReduceOp::sum:
      return a + b;
    default:
      return a * b;
    }
  }
}

template <class T>
T value(int pe, std::size_t at, std::size_t salt) {
  std::uint64_t x = static_cast<std::uint64_t>(pe + 1) * 0x9e3779b97f4a7c15ULL +
                    at * 0xbf58476d1ce4e5b9ULL + salt;
  x = (x ^ (x >> 29)) * 0x94d049bb133111ebULL;
  x ^= x >> 32;
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(x);
  } else if constexpr (IsComplex<T>::value) {
    using Part = typename T::value_type;
    return {static_cast<Part>(static_cast<std::int32_t>(x)) / Part(1 << 30),
            static_cast<Part>(static_cast<std::int32_t>(x >> 32)) / Part(1 << 30)};
  } else {
    return static_cast<T>(static_cast<std::int64_t>(x)) / static_cast<T>(std::int64_t{1} << 62);
  }
}

struct Reduction {
  TeamPe& me;
  TeamId team;
  const std::vector<int>& members;
  ElementType type;
  ReduceOp op;
  std::size_t salt;
};

template <class T>
T reduced(const Reduction& call, std::size_t at) {
  T result = value<T>(call.members.front(), at, call.salt);
  for (std::size_t i = 1; i < call.members.size(); ++i)
    result = apply(call.op, result, value<T>(call.members[i], at, call.salt));
  return result;
}

template <class T>
void expect_range(const Reduction& call, const T* got, std::size_t first, std::size_t elements,
                  const char* what) {
  for (std::size_t i = 0; i < elements; ++i)
    if (!(got[i] == reduced<T>(call, first + i)))
      throw std::runtime_error(
          std::string(what) + " of " + std::to_string(elements) + " elements of type " +
          std::to_string(static_cast<int>(call.type)) + ", operation " +
          std::to_string(static_cast<int>(call.op)) + ", on " + text_of(call.members) + ", PE " +
          std::to_string(call.me.pe) + ": element " + std::to_string(first + i) + " is wrong");
}

constexpr std::size_t half_bytes = std::size_t{1} << 22;

template <class T>
void check_one(const Reduction& call, std::size_t elements) {
  T* source = call.me.at<T>(0);
  T* target = call.me.at<T>(half_bytes);
  Collectives& collectives = *call.me.collectives;
  for (std::size_t i = 0; i < elements; ++i)
    source[i] = value<T>(call.me.pe, i, call.salt);
  const T guard = value<T>(99, 99, 99);
  target[elements] = guard;
  const bool done = collectives.reduce(call.team, target, source, elements, call.type, call.op);
  require(done == defined<T>(call.op), "which operations are defined");
  if (!done)
    return;
  expect_range<T>(call, target, 0, elements, "reduce");
  require(target[elements] == guard, "reduce wrote behind its target");
  require(collectives.reduce(call.team, source, source, elements, call.type, call.op),
          "reduce in place");
  expect_range<T>(call, source, 0, elements, "reduce in place");

  const std::size_t n = call.members.size(), each = elements / n;
  const auto mine = static_cast<std::size_t>(index_in(call.members, call.me.pe)) * each;
  for (T* result : {target, source + mine}) {
    for (std::size_t i = 0; i < each * n; ++i)
      source[i] = value<T>(call.me.pe, i, call.salt);
    require(collectives.reduce_scatter(call.team, result, source, each, call.type, call.op),
            "reduce_scatter");
    expect_range<T>(call, result, mine, each, "reduce_scatter");
  }
}

void check_type(const Reduction& call, std::size_t elements) {
  switch (call.type) {
  case ElementType::int8:
    return check_one<std::int8_t>(call, elements);
  case ElementType::int16:
    return check_one<std::int16_t>(call, elements);
  case ElementType::int32:
    return check_one<std::int32_t>(call, elements);
  case ElementType::int64:
    return check_one<std::int64_t>(call, elements);
  case ElementType::uint8:
    return check_one<std::uint8_t>(call, elements);
  case ElementType::uint16:
    return check_one<std::uint16_t>(call, elements);
  case ElementType::uint32:
    return check_one<std::uint32_t>(call, elements);
  case ElementType::uint64:
    return check_one<std::uint64_t>(call, elements);
  case ElementType::float32:
    return check_one<float>(call, elements);
  case ElementType::float64:
    return check_one<double>(call, elements);
  case ElementType::long_double:
    return check_one<long double>(call, elements);
  case ElementType::complex_float:
    return check_one<std::complex<float>>(call, elements);
  case ElementType::complex_double:
    return check_one<std::complex<double>>(call, elements);
  }
}

constexpr int n_types = static_cast<int>(ElementType::complex_double) + 1;

TeamWorldOptions options_for(int pes_per_node) {
  TeamWorldOptions options;
  options.heap_bytes = 2 * half_bytes;
  options.pes_per_node = pes_per_node;
  return options;
}

/// `sizes` draws the numbers of elements of one type.
using Sizes = std::function<std::vector<std::size_t>(std::mt19937&)>;

/// Each shape with every operation; the types take turns, or all take part.
void run_shapes(int n_pes, const std::vector<Shape>& shapes, bool every_type, const Sizes& sizes,
                int pes_per_node = 0) {
  run_team_world(
      n_pes,
      [&](TeamPe& me) {
        for (std::size_t i = 0; i < shapes.size(); ++i) {
          std::mt19937 random(static_cast<unsigned>(i + 1));
          const TeamId team = shapes[i].make(me);
          if (team == invalid_team)
            continue;
          for (int type = 0; type < n_types; ++type)
            for (const ReduceOp op : every_op)
              if (const std::size_t salt = random(); every_type || salt % n_types == 0)
                for (const std::size_t elements : sizes(random))
                  check_type(
                      {me, team, shapes[i].members, static_cast<ElementType>(type), op, salt},
                      elements);
          me.teams->destroy(team);
        }
      },
      options_for(pes_per_node));
}

std::vector<std::size_t> small_sizes(std::mt19937& random) {
  return {0, 1, 1 + random() % 99};
}

} // namespace

TEST(Reduce, EveryTypeAndOperation) {
  std::mt19937 random(1);
  for (const int n_pes : {1, 2, 3, 8})
    run_shapes(n_pes, {world_shape(n_pes), list_shape(random_list(n_pes, random), 9)}, true,
               small_sizes);
}

TEST(Reduce, EveryStridedTeamUpToEightPes) {
  for (const int n_pes : {2, 4, 7, 8})
    run_shapes(n_pes, strided_shapes(n_pes), false, small_sizes);
}

TEST(Reduce, ListsAndNestedTeams) {
  std::mt19937 random(2);
  for (int n_pes = 1; n_pes <= 8; ++n_pes)
    run_shapes(n_pes, some_shapes(n_pes, random), false, small_sizes);
}

TEST(Reduce, LargeArraysOfEveryType) {
  std::mt19937 random(3);
  for (const int n_pes : {2, 3, 8})
    run_shapes(
        n_pes, {world_shape(n_pes)}, n_pes == 3,
        [](std::mt19937& draw) -> std::vector<std::size_t> { return {5000 + draw() % 30000}; });
  run_shapes(6, {list_shape({5, 1, 4}, 3)}, false, [](std::mt19937&) -> std::vector<std::size_t> {
    return {limits::team_scratch_bytes / 2 + 1, 32768, 32769};
  });
}

TEST(Reduce, AcrossNodes) {
  std::mt19937 random(4);
  for (const int n_pes : {2, 3, 5, 8})
    for (const int per_node : {1, 2, 3})
      run_shapes(
          n_pes, some_shapes(n_pes, random), false,
          [](std::mt19937& draw) -> std::vector<std::size_t> {
            return {0, 1, draw() % 5000, 20000 + draw() % 9999};
          },
          per_node);
}

TEST(Reduce, MoreMembersThanBlocksThatAreFetchedAtOnce) {
  run_shapes(
      40, {world_shape(40)}, false,
      [](std::mt19937&) -> std::vector<std::size_t> {
        return {1, 3000};
      },
      1);
}

TEST(Reduce, NotANumberAndInfinitiesAreTheSameEverywhere) {
  run_team_world(5, [](TeamPe& me) {
    const double specials[] = {std::numeric_limits<double>::quiet_NaN(), 1.0, -0.0, 0.0,
                               std::numeric_limits<double>::infinity()};
    for (const ReduceOp op :
         {ReduceOp::minimum, ReduceOp::maximum, ReduceOp::sum, ReduceOp::product})
      for (int turn = 0; turn < 5; ++turn) {
        *me.at<double>(0) = specials[(me.pe + turn) % 5];
        me.collectives->reduce(team_world, me.at<double>(64), me.at<double>(0), 1,
                               ElementType::float64, op);
        me.collectives->fcollect(team_world, me.at<double>(128), me.at<double>(64), 8);
        for (int pe = 1; pe < 5; ++pe)
          require(std::memcmp(me.at<double>(128), me.at<double>(128) + pe, 8) == 0,
                  "PEs have different results");
      }
  });
}

TEST(Reduce, SizesOfTypes) {
  EXPECT_EQ(element_bytes(ElementType::int8), 1u);
  EXPECT_EQ(element_bytes(ElementType::uint16), 2u);
  EXPECT_EQ(element_bytes(ElementType::float32), 4u);
  EXPECT_EQ(element_bytes(ElementType::int64), 8u);
  EXPECT_EQ(element_bytes(ElementType::long_double), sizeof(long double));
  EXPECT_EQ(element_bytes(ElementType::complex_float), 8u);
  EXPECT_EQ(element_bytes(ElementType::complex_double), 16u);
}

TEST(Reduce, NotAMember) {
  run_team_world(1, [](TeamPe& me) {
    auto* at = me.at<int>(0);
    EXPECT_THROW(me.collectives->reduce(invalid_team, at, at, 1, ElementType::int32, ReduceOp::sum),
                 Error);
    EXPECT_THROW(
        me.collectives->reduce_scatter(9, at, at + 8, 1, ElementType::int32, ReduceOp::sum), Error);
  });
}
