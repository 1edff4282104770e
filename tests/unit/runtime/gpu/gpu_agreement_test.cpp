// What PEs conclude from each other's capabilities.
#include <gtest/gtest.h>

#include "src/runtime/gpu/gpu_agreement.h"

namespace shmemctl {
namespace {

GpuCapabilities gpu(const std::string& uuid, bool shareable = true) {
  GpuCapabilities capabilities;
  capabilities.there = true;
  capabilities.uuid = uuid;
  capabilities.shareable = shareable;
  return capabilities;
}
GpuCapabilities none(const std::string& reason) {
  GpuCapabilities capabilities;
  capabilities.reason = reason;
  return capabilities;
}

Placement on_machines(int pe, const std::vector<std::uint64_t>& machines) {
  std::vector<PeHost> hosts;
  for (const std::uint64_t machine : machines) {
    PeHost host;
    host.host_name = "host" + std::to_string(machine);
    host.machine_id = host.node_id = machine;
    hosts.push_back(host);
  }
  return place(pe, std::move(hosts));
}

GpuCapabilities there_and_back(const GpuCapabilities& capabilities) {
  return from_bytes<GpuCapabilities>(to_bytes(capabilities)).value();
}

TEST(GpuAgreement, RoundTripsCapabilities) {
  for (const GpuCapabilities& capabilities : {gpu("GPU-1"), gpu("GPU-2", false), gpu("")}) {
    const GpuCapabilities read = there_and_back(capabilities);
    EXPECT_TRUE(read.there);
    EXPECT_EQ(read.uuid, capabilities.uuid);
    EXPECT_EQ(read.shareable, capabilities.shareable);
  }
  EXPECT_EQ(there_and_back(none("no driver")).reason, "no driver");
  EXPECT_FALSE(there_and_back(none("no driver")).there);
}

TEST(GpuAgreement, ThePeWithoutAGpuIsNamed) {
  const Placement placement = on_machines(2, {7, 8, 8});
  EXPECT_EQ(why_no_gpus({gpu("a"), gpu("b"), gpu("c")}, placement), "");
  EXPECT_EQ(why_no_gpus({gpu("a"), none("no driver"), none("none")}, placement),
            "PE 1 on host8 has no GPU: no driver");
  EXPECT_EQ(why_no_gpus({none("x"), none("y"), none("mine")}, placement), "mine");
}

TEST(GpuAgreement, ThePeWhoseDriverRunsNoKernelsIsNamed) {
  const Placement placement = on_machines(0, {7, 8});
  GpuCapabilities old = gpu("b");
  old.no_kernels = "the driver is old";
  EXPECT_EQ(there_and_back(old).no_kernels, "the driver is old");
  EXPECT_EQ(why_no_kernels_of_job({gpu("a"), gpu("b")}, placement), "");
  EXPECT_EQ(why_no_kernels_of_job({gpu("a"), old}, placement), "PE 1 on host8: the driver is old");
}

TEST(GpuAgreement, TheHeapKindIsCommonToAllGpus) {
  const Placement one = on_machines(0, {1, 1});
  EXPECT_EQ(choose_gpu_heap("auto", {gpu("a"), gpu("b")}, one).kind, "vmm");
  const HeapKind kind = choose_gpu_heap("auto", {gpu("a"), gpu("b", false)}, one);
  EXPECT_EQ(kind.kind, "ipc");
  EXPECT_NE(kind.reason.find("PE 1"), std::string::npos) << kind.reason;
  EXPECT_EQ(choose_gpu_heap("host", {gpu("a"), gpu("b", false)}, one).kind, "host");
}

TEST(GpuAgreement, FabricHandlesAreForMachinesOfOneNvlinkDomain) {
  const auto in = [](const std::string& domain) {
    GpuCapabilities capabilities = gpu("GPU-1");
    capabilities.fabric = domain;
    return capabilities;
  };
  EXPECT_EQ(there_and_back(in("07aa.2")).fabric, "07aa.2");
  EXPECT_EQ(there_and_back(in("07aa.2")).uuid, "GPU-1");
  EXPECT_EQ(there_and_back(in("")).fabric, "");
  const Placement two = on_machines(0, {1, 1, 2});
  const auto kind = [&](const std::vector<GpuCapabilities>& capabilities_by_pe,
                        const Placement& placement) {
    return choose_gpu_heap("auto", capabilities_by_pe, placement).kind;
  };
  EXPECT_EQ(kind({in("a.1"), in("a.1"), in("a.1")}, two), "fabric");
  EXPECT_EQ(kind({in("b.1"), in("a.1"), in("a.1")}, two), "fabric") << "PE 0 is alone in its own";
  EXPECT_EQ(kind({in("a.1"), in("a.1"), in("a.2")}, two), "vmm") << "another clique";
  EXPECT_EQ(kind({in("a.1"), in(""), in("a.1")}, two), "vmm") << "PE 1 has none";
  EXPECT_EQ(kind({in("a.1"), in("a.1")}, on_machines(0, {1, 1})), "vmm") << "one machine";
  EXPECT_NE(choose_gpu_heap("auto", {in("a.1"), in("a.1"), in("a.1")}, two).reason.find("a.1"),
            std::string::npos);
}

TEST(GpuAgreement, PesOfADeviceAreCountedOnTheirMachine) {
  const std::vector<GpuCapabilities> capabilities_by_pe = {gpu("a"), gpu("a"), gpu("b"), gpu("a")};
  EXPECT_EQ(pes_on_device(capabilities_by_pe, on_machines(0, {1, 1, 1, 2})), 2);
  EXPECT_EQ(pes_on_device(capabilities_by_pe, on_machines(2, {1, 1, 1, 2})), 1);
  EXPECT_EQ(pes_on_device(capabilities_by_pe, on_machines(3, {1, 1, 1, 2})), 1);
}

TEST(GpuAgreement, GroupsMapEachOther) {
  using Row = std::vector<std::string>;
  const std::vector<int> all = {0, 1, 2, 3};
  const std::vector<Row> everybody(4, Row(4));
  EXPECT_EQ(mapping_group(all, everybody, 2), all);
  EXPECT_EQ(mapping_group({1, 3}, everybody, 3), (std::vector<int>{1, 3}));
  // Two pairs that do not reach each other.
  std::vector<Row> pairs = everybody;
  for (const auto& [a, b] : {std::pair{0, 2}, {0, 3}, {1, 2}, {1, 3}})
    pairs[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] = "no"; // one path is enough
  EXPECT_EQ(mapping_group(all, pairs, 0), (std::vector<int>{0, 1}));
  EXPECT_EQ(mapping_group(all, pairs, 3), (std::vector<int>{2, 3}));
  // A chain: the one in the middle belongs to the first group.
  std::vector<Row> chain = everybody;
  chain[2][0] = "no";
  EXPECT_EQ(mapping_group({0, 1, 2}, chain, 1), (std::vector<int>{0, 1}));
  EXPECT_EQ(mapping_group({0, 1, 2}, chain, 2), (std::vector<int>{2}));
}

} // namespace
} // namespace shmemctl
