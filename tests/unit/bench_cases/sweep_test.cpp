// Every case, with everything that it knows: verified.
#include "tests/unit/bench_cases/drive.h"

using namespace shmemctl;
using namespace shmemctl::bench;
using namespace shmemctl::test;

namespace {

std::vector<std::size_t> sizes_of(const CaseInfo& info) {
  if (!info.sized)
    return {8};
  std::vector<std::size_t> sizes;
  for (const std::size_t size : {1u, 2u, 3u, 4u, 7u, 8u, 24u, 64u, 65u, 1000u, 4099u, 70000u})
    if (size >= info.min_bytes && size <= info.max_bytes && size % info.element_bytes == 0)
      sizes.push_back(size);
  return sizes;
}

bool needs_mapping(const CaseInfo& info) {
  return info.group == "reference";
}

class EveryCase : public ::testing::TestWithParam<std::string> {
protected:
  CaseEntry entry() const { return choose_cases(host_cases(), {GetParam()}).at(0); }
};

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const CaseEntry& entry : host_cases())
    all.push_back(entry.info.name);
  return all;
}

} // namespace

TEST_P(EveryCase, IsRightAtEveryPoint) {
  const CaseEntry entry = this->entry();
  for (const int n_pes : {2, 3, 4})
    for (const int per_node : {0, 1})
      for (const Traffic traffic : entry.info.traffics)
        for (const Direction direction : {Direction::uni, Direction::bi})
          for (const int window : {1, 5, 64})
            for (const std::size_t size : sizes_of(entry.info)) {
              if ((direction == Direction::bi && !entry.info.bidirectional) ||
                  (per_node != 0 && needs_mapping(entry.info)) ||
                  (window != 1 && entry.info.metric == Metric::latency))
                continue;
              Drive how;
              how.n_pes = n_pes;
              how.pes_per_node = per_node;
              how.point = {size, traffic, direction, window, 0, 1};
              if (size > 60000)
                how.calls = {2, 65};
              SCOPED_TRACE(describe(entry.info, how));
              expect_right(entry.make, how);
            }
}

TEST_P(EveryCase, NoIterationsAreRight) {
  Drive how;
  how.calls = {0};
  how.point.traffic = entry().info.traffics.at(0);
  expect_right(entry().make, how);
}

TEST_P(EveryCase, OtherPairsOfPes) {
  if (entry().info.traffics.at(0) != Traffic::pair)
    return;
  for (const auto& [first, second] : {std::pair{2, 0}, {1, 2}, {0, 2}}) {
    Drive how;
    how.n_pes = 3;
    how.point.first_pe = first;
    how.point.second_pe = second;
    SCOPED_TRACE(describe(entry().info, how));
    expect_right(entry().make, how);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, EveryCase, ::testing::ValuesIn(names()), [](const auto& instance) {
  std::string name = instance.param;
  for (char& letter : name)
    if (letter == '-')
      letter = '_';
  return name;
});
