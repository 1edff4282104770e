// Deliberate mistakes: each must be found.
#include <gtest/gtest.h>

#include "tests/unit/instruments/bench/moe/drive.h"

namespace shmemctl::test {
namespace {

using namespace moe;

MoeDrive mutated(Mutation::Kind kind, bool low) {
  MoeDrive drive = moe_drive(4, 16, 4, 128, 24);
  if (low)
    drive = low_latency(drive, Combine::weighted);
  drive.mutation.kind = kind;
  drive.mutation.rank = 1;
  return drive;
}

std::string first_found(const MoeDrive& drive) {
  for (const MoeFound& of_rank : MoeRun(drive).run())
    if (!of_rank.first_dispatch.empty())
      return of_rank.first_dispatch;
  return "";
}

TEST(MoeMutation, TwoRowsThatChangePlaces) {
  for (const bool low : {false, true}) {
    const std::string found = first_found(mutated(Mutation::Kind::swapped_rows, low));
    EXPECT_NE(found.find("of rank 1, found token"), std::string::npos) << found;
  }
}

TEST(MoeMutation, AChunkThatIsNotSent) {
  for (const bool low : {false, true}) {
    const std::string found = first_found(mutated(Mutation::Kind::skipped_chunk, low));
    EXPECT_NE(found.find("of rank 1, byte 192: expected"), std::string::npos) << found;
    EXPECT_NE(found.find("found 0xff"), std::string::npos) << "poison shows: " << found;
  }
}

TEST(MoeMutation, ASignalBeforeItsPayload) {
  for (const bool low : {false, true}) {
    MoeDrive drive = mutated(Mutation::Kind::early_signal, low);
    drive.gated = true;
    drive.dispatch_only = true;
    const std::string found = first_found(drive);
    EXPECT_NE(found.find("of rank 1, found token -1 of rank -1"), std::string::npos) << found;
  }
}

/// Late puts are delivered in random order between two fences: without a fence, a signal overtakes.
TEST(MoeMutation, ADroppedFence) {
  for (const bool low : {false, true}) {
    MoeDrive drive = moe_drive(2, 16, 8, 64, 12);
    if (low)
      drive = low_latency(drive, Combine::partial);
    drive.mutation = {Mutation::Kind::no_fence, 0, {}};
    drive.pes_per_node = 1;
    drive.slow_deliveries = true;
    drive.dispatch_only = true;
    bool found = false;
    // If the signal happens to be last, nothing is wrong: one of 13 orders.
    for (int tries = 0; tries < 20 && !found; ++tries) {
      for (const MoeFound& of_rank : MoeRun(drive).run())
        found = found || !of_rank.all_well();
    }
    EXPECT_TRUE(found);
  }
}

/// The checked parts of a rank's own memory: received data, returned data, and the gaps between the
/// parts.
TEST(MoeMutation, OneChangedByteIsFound) {
  for (const bool low : {false, true}) {
    MoeDrive drive = mutated(Mutation::Kind::none, low);
    const Routing routing = make_routing(drive.setup.shape, drive.routing);
    drive.setup.routing = &routing;
    TeamWorldOptions options;
    options.heap_bytes = host_backend_bytes(drive.setup) / 4096 * 4096 + 8192;
    const HostLayout layout(drive.setup);
    run_team_world(
        4,
        [&](TeamPe& me) {
          const auto backend = make_host_backend(*me.rma, me.heap, drive.setup);
          backend->poison();
          me.collectives->barrier(team_world);
          backend->dispatch(false);
          backend->run_experts();
          backend->combine();
          EXPECT_FALSE(backend->verify_dispatch());
          EXPECT_FALSE(backend->verify_combine());
          backend->corrupt();
          EXPECT_TRUE(backend->verify_dispatch());
          EXPECT_TRUE(backend->verify_combine());
          backend->corrupt();
          EXPECT_FALSE(backend->verify_dispatch());
          me.heap[layout.receive - 1] ^= std::byte{1};
          EXPECT_NE(backend->verify_dispatch().value_or("").find("outside the received rows"),
                    std::string::npos);
          me.heap[layout.receive - 1] ^= std::byte{1};
          // The last slot of all is a gap in this routing, of either mode.
          const std::size_t slots =
              static_cast<std::size_t>(drive.setup.shape.max_rows()) * (low ? 2 : 1);
          me.heap[layout.receive + slots * RowFields(drive.setup).stride_bytes() - 1] =
              std::byte{0};
          EXPECT_NE(backend->verify_dispatch().value_or("").find("was written"), std::string::npos);
          me.collectives->barrier(team_world);
        },
        options);
  }
}

/// Checked for rows packed by expert: a value, an empty slot before the next expert's rows, a row
/// in another slot.
TEST(MoeMutation, OneChangedByteOfPackedRowsIsFound) {
  MoeDrive drive = by_expert(moe_drive(2, 4, 2, 64, 9));
  drive.setup.shape.expert_alignment = 16;
  const Routing routing = make_routing(drive.setup.shape, drive.routing);
  drive.setup.routing = &routing;
  TeamWorldOptions options;
  options.heap_bytes = host_backend_bytes(drive.setup) / 4096 * 4096 + 8192;
  const std::size_t packed = HostLayout(drive.setup).packed;
  const std::size_t row = RowFields(drive.setup).stride_bytes();
  run_team_world(
      2,
      [&](TeamPe& me) {
        const auto backend = make_host_backend(*me.rma, me.heap, drive.setup);
        backend->poison();
        me.collectives->barrier(team_world);
        backend->dispatch(false);
        EXPECT_FALSE(backend->verify_dispatch());
        const PackedRows expected = expected_packed(drive.setup.shape, routing, me.pe);
        ASSERT_GT(expected.rows[0].size(), 1U);
        ASSERT_LT(expected.rows[0].size(), 16U) << "there is a gap behind them";
        std::byte* const first = me.heap + packed;
        const auto found = [&] { return backend->verify_dispatch().value_or(""); };
        first[0] ^= std::byte{1};
        EXPECT_NE(found().find("packed row 0 of expert 0 here: token"), std::string::npos);
        first[0] ^= std::byte{1};
        std::byte* const gap = first + expected.rows[0].size() * row;
        *gap = std::byte{0};
        EXPECT_NE(found().find("after the packed rows of expert 0"), std::string::npos);
        *gap = poison_byte;
        std::swap_ranges(first, first + row, first + row);
        EXPECT_NE(found().find("packed row 0 of expert 0 here: expected token"), std::string::npos)
            << found();
        me.collectives->barrier(team_world);
      },
      options);
}

} // namespace
} // namespace shmemctl::test
