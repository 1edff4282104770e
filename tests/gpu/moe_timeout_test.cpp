// Dispatch and combine on GPUs with a rank that begins when another one has timed out: no rank ends
// the call well. And launches across nodes: in graphs, and with more blocks than are resident.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "tests/gpu/moe_internode_rank.h"
#include "tests/gpu/moe_rank.h"
#include "tests/gpu/moe_routings.h"
#include "tests/gpu/moe_test_support.h"

namespace shmemctl::test {
namespace {

constexpr double short_s = 0.5;
constexpr double long_timeout_s = 60;

/// Rank 0 has a short timeout; the late rank begins when it has reported.
class Lateness {
public:
  explicit Lateness(int late) : late_(late) {}

  /// Called by each rank, before all ranks meet.
  void enter(ThreadGpu& pe) {
    if (pe.job.pe == 0) {
      pe.job.timeout_ns = static_cast<std::uint64_t>(short_s * 1e9);
      report_ = &pe.report();
    }
  }
  /// Called by each rank, after that meeting.
  void wait(const ThreadGpu& pe) const {
    if (pe.job.pe != late_)
      return;
    const auto begin = std::chrono::steady_clock::now();
    while (__atomic_load_n(&report_->state, __ATOMIC_ACQUIRE) != WaitReport::written)
      if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(60))
        throw std::runtime_error("rank 0 has not timed out for a minute");
      else
        std::this_thread::yield();
  }
  /// What each of them must have said.
  void expect_all_failed(const std::string& said, int n_ranks, const std::string& where) const {
    for (int pe = 0; pe < n_ranks; ++pe)
      EXPECT_NE(
          said.find("PE " + std::to_string(pe) + " waited for PE " + std::to_string(late_) + ":"),
          std::string::npos)
          << where << ", rank " << pe << ": " << said;
  }

private:
  int late_;
  WaitReport* report_ = nullptr;
};

bool is_poison(const std::byte* memory, std::size_t size_bytes) {
  std::vector<std::byte> bytes(size_bytes);
  cuda_must(cudaMemcpy(bytes.data(), memory, size_bytes, cudaMemcpyDefault), "copy");
  return std::all_of(bytes.begin(), bytes.end(),
                     [](std::byte byte) { return byte == std::byte{poison_byte}; });
}

TEST(MoeLate, ATimeoutOfOneRankFailsTheCallOnAll) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  if (!can_run(3))
    GTEST_SKIP() << "ranks share a GPU";
  const moe::Shape shape = shape_of(3, 12, 4, 2048, 100);
  const moe::Routing routing = uniform_routing(shape, 91, 5);
  for (const int op : {0, 1, 2}) { // notify and dispatch, dispatch, combine
    Lateness lateness(1);
    std::atomic<int> touched{0};
    ThreadGpus gpus(3);
    const auto begin = std::chrono::steady_clock::now();
    const std::string said = gpus.run(
        MoeRank::heap_bytes(shape, moe::Scales::none),
        [&](ThreadGpu& pe) {
          MoeRank rank(pe, shape, moe::Scales::none, routing);
          rank.poison();
          if (op > 0)
            rank.notify();
          if (op > 1)
            rank.dispatch({4, 4, 2, 1});
          pe.synchronize();
          lateness.enter(pe);
          pe.barrier();
          lateness.wait(pe);
          if (op == 0)
            rank.notify();
          if (op < 2)
            rank.dispatch({4, 4, 2, 1});
          else
            rank.combine({4, 4, 2}, 2048);
          cuda_must(cudaStreamSynchronize(pe.stream), "kernels");
          // A failed notification has no plan: not a row may lie anywhere.
          const moe::HighThroughputMemory& memory = rank.memory();
          const auto rows = static_cast<std::size_t>(shape.max_rows());
          const moe::MetadataLayout layout(shape, moe::Scales::none);
          if (op == 0 &&
              !(is_poison(memory.rows, rows * static_cast<std::size_t>(shape.hidden) * 2) &&
                is_poison(memory.records, rows * static_cast<std::size_t>(layout.bytes()))))
            ++touched;
          pe.synchronize(); // throws what was reported
        },
        long_timeout_s);
    lateness.expect_all_failed(said, 3, "call " + std::to_string(op));
    EXPECT_EQ(touched, 0) << op;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30))
        << op << ": ranks with a long timeout do not wait for it";
  }
}

