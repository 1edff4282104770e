// The path by which kernels reach each PE, and the contexts that the two proxies have.
#include "tests/support/counting_transport.h"
#include "tests/support/expect_error.h"
#include "tests/unit/kernels/device_network/kernel_threads.h"

namespace shmemctl::test {
namespace {

using Reachable = DeviceNetworkInputs::Reachable;

struct Choice {
  CountingTransport transport;
  JobHealth health;
  std::shared_ptr<PlainKernelMemory> memory = std::make_shared<PlainKernelMemory>();

  /// PE 0 of four: PE 1 is mapped, PE 2 is not, PE 3 has no transport.
  std::vector<KernelPath> ways(const std::string& wanted, Reachable reachable) {
    DeviceNetworkInputs inputs =
        inputs_of(0, {&transport, &transport, &transport, nullptr}, wanted, health, memory);
    inputs.mapped = {true, true, false, false};
    inputs.mapped_reason = {"its own memory", "NVLink", "another node", "another node"};
    inputs.reachable = reachable;
    inputs.unreachable_reason = "the heap is GPU memory";
    const DeviceNetworkPart part(std::move(inputs));
    const DeviceNetwork network = part.network();
    for (std::size_t pe = 0; pe < part.paths_by_pe().size(); ++pe)
      EXPECT_EQ(network.path_of_pe[pe], static_cast<std::uint8_t>(part.paths_by_pe()[pe].path));
    return part.paths_by_pe();
  }
};

std::vector<DevicePath> paths(const std::vector<KernelPath>& ways) {
  std::vector<DevicePath> all;
  for (const KernelPath& way : ways)
    all.push_back(way.path);
  return all;
}

TEST(DevicePaths, AsTheOptionSays) {
  constexpr DevicePath none = DevicePath::none, mapped = DevicePath::load_store,
                       proxy = DevicePath::proxy;
  using Paths = std::vector<DevicePath>;
  Choice choice;
  EXPECT_EQ(paths(choice.ways("auto", Reachable::host_memory)),
            (Paths{mapped, mapped, proxy, none}));
  EXPECT_EQ(paths(choice.ways("auto", Reachable::all)), (Paths{mapped, mapped, proxy, none}));
  EXPECT_EQ(paths(choice.ways("auto", Reachable::nothing)), (Paths{mapped, mapped, none, none}));
  EXPECT_EQ(paths(choice.ways("p2p", Reachable::host_memory)), (Paths{mapped, mapped, none, none}));
  EXPECT_EQ(paths(choice.ways("proxy", Reachable::host_memory)),
            (Paths{mapped, proxy, proxy, none}));
  EXPECT_EQ(paths(choice.ways("ibgda", Reachable::host_memory)),
            (Paths{mapped, proxy, proxy, none}));
}

TEST(DevicePaths, WithReasons) {
  Choice choice;
  const auto ways = choice.ways("auto", Reachable::nothing);
  EXPECT_EQ(ways[1].reason, "NVLink");
  EXPECT_EQ(ways[2].reason, "another node; no network: the heap is GPU memory");
  EXPECT_EQ(ways[3].reason, "another node, and no transport reaches it") << "no word of the heap";
  EXPECT_EQ(choice.ways("auto", Reachable::all)[2].reason, "another node: proxy over counting");
  EXPECT_EQ(choice.ways("auto", Reachable::all)[3].reason,
            "another node, and no transport reaches it");
  EXPECT_EQ(choice.ways("ibgda", Reachable::all)[2].reason,
            "another node, but ibgda is not among the job's transports: proxy over counting");
  EXPECT_NE(choice.ways("p2p", Reachable::all)[2].reason.find("allows nothing else"),
            std::string::npos);
}

TEST(DevicePaths, NothingIsMadeWhereAllAreMapped) {
  CountingTransport transport;
  JobHealth health;
  auto memory = std::make_shared<PlainKernelMemory>();
  const DeviceNetworkPart part(inputs_of(0, {&transport, &transport}, "auto", health, memory));
  EXPECT_EQ(part.network().path_of_pe, nullptr);
  EXPECT_EQ(part.network().rings.n_fifos, 0u);
  EXPECT_EQ(part.network().queues, nullptr);
}

TEST(DevicePaths, TheProxiesHaveContextsOfTheirOwn) {
  for (unsigned own = 1; own < max_proxy_threads - staged_contexts; ++own) {
    const KernelProxyContexts kernels = kernel_proxy_contexts(own);
    EXPECT_GE(kernels.threads, 1u);
    EXPECT_LE(kernels.threads, own);
    const int last = kernels.context - static_cast<int>(kernels.threads) + 1;
    EXPECT_LE(kernels.context, proxy_context - static_cast<int>(own)) << own;
    EXPECT_GT(last, staged_agent_context) << own;
    EXPECT_EQ((proxy_context - kernels.context) % static_cast<int>(kernels.threads), 0) << own;
  }
  for (unsigned own = max_proxy_threads - staged_contexts; own <= max_proxy_threads; ++own)
    EXPECT_EQ(kernel_proxy_contexts(own).threads, 0u);
  CountingTransport transport;
  JobHealth health;
  DeviceNetworkInputs inputs = inputs_of(0, {&transport, &transport}, "proxy", health,
                                         std::make_shared<PlainKernelMemory>());
  inputs.proxy.threads = max_proxy_threads;
  expect_error(ExitCode::usage, {"SHMEMCTL_PROXY_THREADS=8"},
               [&] { DeviceNetworkPart part(std::move(inputs)); });
}

} // namespace
} // namespace shmemctl::test
