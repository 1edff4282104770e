#include "src/runtime/numa_choice.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <sched.h>

#include "tests/support/temporary_folder.h"

namespace shmemctl {
namespace {

NumaNode numa_node(int index, const std::string& cpus, NumaKind kind = NumaKind::cpu) {
  NumaNode numa;
  numa.os_index = index;
  numa.kind = kind;
  numa.cpus = known(cpus, "test");
  numa.memory_bytes = known(std::uint64_t{1} << 30, "test");
  return numa;
}

/// Two nodes of four CPUs; GPU 0 on the second, GPU 1 on an unknown one.
Node two_nodes() {
  Node node;
  node.numa_nodes = {numa_node(0, "0-1,4-5"), numa_node(1, "2-3,6-7")};
  node.gpus.resize(2);
  node.gpus[0].numa = known(1, "test");
  node.gpus[1].numa = unknown<int>("numa_node reads -1");
  return node;
}

TEST(NumaChoice, TheNodeOfTheCpusThatThePeIsBoundTo) {
  const Node node = two_nodes();
  EXPECT_EQ(choose_numa_node(node, {0}, -1).node, 0);
  EXPECT_EQ(choose_numa_node(node, {0, 5}, -1).node, 0);
  EXPECT_EQ(choose_numa_node(node, {2, 3, 6, 7}, -1).node, 1);
  EXPECT_EQ(choose_numa_node(node, {2, 6}, -1).reason, "the PE is bound to its CPUs (2,6)");
}

TEST(NumaChoice, TheBindingGoesBeforeTheGpu) {
  EXPECT_EQ(choose_numa_node(two_nodes(), {4}, 0).node, 0);
}

TEST(NumaChoice, TheGpusNodeForAPeThatMayRunAnywhere) {
  const NumaChoice choice = choose_numa_node(two_nodes(), {0, 1, 2, 3, 4, 5, 6, 7}, 0);
  EXPECT_EQ(choice.node, 1);
  EXPECT_NE(choice.reason.find("GPU 0"), std::string::npos) << choice.reason;
  EXPECT_EQ(choose_numa_node(two_nodes(), {}, 0).node, 1); // the kernel does not tell
}

TEST(NumaChoice, NoneWithoutAReason) {
  const Node node = two_nodes();
  for (const int gpu : {-1, 1, 2}) {
    const NumaChoice choice = choose_numa_node(node, {1, 2}, gpu);
    EXPECT_EQ(choice.node, -1);
    EXPECT_NE(choice.reason, "");
  }
  EXPECT_EQ(choose_numa_node(node, {}, -1).node, -1);
  EXPECT_EQ(choose_numa_node(node, {99}, -1).node, -1);
}

TEST(NumaChoice, OneNodeIsNoChoice) {
  Node node = two_nodes();
  node.numa_nodes.resize(1);
  EXPECT_EQ(choose_numa_node(node, {0}, 0).node, -1);
  EXPECT_EQ(choose_numa_node(Node{}, {0}, -1).node, -1);
  node = two_nodes();
  node.numa_nodes[0].memory_bytes = known(std::uint64_t{0}, "test"); // all memory is on the other
  EXPECT_EQ(choose_numa_node(node, {0}, -1).node, -1);
}

TEST(NumaChoice, MemoryOfDevicesIsNotForHeaps) {
  Node node = two_nodes();
  node.numa_nodes.push_back(numa_node(2, "2-3,6-7", NumaKind::other_memory));
  node.numa_nodes.push_back(numa_node(8, "", NumaKind::gpu_memory));
  std::reverse(node.numa_nodes.begin(), node.numa_nodes.end());
  EXPECT_EQ(choose_numa_node(node, {2}, -1).node, 1);
  node.gpus[0].numa = known(8, "test");
  EXPECT_EQ(choose_numa_node(node, {1, 2}, 0).node, -1);
}

TEST(NumaChoice, WhatTheKernelAllowsIsRead) {
  TemporaryFolder folder;
  const auto allowed = [&](const std::string& status) {
    folder.write("proc/thread-self/status", status);
    return allowed_cpus(Sysroot(folder.path()));
  };
  EXPECT_EQ(allowed("Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t0-3,8\nMems:\t0\n"),
            (CpuSet{0, 1, 2, 3, 8}));
  for (const char* odd : {"", "Cpus_allowed_list:\n", "Cpus_allowed_list:\tmany\n", "Cpus"})
    EXPECT_TRUE(allowed(odd).empty()) << odd;
}

TEST(NumaChoice, ABindingIsSeen) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  const CpuSet all = allowed_cpus(Sysroot());
  ASSERT_FALSE(all.empty());
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(all.last()), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(allowed_cpus(Sysroot()), CpuSet{all.last()});
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

} // namespace
} // namespace shmemctl
