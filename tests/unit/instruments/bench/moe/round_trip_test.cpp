// Dispatch and combine on host memory are right to the bit, for every routing and shape.
#include <gtest/gtest.h>

#include "tests/unit/instruments/bench/moe/drive.h"

namespace shmemctl::test {
namespace {

using namespace moe;

/// The variants of one setup.
std::vector<MoeDrive> modes_of(const MoeDrive& drive) {
  return {drive, low_latency(drive, Combine::weighted), low_latency(drive, Combine::partial),
          by_expert(drive)};
}

TEST(MoeHost, EveryRouting) {
  for (const RoutingKind kind :
       {RoutingKind::uniform, RoutingKind::zipf, RoutingKind::one_rank, RoutingKind::hot_expert,
        RoutingKind::empty_ranks, RoutingKind::grouped})
    for (const bool hard : {false, true})
      for (MoeDrive drive : modes_of(moe_drive(4, 32, 8, 128, 19))) {
        drive.routing.kind = kind;
        drive.routing.groups = 8;
        drive.routing.top_groups = 4;
        drive.routing.uneven = hard;
        drive.routing.masked_percent = hard ? 30 : 0;
        expect_right(drive);
      }
}

TEST(MoeHost, EveryTopKAndHidden) {
  for (const int top_k : {1, 8, 16})
    for (const int hidden : {2048, 4096, 7168, 2176})
      for (MoeDrive drive : modes_of(moe_drive(2, 32, top_k, hidden, 3))) {
        drive.chained = 1;
        expect_right(drive);
        drive.setup.format = Format::fp8;
        expect_right(drive);
      }
}

TEST(MoeHost, NoTokenOneTokenAndAllMasked) {
  for (const int tokens : {0, 1})
    for (MoeDrive drive : modes_of(moe_drive(3, 9, 2, 64, std::max(tokens, 1)))) {
      drive.routing.tokens = tokens;
      expect_right(drive);
    }
  for (MoeDrive drive : modes_of(moe_drive(3, 9, 2, 64, 7))) {
    drive.routing.masked_percent = 100;
    expect_right(drive);
  }
}

TEST(MoeHost, OneRankAlone) {
  for (const MoeDrive& drive : modes_of(moe_drive(1, 4, 2, 64, 9)))
    expect_right(drive);
}

TEST(MoeHost, Fp8WithBothKindsOfScales) {
  for (const bool power : {false, true})
    for (MoeDrive drive : modes_of(moe_drive(4, 16, 4, 256, 33))) {
      drive.setup.format = Format::fp8;
      drive.setup.power_scales = power;
      expect_right(drive);
    }
}

TEST(MoeHost, BiasAndAlignedCounts) {
  MoeDrive drive = moe_drive(4, 16, 4, 128, 21);
  drive.setup.bias = true;
  drive.setup.shape.expert_alignment = 16;
  expect_right(drive);
}

TEST(MoeHost, PackedRowsOfAnExpertBeginAtMultiples) {
  for (const int alignment : {1, 16}) {
    MoeDrive drive = by_expert(moe_drive(4, 16, 4, 128, 21));
    drive.setup.shape.expert_alignment = alignment;
    drive.routing.masked_percent = 20;
    expect_right(drive);
    drive.routing.kind = RoutingKind::hot_expert;
    drive.setup.format = Format::fp8;
    expect_right(drive);
  }
}

TEST(MoeHost, WeightsAreReturned) {
  for (const int node_ranks : {6, 3, 2}) {
    MoeDrive drive = moe_drive(6, 24, 5, 128, 17);
    drive.setup.node_ranks = node_ranks;
    drive.pes_per_node = node_ranks == 6 ? 0 : node_ranks;
    drive.setup.combined_weights = true;
    drive.setup.bias = true;
    drive.routing.masked_percent = 30;
    expect_right(drive);
  }
}

TEST(MoeHost, RandomDelaysChangeNothing) {
  for (MoeDrive drive : modes_of(moe_drive(4, 16, 4, 64, 11))) {
    drive.chained = 30;
    drive.delays_us = 300;
    expect_right(drive);
  }
}

/// Between nodes puts arrive late and in any order: a missing fence or wait fails here.
TEST(MoeHost, OverALateTransport) {
  for (MoeDrive drive : modes_of(moe_drive(4, 16, 4, 64, 13))) {
    drive.pes_per_node = 1;
    expect_right(drive);
  }
}

TEST(MoeHost, OverNodesRowsCrossOnceAndComeBackAddedUp) {
  for (const int node_ranks : {1, 2, 3}) {
    MoeDrive drive = moe_drive(6, 24, 6, 128, 17);
    drive.setup.node_ranks = node_ranks;
    drive.pes_per_node = node_ranks;
    expect_right(drive);
    drive.setup.bias = true;
    drive.setup.format = Format::fp8;
    drive.routing.uneven = true;
    drive.routing.masked_percent = 40;
    drive.delays_us = 200;
    expect_right(drive);
    drive.routing.kind = RoutingKind::one_rank;
    expect_right(drive);
  }
}

/// It takes part in one round and in no other: the others mask it, once, and continue.
TEST(MoeHost, ADeadRankIsMaskedAndTheRestGoOn) {
  constexpr std::int32_t dead = 1;
  for (MoeDrive drive : {low_latency(moe_drive(4, 16, 4, 64, 11), Combine::weighted),
                         low_latency(moe_drive(4, 16, 4, 64, 11), Combine::partial),
                         by_expert(moe_drive(4, 16, 4, 64, 11))}) {
    const Routing routing = make_routing(drive.setup.shape, drive.routing);
    drive.setup.routing = &routing;
    drive.setup.rank_timeout_us = 1'000'000;
    TeamWorldOptions options;
    options.heap_bytes = host_backend_bytes(drive.setup) / 4096 * 4096 + 8192;
    run_team_world(
        4,
        [&](TeamPe& me) {
          const auto backend = make_host_backend(*me.rma, me.heap, drive.setup);
          const auto round = [&] {
            const double us = backend->dispatch(false).total_us;
            backend->run_experts();
            return us + backend->combine().total_us;
          };
          backend->poison();
          me.collectives->barrier(team_world);
          round();
          EXPECT_EQ(backend->verify_dispatch().value_or(""), "");
          EXPECT_EQ(backend->verify_combine().value_or(""), "");
          EXPECT_TRUE(backend->masked().empty());
          me.collectives->barrier(team_world);
          backend->poison();
          me.collectives->barrier(team_world);
          if (me.pe != dead) {
            EXPECT_GE(round(), 1'000'000);
            EXPECT_EQ(backend->masked(), std::vector<std::int32_t>{dead});
            EXPECT_EQ(backend->verify_dispatch().value_or(""), "");
            EXPECT_EQ(backend->verify_combine().value_or(""), "");
            for (int i = 0; i < 5; ++i)
              EXPECT_LT(round(), 1'000'000) << "nobody waits for it again";
            EXPECT_EQ(backend->masked(), std::vector<std::int32_t>{dead});
            EXPECT_EQ(backend->verify_dispatch().value_or(""), "");
            EXPECT_EQ(backend->verify_combine().value_or(""), "");
          }
          me.collectives->barrier(team_world);
        },
        options);
  }
}

/// What the rank sends then goes into memory that no rank reads.
TEST(MoeHost, AMaskedRankThatComesLateIsNoCorruption) {
  const int late = 1;
  MoeDrive drive = low_latency(moe_drive(3, 12, 4, 64, 11), Combine::partial);
  const Routing routing = make_routing(drive.setup.shape, drive.routing);
  drive.setup.routing = &routing;
  drive.setup.rank_timeout_us = 500'000;
  TeamWorldOptions options;
  options.heap_bytes = host_backend_bytes(drive.setup) / 4096 * 4096 + 8192;
  run_team_world(
      3,
      [&](TeamPe& me) {
        const auto backend = make_host_backend(*me.rma, me.heap, drive.setup);
        const auto by = [&](bool is_late, const auto& act) {
          if ((me.pe == late) == is_late)
            act();
          me.collectives->barrier(team_world);
        };
        backend->poison();
        me.collectives->barrier(team_world);
        by(false, [&] {
          backend->dispatch(false);
          EXPECT_EQ(backend->masked(), std::vector<std::int32_t>{late});
        });
        by(true, [&] {
          backend->dispatch(false);
          EXPECT_TRUE(backend->masked().empty()) << "their rows were sent before";
        });
        EXPECT_EQ(backend->verify_dispatch().value_or(""), "");
        backend->run_experts();
        me.collectives->barrier(team_world);
        backend->combine();
        EXPECT_EQ(backend->masked().size(), me.pe == late ? 2U : 1U);
        EXPECT_EQ(backend->verify_combine().value_or(""), "");
        me.collectives->barrier(team_world);
      },
      options);
}

TEST(MoeHost, TheWholeMemoryIsSaidByFormulas) {
  for (const MoeDrive& drive : modes_of(moe_drive(4, 16, 4, 128, 8))) {
    MoeDrive named = drive;
    const Routing routing = make_routing(named.setup.shape, named.routing);
    named.setup.routing = &routing;
    std::uint64_t said = 0;
    for (const MemoryUse& use : HostLayout(named.setup).uses) {
      EXPECT_FALSE(use.formula.empty());
      said += use.size_bytes;
    }
    const std::size_t all = host_backend_bytes(named.setup);
    EXPECT_LE(said, all);
    EXPECT_LT(all - said, 16U << 10) << "guards and signals";
  }
}

} // namespace
} // namespace shmemctl::test
