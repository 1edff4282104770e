// Changes of a cluster: any bytes give a change that says itself again, or one error of usage.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/base/error.h"
#include "src/model/sim/cluster.h"

namespace {

using namespace shmemctl;
using namespace shmemctl::sim;

void require(bool holds) {
  if (!holds)
    std::abort();
}

/// A node with one NIC, so that names and numbers are looked up.
Node node_with(const std::string& device) {
  Node node;
  node.nics.emplace_back().name = device;
  return node;
}

template <class Use>
void expect_usage(Use&& use) {
  try {
    use();
  } catch (const Error& error) {
    require(error.code() == ExitCode::usage && !error.fix().empty());
  }
}

void check(const NicChange& change) {
  require(!change.device.empty());
  require(change.rate_share >= 0 && change.rate_share <= 1);
  require(!change.node || *change.node >= 0);
  require(!change.port || *change.port >= 0);
  to_string(change);
  expect_usage([&] { require_known(change, node_with(change.device), 4); });
  expect_usage([&] { require_known(change, node_with("mlx5_0"), 1); });
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  expect_usage([&] { check(parse_dead_nic(text)); });
  expect_usage([&] {
    const NicChange slow = parse_slow_nic(text);
    require(slow.rate_share > 0);
    check(slow);
  });
  expect_usage([&] {
    const ExpertMove move = parse_expert_move(text);
    require(move.expert >= 0 && move.rank >= 0);
  });
  return 0;
}
