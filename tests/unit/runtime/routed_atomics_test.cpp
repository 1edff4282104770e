// Data by loads and stores, atomics and signals through a fake NIC.
#include "src/runtime/routed_atomics.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "src/runtime/rma.h"
#include "transports/shm/shm.h"

using namespace shmemctl;

namespace {

/// Has its own copy of the words, as an HCA with a cache has, until quiet().
class Nic final : public Transport {
public:
  explicit Nic(Transport& memory) : memory_(memory) {}
  const char* name() const override { return "nic"; }
  std::string local_info() override { return {}; }
  Reach reach(const PeerLocation&, const PeerLocation&) const override { return {can_atomics, ""}; }
  void connect(const std::vector<PeerLocation>&, Exchange&, const Deadline&) override {}
  std::string set_region(const RegionView&) override { return {}; }
  void put(int, const RemoteAddress&, const void*, std::size_t, bool) override {
    calls.push_back("put");
  }
  void get(int, void*, const RemoteAddress&, std::size_t, bool) override { calls.push_back("get"); }
  std::uint64_t atomic(int context, const RemoteAddress& target,
                       const AtomicRequest& request) override {
    calls.push_back("atomic");
    return memory_.atomic(context, target, request);
  }
  void post_atomic(int, const RemoteAddress& target, const AtomicRequest& request) override {
    calls.push_back("post");
    late_.push_back({target, request});
  }
  void put_signal(int, const RemoteAddress&, const void*, std::size_t, const RemoteAddress&,
                  std::uint64_t, SignalOp, bool) override {
    calls.push_back("put_signal");
  }
  void fence(int) override { calls.push_back("fence"); }
  void quiet(int context) override {
    calls.push_back("quiet");
    for (const auto& [target, request] : late_)
      memory_.atomic(context, target, request);
    late_.clear();
  }
  bool atomics_coherent_with_cpu() const override { return false; }
  std::vector<std::string> calls;

private:
  Transport& memory_;
  std::vector<std::pair<RemoteAddress, AtomicRequest>> late_;
};

struct World {
  alignas(64) std::uint64_t words[2][64] = {};
  std::unique_ptr<Transport> shm = make_shm_transport();
  Nic nic{*shm};
  RoutedAtomics routed{*shm, nic};
  JobHealth health;
  Rma rma{0, 2, {&routed, &routed}, health, 10, true};

  World() {
    const RegionView heap{
        1,
        reinterpret_cast<std::byte*>(words[0]),
        sizeof words[0],
        {reinterpret_cast<std::byte*>(words[0]), reinterpret_cast<std::byte*>(words[1])}};
    shm->set_region(heap);
    rma.set_region(heap);
  }
};

TEST(RoutedAtomics, PutsUseStoresAndAtomicsTheNic) {
  World world;
  const std::uint64_t value = 7;
  world.rma.put(&world.words[0][3], &value, sizeof value, 1);
  world.rma.put_value<std::uint64_t>(&world.words[0][4], 8, 1);
  EXPECT_EQ(world.words[1][3], 7u);
  EXPECT_EQ(world.words[1][4], 8u);
  EXPECT_EQ(world.rma.get_value<std::uint64_t>(&world.words[0][4], 1), 8u);
  EXPECT_TRUE(world.nic.calls.empty());

  // Also on this PE's own words.
  for (const int pe : {0, 1}) {
    world.nic.calls.clear();
    EXPECT_EQ(world.rma.atomic(&world.words[0][5], {AtomicOp::add, 8, 2}, pe), 0u);
    EXPECT_EQ(world.nic.calls, std::vector<std::string>{"atomic"});
  }
}

TEST(RoutedAtomics, QuietAndFenceWaitForTheNic) {
  for (const bool fence : {false, true}) {
    World world;
    world.rma.post_atomic(&world.words[0][5], {AtomicOp::add, 8, 2}, 1);
    EXPECT_EQ(world.words[1][5], 0u);
    if (fence)
      world.rma.fence();
    else
      world.rma.quiet();
    EXPECT_EQ(world.words[1][5], 2u);
  }
}

TEST(RoutedAtomics, ASignalGoesThroughTheNicAfterItsPayload) {
  for (const SignalOp op : {SignalOp::set, SignalOp::add}) {
    World world;
    const std::uint64_t value = 9;
    world.rma.put_signal(&world.words[0][0], &value, sizeof value, &world.words[0][1], 5, op, 1);
    EXPECT_EQ(world.words[1][0], 9u);
    EXPECT_EQ(world.words[1][1], 0u);
    EXPECT_EQ(world.nic.calls, std::vector<std::string>{"post"});
    world.rma.quiet();
    EXPECT_EQ(world.words[1][1], 5u);
  }
}

} // namespace
