// How many operations of a case are under way over a network.
#include "tests/unit/instruments/bench/cases/drive.h"

#include "src/instruments/bench/case_table.h"
#include "tests/support/no_transport.h"

using namespace shmemctl;
using namespace shmemctl::bench;
using namespace shmemctl::test;

namespace {

/// Counts the atomics without a result that each quiet completes.
class CountingNic final : public NoTransport {
public:
  std::uint64_t atomic(int, const RemoteAddress&, const AtomicRequest&) override {
    ++fetched;
    return 0;
  }
  void post_atomic(int, const RemoteAddress&, const AtomicRequest&) override { ++under_way_; }
  void quiet(int) override {
    completed.push_back(under_way_);
    under_way_ = 0;
  }
  int fetched = 0;
  std::vector<int> completed;

private:
  int under_way_ = 0;
};

TEST(Windows, AtomicRateHasAWindowOfAddsUnderWay) {
  for (const std::size_t size_bytes : {4u, 8u}) {
    run_team_world(2, [&](TeamPe& me) {
      if (me.pe != 0)
        return; // the target
      alignas(64) std::array<std::byte, 4096> memory{};
      CountingNic nic;
      JobHealth health;
      Rma rma(0, 2, {&nic, &nic}, health, 60, true);
      rma.set_region({region::heap, memory.data(), memory.size(), {nullptr, nullptr}});
      Point point;
      point.size_bytes = size_bytes;
      point.window = 16;
      const auto made = choose_cases(host_cases(), {"atomic-rate"}).at(0).make(point);
      auto& host_case = dynamic_cast<HostCase&>(*made);
      host_case.begin({rma, *me.teams, *me.collectives, 0, 2, memory.data(), 7});
      host_case.iterate(0, 40);
      EXPECT_EQ(nic.fetched, 0);
      EXPECT_EQ(nic.completed, (std::vector<int>{16, 16, 8}));
    });
  }
}

} // namespace