moe::InternodeShape nodes_of_two() {
  moe::InternodeShape shape{};
  shape.shape = shape_of(4, 16, 4, 2048, 100);
  shape.format = moe::Format::bf16;
  shape.node_ranks = 2;
  shape.chunk_rows = 16;
  return shape;
}

TEST(MoeLate, ATimeoutOfOneRankFailsTheCallOnAllAcrossNodes) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  if (!can_run(4))
    GTEST_SKIP() << "ranks share a GPU";
  const moe::InternodeShape shape = nodes_of_two();
  const moe::Routing routing = all_routings(shape.shape)[0].routing;
  for (const int late : {1, 2})      // a rank of the node, then one of the rail
    for (const int op : {0, 1, 2}) { // notify and dispatch, dispatch, combine
      Lateness lateness(late);
      ThreadGpus gpus(4);
      const std::string said = gpus.run(
          MoeInternodeRank::heap_bytes(shape),
          [&](ThreadGpu& pe) {
            MoeInternodeRank rank(pe, shape, routing);
            pe.barrier();
            if (op > 0)
              rank.notify();
            if (op > 1)
              rank.dispatch(4);
            pe.synchronize();
            lateness.enter(pe);
            pe.barrier();
            lateness.wait(pe);
            if (op == 0)
              rank.notify();
            if (op < 2)
              rank.dispatch(4);
            else
              rank.combine(4);
            pe.synchronize();
          },
          long_timeout_s);
      lateness.expect_all_failed(said, 4,
                                 "call " + std::to_string(op) + ", late " + std::to_string(late));
    }
}

TEST(MoeHybridLaunch, MoreBlocksThanAreResidentAreRefused) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  const moe::InternodeShape shape = nodes_of_two();
  int multiprocessors = 0;
  cuda_must(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0), "SMs");
  moe::InternodeDispatch dispatch{};
  moe::InternodeCombine combine{};
  dispatch.shape = combine.shape = shape;
  dispatch.sms = combine.sms = 16 * multiprocessors + 1;
  for (const std::string& said : {moe::launch_internode_dispatch({}, dispatch, nullptr),
                                  moe::launch_internode_combine({}, combine, nullptr)})
    EXPECT_NE(said.find(" SMs, and " + std::to_string(multiprocessors) + " are available"),
              std::string::npos)
        << said;
}

TEST(MoeHybridLaunch, EachReplayOfAGraphIsACallOfItsOwn) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  if (!can_run(4))
    GTEST_SKIP() << "ranks share a GPU";
  const moe::InternodeShape shape = nodes_of_two();
  const moe::Routing routing = all_routings(shape.shape)[0].routing;
  ThreadGpus gpus(4);
  ASSERT_EQ(gpus.run(MoeInternodeRank::heap_bytes(shape),
                     [&](ThreadGpu& pe) {
                       MoeInternodeRank rank(pe, shape, routing);
                       cudaGraph_t graph = nullptr;
                       cudaGraphExec_t ready = nullptr;
                       // a stream capture fails if another rank calls memset on the same GPU
                       pe.barrier();
                       cuda_must(
                           cudaStreamBeginCapture(pe.stream, cudaStreamCaptureModeThreadLocal),
                           "capture");
                       rank.notify();
                       rank.dispatch(4);
                       rank.experts();
                       rank.combine(4);
                       cuda_must(cudaStreamEndCapture(pe.stream, &graph), "end of the capture");
                       cuda_must(cudaGraphInstantiate(&ready, graph, 0), "graph");
                       pe.barrier();
                       for (int i = 0; i < 5; ++i) {
                         rank.poison_results();
                         rank.poison_plan();
                         rank.poison();
                         cuda_must(cudaGraphLaunch(ready, pe.stream), "launch of the graph");
                         must(rank.check_plan(), "graph");
                         must(rank.check_rows(), "graph");
                         must(rank.check_results(), "graph");
                         pe.barrier();
                       }
                       cudaGraphExecDestroy(ready);
                       cudaGraphDestroy(graph);
                     }),
            "");
}

} // namespace
} // namespace shmemctl::test
