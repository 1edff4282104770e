// What verify() must find.
#include "tests/unit/instruments/bench/cases/drive.h"

#include "src/instruments/bench/case_table.h"

#include "src/instruments/bench/cases/pattern.h"
#include "src/instruments/bench/cases/synchronisation.h"
#include "tests/support/forked_pes.h"

using namespace shmemctl;
using namespace shmemctl::bench;
using namespace shmemctl::test;

namespace {

/// A byte of a case's memory: whether it is verified, and which offset must be reported if it is
/// wrong.
using Checked = std::function<std::optional<std::uint64_t>(std::size_t offset)>;

/// Everything after the source; words of `word_bytes` are compared as a whole in each line of 64
/// bytes from `words_at` on.
Checked behind(std::size_t source, std::size_t words_at, std::size_t word_bytes) {
  return [=](std::size_t offset) -> std::optional<std::uint64_t> {
    if (offset < source)
      return std::nullopt;
    if (offset >= words_at && offset % 64 < word_bytes)
      return offset / 64 * 64;
    return offset;
  };
}

void expect_damage_found(const std::string& name, const Point& point, std::size_t n_pes,
                         const Checked& checked) {
  SCOPED_TRACE(name);
  Drive how;
  how.n_pes = static_cast<int>(n_pes);
  how.point = point;
  how.calls = {3, 200};
  std::atomic<int> tried{0};
  how.damage = [&](HostCase& host_case, TeamPe& me, std::byte* memory, std::size_t size_bytes) {
    for (std::size_t at = 0; at < size_bytes; ++at) {
      const auto wanted = checked(at);
      if (!wanted)
        continue;
      memory[at] ^= std::byte{0x10};
      const auto wrong = host_case.verify(203);
      memory[at] ^= std::byte{0x10};
      require(wrong.has_value(), "damage at " + std::to_string(at) + " found");
      require(wrong->pe == me.pe && wrong->offset_bytes == *wanted,
              "damage at " + std::to_string(at) + " named, not " + describe_wrong_byte(*wrong));
      require((wrong->expected ^ wrong->found) >> (8 * (at - *wanted)) == 0x10,
              "expected and found at " + std::to_string(at) + ": " + describe_wrong_byte(*wrong));
      require(!wrong->what.empty(), "words");
      ++tried;
    }
  };
  const BenchCase bench_case = choose_cases(host_cases(), {name}).at(0);
  expect_right(bench_case.make, how);
  EXPECT_GE(tried.load(), static_cast<int>(n_pes));
}

constexpr std::size_t none = ~std::size_t{0};

std::size_t whole_lines(std::size_t size_bytes) {
  return (size_bytes + 63) / 64 * 64;
}

/// A barrier that does not wait, and one that loses a call.
class Careless final : public SynchronisationCase {
public:
  using SynchronisationCase::SynchronisationCase;

private:
  void synchronise() override {}
};

} // namespace

TEST(Damage, Transfers) {
  for (const std::string name : {"put", "put-latency", "get", "get-latency", "p", "g", "put-signal",
                                 "iput", "message-rate", "memcpy", "transport-put"}) {
    const bool element = name == "p" || name == "g";
    const std::size_t size = element ? 4 : name == "iput" ? 72 : 67;
    const bool one = choose_cases(host_cases(), {name}).at(0).info.metric == Metric::latency;
    const std::size_t slot = whole_lines(name == "iput" ? 2 * size : size);
    for (const std::size_t n_pes : {2u, 3u}) {
      const std::size_t slots = one ? 1 : (5 + n_pes - 2) / (n_pes - 1);
      const std::size_t signals = source_bytes(size) + (n_pes - 1) * slots * slot;
      const Checked checked = behind(source_bytes(size), signals, 8);
      expect_damage_found(name, {size, Traffic::all_to_all, Direction::bi, 5, 0, 1}, n_pes,
                          checked);
    }
  }
}

TEST(Damage, PingPongs) {
  for (const std::string name :
       {"put-pingpong", "put-signal-pingpong", "signal-pingpong", "cacheline-pingpong"})
    for (const std::size_t size : {8u, 67u}) {
      const std::size_t slot = source_bytes(size), flag = slot + whole_lines(size);
      const bool payload = name.rfind("put", 0) == 0 && !(name == "put-pingpong" && size == 8);
      const auto all = behind(slot, flag, 8);
      expect_damage_found(name, {size, Traffic::pair, Direction::uni, 1, 0, 1}, 2,
                          [&](std::size_t at) -> std::optional<std::uint64_t> {
                            if (at >= flag + 8 || (at < flag && !payload))
                              return std::nullopt;
                            return all(at);
                          });
    }
}

