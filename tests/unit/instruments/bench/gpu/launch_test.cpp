#include "src/instruments/bench/launch.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "src/instruments/bench/case.h"
#include "src/instruments/bench/gpu/gpu_case.h"
#include "tests/support/expect_error.h"

namespace shmemctl::bench {
namespace {

LaunchRequest by_gpu() {
  LaunchRequest request;
  request.initiator = Initiator::gpu;
  return request;
}
LaunchRules grid_rules() {
  LaunchRules rules;
  rules.scopes = {CallScope::block, CallScope::warp, CallScope::thread};
  rules.one_caller = false;
  rules.ctas = 32;
  rules.threads = 1024;
  return rules;
}
LaunchRules caller_rules() {
  LaunchRules rules = grid_rules();
  rules.one_caller = true;
  rules.threads = 128;
  return rules;
}

template <class Call>
void expect_refused(const char* words, const Call& call) {
  const std::string text = shmemctl::test::expect_error(ExitCode::usage, {}, call);
  EXPECT_NE(text.find(words), std::string::npos) << text;
}

TEST(Launch, KernelsAndStreamsWorkInTheGpusMemory) {
  EXPECT_EQ(check_launch({}), MemoryKind::host);
  EXPECT_EQ(check_launch(by_gpu()), MemoryKind::gpu);
  LaunchRequest request;
  request.initiator = Initiator::stream;
  EXPECT_EQ(check_launch(request), MemoryKind::gpu);
  request.memory = MemoryKind::host;
  expect_refused("--memory host", [&] { check_launch(request); });
  request.initiator = Initiator::host;
  request.memory = MemoryKind::gpu;
  EXPECT_EQ(check_launch(request), MemoryKind::gpu);
}

TEST(Launch, ShapesAreForKernelsAndGraphsForStreams) {
  LaunchRequest request;
  request.ctas = 2;
  expect_refused("--ctas", [&] { check_launch(request); });
  request = {};
  request.threads = 2;
  expect_refused("--threads", [&] { check_launch(request); });
  request = {};
  request.scope = CallScope::warp;
  expect_refused("--scope", [&] { check_launch(request); });
  request = by_gpu();
  request.graph = true;
  expect_refused("--graph", [&] { check_launch(request); });
  request = by_gpu();
  request.threads = max_threads + 1;
  expect_refused("1 to 1024", [&] { check_launch(request); });
}

TEST(Launch, TakesTheCasesOwnShapeUnlessAskedOtherwise) {
  Launch launch = launch_of("put", grid_rules(), by_gpu());
  EXPECT_EQ(launch.scope, CallScope::block);
  EXPECT_EQ(launch.ctas, 32);
  EXPECT_EQ(launch.threads, 1024);
  LaunchRequest request = by_gpu();
  request.scope = CallScope::warp;
  request.ctas = 4;
  request.threads = 96;
  launch = launch_of("put", grid_rules(), request);
  EXPECT_EQ(launch.scope, CallScope::warp);
  EXPECT_EQ(launch.ctas, 4);
  EXPECT_EQ(launch.threads, 96);
}

TEST(Launch, OneCallerIsOneThreadOneWarpOrOneBlock) {
  LaunchRequest request = by_gpu();
  const auto threads_for = [&](CallScope scope) {
    request.scope = scope;
    return launch_of("put-latency", caller_rules(), request).threads;
  };
  EXPECT_EQ(threads_for(CallScope::thread), 1);
  EXPECT_EQ(threads_for(CallScope::warp), 32);
  EXPECT_EQ(threads_for(CallScope::block), 128);
  request.threads = 256;
  EXPECT_EQ(threads_for(CallScope::block), 256);
  expect_refused("--threads must be 32", [&] { threads_for(CallScope::warp); });
  request = by_gpu();
  request.ctas = 2;
  expect_refused("one block", [&] { launch_of("put-latency", caller_rules(), request); });
}

TEST(Launch, RefusesHalfAWarpAndScopesThatTheCaseLacks) {
  LaunchRequest request = by_gpu();
  request.scope = CallScope::warp;
  request.threads = 48;
  expect_refused("whole number of warps", [&] { launch_of("put", grid_rules(), request); });
  LaunchRules rules = grid_rules();
  rules.scopes = {CallScope::thread};
  request = by_gpu();
  request.scope = CallScope::block;
  expect_refused("--scope thread", [&] { launch_of("p", rules, request); });
}

TEST(GpuCases, PesThatShareAGpuHaveEqualPartsOfItsBlocks) {
  GpuInfo gpu;
  gpu.name = "H100";
  Launch launch;
  launch.threads = 1024;
  launch.ctas = 132;
  EXPECT_EQ(too_many_blocks(gpu, launch, 132), "");
  EXPECT_EQ(too_many_blocks(gpu, launch, 0), "") << "nobody knows";
  launch.ctas = 133;
  EXPECT_EQ(too_many_blocks(gpu, launch, 132),
            "133 blocks of 1024 threads do not run at once on H100: at most 132");
  gpu.pes_on_device = 2;
  launch.ctas = 66;
  EXPECT_EQ(too_many_blocks(gpu, launch, 132), "");
  launch.ctas = 132;
  EXPECT_EQ(too_many_blocks(gpu, launch, 132),
            "132 blocks of 1024 threads do not run at once on H100, which 2 PEs share: at most 66");
  gpu.pes_on_device = 3;
  launch.ctas = 2;
  EXPECT_NE(too_many_blocks(gpu, launch, 2), "");
}

TEST(GpuCases, HaveNamesAndLaunchesOfTheirOwn) {
  for (const Initiator initiator : {Initiator::gpu, Initiator::stream}) {
    std::vector<std::string> names;
    for (const BenchCase& bench_case : cases_of(initiator, MemoryKind::gpu)) {
      const CaseInfo& info = bench_case.info;
      EXPECT_EQ(std::count(names.begin(), names.end(), info.name), 0) << info.name;
      names.push_back(info.name);
      EXPECT_EQ(info.initiator, initiator) << info.name;
      EXPECT_FALSE(info.measures.empty()) << info.name;
      EXPECT_NE(info.how.find("Verified"), std::string::npos) << info.name;
      EXPECT_FALSE(info.traffics.empty()) << info.name;
      EXPECT_EQ(info.launch.scopes.empty(), initiator != Initiator::gpu) << info.name;
      LaunchRequest request;
      request.initiator = initiator;
      EXPECT_EQ(launch_of(info.name, info.launch, request).ctas > 0, initiator == Initiator::gpu)
          << info.name;
    }
  }
}

TEST(GpuCases, OfAtomicsSayThatFetchedValuesAreVerifiedWhereThereAreAny) {
  std::vector<std::string> fetching;
  for (const BenchCase& bench_case : cases_of(Initiator::gpu, MemoryKind::gpu))
    if (bench_case.info.how.find("every value fetched") != std::string::npos)
      fetching.push_back(bench_case.info.name);
  EXPECT_EQ(fetching, (std::vector<std::string>{"atomic-fetch", "atomic-swap",
                                                "atomic-compare-swap", "atomic-fetch-add"}));
}

TEST(GpuCases, OfTheHostAreThoseThatReachItsMemory) {
  const auto cases = cases_of(Initiator::host, MemoryKind::gpu);
  EXPECT_GE(cases.size(), 4u);
  EXPECT_LT(cases.size(), host_cases().size());
  for (const BenchCase& bench_case : cases)
    EXPECT_EQ(bench_case.info.memory, MemoryKind::gpu) << bench_case.info.name;
  EXPECT_EQ(cases_of(Initiator::host, MemoryKind::host).size(), host_cases().size());
}

} // namespace
} // namespace shmemctl::bench
