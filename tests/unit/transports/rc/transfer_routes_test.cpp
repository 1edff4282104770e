// Which path carries an operation, and the pieces of a transfer.
#include "transports/rc/transfer_routes.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

#include "tests/support/expect_error.h"

namespace shmemctl::rc {
namespace {

using test::expect_error;

/// PE 1 has registered 6000 bytes of region 1 in two segments; PE 0 2000 bytes at memory_.
class Routes : public testing::Test {
protected:
  Routes() {
    job_.peer_hosts = {"node0", "node1"};
    remote_.add(1, {SegmentKey{}, SegmentKey{0, 4000, 0x10000, {7, 8}}});
    remote_.add(1, {SegmentKey{}, SegmentKey{4000, 2000, 0x90000, {9, 10}}});
    local_.add(memory_.data(), 2000);
  }
  std::vector<std::pair<std::uint64_t, std::size_t>> pieces_of(const NicTransfer& whole,
                                                               std::uint64_t max_bytes) {
    std::vector<std::pair<std::uint64_t, std::size_t>> pieces;
    routes_.for_each_piece(whole, max_bytes, [&](const Piece& piece) {
      EXPECT_FALSE(!pieces.empty() && last_);
      pieces.emplace_back(piece.remote(0).address, piece.transfer.size_bytes);
      last_ = piece.last;
    });
    EXPECT_TRUE(last_);
    last_ = false;
    return pieces;
  }

  using Pieces = std::vector<std::pair<std::uint64_t, std::size_t>>;
  std::array<std::byte, 65536> memory_{};
  Job job_;
  LocalMemory local_{[lkey = 1U](std::byte* base, std::size_t size_bytes,
                                 const std::shared_ptr<const DeviceMemory>&,
                                 const std::string&) mutable {
    Registration made;
    made.begin = reinterpret_cast<std::uint64_t>(base);
    made.end = made.begin + size_bytes;
    made.keys = {{lkey++, 2}};
    return made;
  }};
  RemoteMemory remote_;
  TransferRoutes routes_{job_, local_, remote_, 3};
  bool last_ = false;
};

TEST_F(Routes, SmallTransfersOfDifferentSetsPreferDifferentPaths) {
  EXPECT_EQ(routes_.usual_path(1, 2), 1u);
  EXPECT_EQ(routes_.usual_path(1, 3), 0u);
  EXPECT_EQ(routes_.atomic_path(1, 2), 0u);
  for (const bool atomic : {false, true})
    expect_error(ExitCode::unavailable, {"PE 1 on node1", "not connected"}, [&] {
      static_cast<void>(atomic ? routes_.atomic_path(1, 0) : routes_.usual_path(1, 0));
    });
}

TEST_F(Routes, PiecesEndWhereRegistrationsAndSegmentsDo) {
  const NicTransfer get = NicTransfer::get(memory_.data(), {1, 1, 1000}, 4500, true);
  EXPECT_EQ(pieces_of(get, 100000),
            (Pieces{{0x10000 + 1000, 2000}, {0x10000 + 3000, 1000}, {0x90000, 1500}}));
  EXPECT_EQ(
      pieces_of(get, 1500),
      (Pieces{
          {0x10000 + 1000, 1500}, {0x10000 + 2500, 500}, {0x10000 + 3000, 1000}, {0x90000, 1500}}));
  const NicTransfer put = routes_.put({1, 1, 0}, memory_.data(), 100, true);
  EXPECT_TRUE(put.stage);
  EXPECT_EQ(pieces_of(put, 100000), (Pieces{{0x10000, 100}}));
}

TEST_F(Routes, AnSgeIsTheCallersMemoryOrAStagingSlot) {
  Staging staging(local_);
  const std::int16_t slot = staging.take();
  const auto sge_of = [&](const NicTransfer& whole) {
    Sge sge;
    routes_.for_each_piece(whole, 100000,
                           [&](const Piece& piece) { sge = piece.sge(staging, slot, 0); });
    return sge;
  };
  memory_[0] = std::byte{7};
  const Sge put = sge_of(routes_.put({1, 1, 0}, memory_.data(), 100, true)); // staged
  EXPECT_EQ(put.address, staging.at(slot));
  EXPECT_EQ(put.lkey, 2u);
  EXPECT_EQ(put.address[0], std::byte{7});
  const Sge direct = sge_of(NicTransfer::get(memory_.data(), {1, 1, 0}, 100, true));
  EXPECT_EQ(direct.address, memory_.data());
  EXPECT_EQ(direct.lkey, 1u);
  // A get into memory that is not registered: nothing is copied before the data has arrived.
  const Sge get = sge_of(NicTransfer::get(memory_.data() + 2000, {1, 1, 0}, 100, true));
  EXPECT_EQ(get.address, staging.at(slot));
  EXPECT_EQ(get.lkey, 2u);
  EXPECT_EQ(get.address[0], std::byte{7});
}

TEST_F(Routes, WhatIsNotRegisteredIsRefused) {
  EXPECT_EQ(routes_.word({1, 1, 3992}, 8, 1).rkey, 8u);
  EXPECT_EQ(routes_.word({1, 1, 5992}, 8, 1).address, 0x90000u + 1992);
  for (const std::uint64_t offset : {std::uint64_t{5996}, std::uint64_t{6000}})
    expect_error(ExitCode::unavailable, {"offset 6000 of region 1", "not registered by PE 1"}, [&] {
      routes_.word({1, 1, offset}, 8, 0);
    });
  expect_error(ExitCode::unavailable, {"region 1", "not registered by PE 0"}, [&] {
    routes_.segment_of({0, 1, 0});
  });
  remote_.drop(1);
  expect_error(ExitCode::unavailable, {"region 1", "not registered by PE 1"}, [&] {
    routes_.segment_of({1, 1, 0});
  });
}

TEST_F(Routes, InlineDataIsOfOneSegment) {
  EXPECT_EQ(routes_.inline_target({1, 1, 3990}, memory_.data(), 11, 64), nullptr);
  EXPECT_EQ(routes_.inline_target({1, 1, 3990}, memory_.data(), 10, 64)->address, 0x10000u);
  EXPECT_EQ(routes_.inline_target({1, 1, 0}, memory_.data(), 65, 64), nullptr);
}

TEST_F(Routes, LongTransfersAreStriped) {
  EXPECT_TRUE(routes_.is_striped(routes_.put({1, 1, 0}, memory_.data(), 65536, false), 2));
  EXPECT_FALSE(routes_.is_striped(routes_.put({1, 1, 0}, memory_.data(), 65536, false), 1));
  EXPECT_FALSE(routes_.is_striped(routes_.put({1, 1, 0}, memory_.data(), 32767, false), 2));
  local_.set_device_region(1, nullptr);
  EXPECT_FALSE(routes_.is_striped(routes_.put({1, 1, 0}, memory_.data(), 65536, false), 2));
  EXPECT_TRUE(routes_.is_striped(NicTransfer::get(memory_.data(), {1, 1, 0}, 65536, false), 2));
}

} // namespace
} // namespace shmemctl::rc