TEST(Damage, Atomics) {
  for (const char* pattern : {"atomic-*", "bare-atomic"})
    for (const BenchCase& bench_case : choose_cases(host_cases(), {pattern}))
      for (const std::size_t size : {4u, 8u})
        expect_damage_found(bench_case.info.name,
                            {size, Traffic::all_to_all, Direction::bi, 5, 0, 1}, 3,
                            behind(0, 0, size));
}

TEST(Damage, AtomicsThatReturnWrongValues) {
  Drive how;
  how.calls = {100};
  how.damage = [](HostCase& host_case, TeamPe& me, std::byte*, std::size_t) {
    if (me.pe == 0) {
      // As if the last iteration had run twice.
      const auto wrong = host_case.verify(101);
      require(wrong && wrong->pe == 1 && wrong->found == 99 && wrong->expected == 100,
              "the value fetched");
    }
  };
  const auto wrong = drive(choose_cases(host_cases(), {"atomic-fetch-inc"}).at(0).make, how);
  EXPECT_FALSE(wrong[0] || wrong[1]);
}

TEST(Damage, CollectivesThatMove) {
  for (const std::string name : {"broadcast", "fcollect", "collect", "alltoall"})
    for (const std::size_t n_pes : {2u, 3u}) {
      const std::size_t size = 67;
      const std::size_t source = source_bytes(name == "alltoall" ? n_pes * size : size);
      expect_damage_found(name, {size, Traffic::collective, Direction::uni, 1, 0, 1}, n_pes,
                          behind(source, none, 0));
    }
}

TEST(Damage, Reductions) {
  for (const BenchCase& bench_case : choose_cases(host_cases(), {"reduce*"})) {
    const std::size_t size = 72, element = bench_case.info.element_bytes;
    const bool scatter = bench_case.info.name.rfind("reducescatter", 0) == 0;
    const std::size_t source = source_bytes(scatter ? 3 * size : size);
    expect_damage_found(bench_case.info.name, {size, Traffic::collective, Direction::uni, 1, 0, 1},
                        3, [=](std::size_t at) -> std::optional<std::uint64_t> {
                          if (at < source)
                            return std::nullopt;
                          return at < source + size ? at / element * element : at;
                        });
  }
}

TEST(Damage, ABarrierThatDoesNotWait) {
  for (const int n_pes : {2, 3, 4}) {
    Drive how;
    how.n_pes = n_pes;
    const auto wrong =
        drive([](const Point& point) { return std::make_unique<Careless>(point); }, how);
    // The last PE may see all others.
    EXPECT_TRUE(std::any_of(wrong.begin(), wrong.end(), [](const auto& one) { return one; }));
  }
}

TEST(Damage, ABarrierThatWasNotCalled) {
  Drive how;
  how.damage = [](HostCase& host_case, TeamPe& me, std::byte*, std::size_t) {
    const auto wrong = host_case.verify(204);
    require(wrong && wrong->pe == me.pe && wrong->expected == 204 && wrong->found == 205, "calls");
  };
  const auto wrong = drive(choose_cases(host_cases(), {"barrier"}).at(0).make, how);
  EXPECT_FALSE(wrong[0] || wrong[1]);
}

/// Each iteration's data differ from those that its slot held before.
TEST(Damage, AnIterationThatDidNotCome) {
  for (const BenchCase& bench_case : host_cases()) {
    if (bench_case.info.group == "synchronisation" || bench_case.info.group == proxy_group ||
        bench_case.info.group == verbs_group || bench_case.info.name == "atomic-fetch")
      continue;
    SCOPED_TRACE(bench_case.info.name);
    for (const int window : {1, 64}) {
      // These change nothing once every bit has been changed.
      const bool saturates =
          bench_case.info.name == "atomic-fetch-and" || bench_case.info.name == "atomic-fetch-or";
      const std::uint64_t iterations = saturates ? 40 : 64 * 8;
      Drive how;
      how.calls = {iterations};
      how.point.window = window;
      how.point.direction = bench_case.info.bidirectional ? Direction::bi : Direction::uni;
      how.point.traffic = bench_case.info.traffics.at(0);
      how.damage = [&](HostCase& host_case, TeamPe&, std::byte*, std::size_t) {
        require(host_case.verify(iterations + 1).has_value(), "a missing iteration is found");
      };
      expect_right(bench_case.make, how);
    }
  }
}
