// Every case, with everything that it knows: verified.
#include "tests/unit/instruments/bench/cases/drive.h"

#include "src/instruments/bench/case_table.h"

using namespace shmemctl;
using namespace shmemctl::bench;
using namespace shmemctl::test;

namespace {

std::vector<std::size_t> sizes_of(const CaseInfo& info) {
  if (!info.sized)
    return {8};
  if (!info.only_bytes.empty())
    return info.only_bytes;
  std::vector<std::size_t> sizes;
  for (const std::size_t size : {1u, 2u, 3u, 4u, 7u, 8u, 24u, 64u, 65u, 1000u, 4099u, 70000u})
    if (size >= info.min_bytes && size <= info.max_bytes && size % info.element_bytes == 0)
      sizes.push_back(size);
  return sizes;
}

bool needs_mapping(const CaseInfo& info) {
  return info.group == "reference";
}

std::vector<Drive> points_of(const CaseInfo& info, int n_pes, int per_node) {
  std::vector<Drive> hows;
  for (const Traffic traffic : info.traffics)
    for (const Direction direction : {Direction::uni, Direction::bi})
      for (const int window : {1, 5, 64})
        for (const std::size_t size : sizes_of(info)) {
          if ((direction == Direction::bi && !info.bidirectional) ||
              (window != 1 && info.metric == Metric::latency))
            continue;
          Drive how;
          how.n_pes = n_pes;
          how.pes_per_node = per_node;
          how.point = {size, traffic, direction, window, 0, 1};
          if (size > 60000)
            how.calls = {2, 65};
          hows.push_back(how);
        }
  return hows;
}

class EveryCase : public ::testing::TestWithParam<std::string> {
protected:
  BenchCase bench_case() const { return choose_cases(host_cases(), {GetParam()}).at(0); }
};

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const BenchCase& bench_case : host_cases())
    // These take a whole runtime: processes_test.cpp, transports/ibrc/raw_writes_test.cpp.
    if (bench_case.info.group != proxy_group && bench_case.info.group != verbs_group)
      all.push_back(bench_case.info.name);
  return all;
}

} // namespace

TEST_P(EveryCase, IsRightAtEveryPoint) {
  const BenchCase bench_case = this->bench_case();
  for (const int n_pes : {2, 3, 4})
    for (const int per_node : {0, 1}) {
      if (per_node != 0 && needs_mapping(bench_case.info))
        continue;
      const std::vector<Drive> hows = points_of(bench_case.info, n_pes, per_node);
      const auto wrong = drive_all(bench_case.make, hows);
      for (std::size_t i = 0; i < hows.size(); ++i)
        for (const Found& found : wrong[i])
          EXPECT_FALSE(found) << describe(bench_case.info, hows[i]) << ": "
                              << describe_wrong_byte(*found);
    }
}

TEST_P(EveryCase, NoIterationsAreRight) {
  Drive how;
  how.calls = {0};
  how.point.traffic = bench_case().info.traffics.at(0);
  expect_right(bench_case().make, how);
}

TEST_P(EveryCase, OtherPairsOfPes) {
  if (bench_case().info.traffics.at(0) != Traffic::pair)
    return;
  for (const auto& [first, second] : {std::pair{2, 0}, {1, 2}, {0, 2}}) {
    Drive how;
    how.n_pes = 3;
    how.point.first_pe = first;
    how.point.second_pe = second;
    SCOPED_TRACE(describe(bench_case().info, how));
    expect_right(bench_case().make, how);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, EveryCase, ::testing::ValuesIn(names()), [](const auto& instance) {
  std::string name = instance.param;
  for (char& letter : name)
    if (letter == '-')
      letter = '_';
  return name;
});
