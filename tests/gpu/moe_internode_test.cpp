// Dispatch and combine across nodes on GPUs: every bit of every row.
#include <gtest/gtest.h>

#include "tests/gpu/moe_internode_rank.h"
#include "tests/gpu/moe_routings.h"
#include "tests/gpu/moe_test_support.h"

namespace shmemctl::test {
namespace {

moe::InternodeShape nodes_of(const moe::Shape& shape, std::int32_t node_ranks, moe::Format format,
                             std::int32_t chunk_rows, bool combined_weights = false) {
  moe::InternodeShape all{};
  all.combined_weights = combined_weights;
  all.shape = shape;
  all.format = format;
  all.node_ranks = node_ranks;
  all.chunk_rows = chunk_rows;
  return all;
}
std::string name_of(const moe::InternodeShape& shape) {
  return std::to_string(shape.shape.n_ranks) + " ranks, " + std::to_string(shape.node_ranks) +
         " on a node, hidden " + std::to_string(shape.shape.hidden);
}

class MoeHybrid : public testing::TestWithParam<moe::Format> {};
INSTANTIATE_TEST_SUITE_P(Formats, MoeHybrid, testing::Values(moe::Format::bf16, moe::Format::fp8),
                         [](const auto& format) {
                           return format.param == moe::Format::bf16 ? "Bf16" : "Fp8";
                         });

TEST_P(MoeHybrid, EveryBitOfEveryRow) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  const std::vector<moe::InternodeShape> shapes = {
      nodes_of(shape_of(4, 256, 8, 7168, 100), 2, GetParam(), 16, true),
      nodes_of(shape_of(2, 8, 1, 4096, 77), 1, GetParam(), 5),
      nodes_of(shape_of(8, 64, 16, 2048, 150), 4, GetParam(), 32),
      nodes_of(shape_of(6, 12, 5, 2176, 129), 2, GetParam(), 1, true)};
  for (const moe::InternodeShape& shape : reduced(shapes))
    for (const NamedRouting& routing : all_routings(shape.shape)) {
      if (!can_run(shape.shape.n_ranks))
        continue;
      const std::string where = name_of(shape) + ", " + routing.name;
      ThreadGpus gpus(shape.shape.n_ranks);
      ASSERT_EQ(gpus.run(MoeInternodeRank::heap_bytes(shape),
                         [&](ThreadGpu& pe) {
                           MoeInternodeRank rank(pe, shape, routing.routing);
                           rank.poison();
                           rank.poison_plan();
                           rank.notify();
                           rank.dispatch(7);
                           must(rank.check_plan(), where);
                           must(rank.check_rows(), where);
                           rank.experts();
                           for (const bool with_bias : {false, true}) {
                             rank.poison_results();
                             rank.combine(7, with_bias);
                             must(rank.check_results(with_bias), where);
                             pe.barrier();
                             rank.set_chunks(shape.chunk_rows, 3); // chunks for the second sums
                           }
                           pe.barrier();
                         }),
                "");
    }
}

/// Full size, ranks at different times, calls of a kind behind each other; each time verified.
TEST_P(MoeHybrid, ThreeHundredTimes) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  if (!can_run(4))
    GTEST_SKIP() << "ranks share a GPU";
  const moe::InternodeShape shape =
      nodes_of(shape_of(4, 256, 8, 7168, 4096), 2, GetParam(), 16, true);
  const moe::Routing routing = all_routings(shape.shape)[0].routing;
  ThreadGpus gpus(4);
  const char* const said = std::getenv("SHMEMCTL_MOE_REPEATS");
  const int repeats = said != nullptr ? std::atoi(said) : share_of(300);
  ASSERT_EQ(gpus.run(MoeInternodeRank::heap_bytes(shape),
                     [&](ThreadGpu& pe) {
                       MoeInternodeRank rank(pe, shape, routing);
                       std::mt19937 random(static_cast<unsigned>(pe.job.pe));
                       pe.barrier(); // no memory is allocated while a kernel waits
                       rank.notify();
                       for (int i = 0; i < repeats; ++i) {
                         const std::string where = "repetition " + std::to_string(i);
                         constexpr std::int32_t chunks[] = {16, 64, 5, 1, 4096};
                         rank.set_chunks(chunks[i % 5], chunks[i / 5 % 5]);
                         rank.poison();
                         dawdle(random);
                         if (i % 4 == 0) {
                           rank.poison_plan();
                           rank.notify();
                         }
                         // Ranks need not take the same number of multiprocessors.
                         const int sms = 4 + (i * 7 + pe.job.pe * 17) % 28;
                         rank.dispatch(sms);
                         if (i % 3 == 0)
                           rank.dispatch(sms);
                         must(rank.check_rows(), where);
                         dawdle(random); // a rank that combines too early finds poison
                         rank.experts();
                         dawdle(random);
                         rank.poison_results();
                         rank.combine(sms);
                         if (i % 5 == 0)
                           rank.combine(sms);
                         must(rank.check_results(), where);
                       }
                       pe.barrier();
                     }),
            "");
}

TEST(MoeHybridWaits, ARankThatDoesNotComeIsNamed) {
  if (!has_gpu())
    GTEST_SKIP() << "no GPU";
  if (!can_run(4))
    GTEST_SKIP() << "ranks share a GPU";
  const moe::InternodeShape shape =
      nodes_of(shape_of(4, 16, 4, 2048, 100), 2, moe::Format::bf16, 16);
  const moe::Routing routing = all_routings(shape.shape)[0].routing;
  for (const int missing : {1, 2})   // a rank of the node, then one of the rail
    for (const int op : {0, 1, 2}) { // notify, dispatch, combine
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
            pe.barrier();
            if (pe.job.pe == missing)
              return pe.wait_for_others();
            if (op == 0)
              rank.notify();
            else if (op == 1)
              rank.dispatch(4);
            else
              rank.combine(4);
            pe.synchronize();
          },
          0.3);
      EXPECT_NE(said.find("PE 0 waited for PE " + std::to_string(missing) + ":"), std::string::npos)
          << op << ": " << said;
    }
}

} // namespace
} // namespace shmemctl::test
