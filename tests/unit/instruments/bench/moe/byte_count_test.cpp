// Bytes of a call as other projects count them, by hand for one routing.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/instruments/bench/moe/byte_count.h"
#include "src/instruments/bench/moe/point.h"
#include "src/instruments/bench/moe/traffic.h"
#include "tests/unit/instruments/bench/moe/drive.h"

namespace shmemctl::test {
namespace {

using namespace moe;
using Bytes = std::vector<std::uint64_t>;

/// Four ranks with two experts each. Rank 0: token 0 to ranks 0 and 2, token 1 twice to rank 3,
/// token 2 nowhere. Rank 1: one token, to rank 3 only. Received: 1, 0, 1, 2 rows; selected: 4, 1.
const Routing& counted_routing() {
  static const Routing routing{{2, {0, 5, 6, 7, -1, -1}}, {2, {-1, 6}}, {2, {}}, {2, {}}};
  return routing;
}

MoeDrive counted_drive(Mode mode, Format format) {
  MoeDrive drive = moe_drive(4, 8, 2, 128, 4);
  drive.setup.routing = &counted_routing();
  drive.setup.mode = mode;
  drive.setup.format = format;
  drive.setup.combine = mode == Mode::low_latency ? Combine::weighted : Combine::rows;
  return drive;
}

Bytes bytes_of(const MoeDrive& drive, Operation operation, ByteCount count) {
  return counted_bytes(drive.setup, operation, count);
}

TEST(MoeByteCount, HighThroughput) {
  const MoeDrive bf16 = counted_drive(Mode::high_throughput, Format::bf16);
  const MoeDrive fp8 = counted_drive(Mode::high_throughput, Format::fp8);
  const std::uint64_t row = 256, fp8_row = 128 + 4;
  for (const Operation operation : {Operation::dispatch, Operation::cached_dispatch}) {
    EXPECT_EQ(bytes_of(bf16, operation, ByteCount::deepep_v1), (Bytes{row, 0, row, 2 * row}));
    EXPECT_EQ(bytes_of(fp8, operation, ByteCount::deepep_v1),
              (Bytes{fp8_row, 0, fp8_row, 2 * fp8_row}));
    // Two choices of 8 bytes, two weights of 4.
    EXPECT_EQ(bytes_of(bf16, operation, ByteCount::deepep_v2),
              (Bytes{row + 24, 0, row + 24, 2 * (row + 24)}));
    EXPECT_EQ(bytes_of(fp8, operation, ByteCount::deepep_v2),
              (Bytes{fp8_row + 24, 0, fp8_row + 24, 2 * (fp8_row + 24)}));
    EXPECT_EQ(bytes_of(fp8, operation, ByteCount::per_selection), (Bytes{4 * row, row, 0, 0}))
        << "BF16, whatever is sent";
  }
  EXPECT_EQ(bytes_of(fp8, Operation::combine, ByteCount::deepep_v1), (Bytes{row, 0, row, 2 * row}))
      << "a combine is BF16";
  EXPECT_EQ(bytes_of(fp8, Operation::combine, ByteCount::deepep_v2),
            (Bytes{row + 8, 0, row + 8, 2 * (row + 8)}));
  EXPECT_EQ(bytes_of(fp8, Operation::combine, ByteCount::per_selection),
            (Bytes{4 * row, row, 0, 0}));
}

TEST(MoeByteCount, LowLatency) {
  const MoeDrive bf16 = counted_drive(Mode::low_latency, Format::bf16);
  const MoeDrive fp8 = counted_drive(Mode::low_latency, Format::fp8);
  EXPECT_EQ(bytes_of(fp8, Operation::dispatch, ByteCount::deepep_v1),
            (Bytes{4 * (132 + 16), 132 + 16, 0, 0}))
      << "by source, with the head of each message";
  EXPECT_EQ(bytes_of(bf16, Operation::dispatch, ByteCount::deepep_v1), (Bytes{4 * 256, 256, 0, 0}));
  EXPECT_EQ(bytes_of(fp8, Operation::combine, ByteCount::deepep_v1), (Bytes{4 * 256, 256, 0, 0}));
}

TEST(MoeByteCount, OwnIsTheLogicalTraffic) {
  for (const Mode mode : {Mode::high_throughput, Mode::low_latency}) {
    const MoeDrive drive = counted_drive(mode, Format::fp8);
    EXPECT_EQ(bytes_of(drive, Operation::dispatch, ByteCount::own),
              dispatch_traffic(drive.setup).logical_bytes);
    EXPECT_EQ(bytes_of(drive, Operation::combine, ByteCount::own),
              combine_traffic(drive.setup).logical_bytes);
  }
}

TEST(MoeByteCount, NamesAreThoseOfTheCommandLine) {
  for (const std::string& name : byte_count_names())
    EXPECT_EQ(to_string(parse_byte_count(name)), name);
  EXPECT_EQ(byte_count_names().front(), to_string(ByteCount::own));
  EXPECT_THROW(parse_byte_count("deepep"), Error);
}

TEST(MoeByteCount, IsAFurtherColumnOfTotalsAndTransfers) {
  MoeDrive drive = counted_drive(Mode::high_throughput, Format::bf16);
  PointResult result;
  OperationResult dispatch;
  dispatch.total_us = {4}, dispatch.counts_us = {2}, dispatch.transfer_us = {2};
  dispatch.arrival_us = {1};
  result.operations = {dispatch};
  result.period_us = {8};
  Point point{drive.setup, "host", "uniform", 4, {}, result};
  for (const ResultRow& row : rows_of(point)) {
    EXPECT_FALSE(row.counted_GBps) << row.case_name;
    EXPECT_FALSE(row.params.contains("count"));
  }
  point.count = ByteCount::deepep_v2;
  int rates = 0;
  for (const ResultRow& row : rows_of(point)) {
    EXPECT_EQ(row.params.at("count"), "deepep-v2");
    EXPECT_EQ(row.counted_GBps.has_value(), row.bandwidth_GBps.has_value()) << row.case_name;
    rates += row.counted_GBps ? 1 : 0;
    const std::string phase = row.params.at("phase");
    // One row of 280 bytes on average over the ranks, and one of 264 back.
    const double expected = phase == "total"      ? 280 / 4e3
                            : phase == "transfer" ? 280 / 2e3
                            : phase == "period"   ? (280 + 264) / 8e3
                                                  : 0;
    EXPECT_NEAR(row.counted_GBps.value_or(0), expected, 1e-12) << phase;
  }
  EXPECT_EQ(rates, 3);
}

TEST(MoeByteCount, WhatGoesBeforeACallIsInTheReport) {
  MoeDrive drive = counted_drive(Mode::high_throughput, Format::bf16);
  PointResult result;
  result.period_us = {8};
  Point point{drive.setup, "gpu", "uniform", 4, {}, result};
  point.window = "by CUDA events";
  EXPECT_EQ(json_of(point).at("window"), "by CUDA events");
  EXPECT_EQ(json_of(point).at("caches").get<std::string>().find("warm"), 0U);
  const nlohmann::json usual = rows_of(point).front().params;
  point.start.flush_l2 = true;
  EXPECT_EQ(json_of(point).at("caches").get<std::string>().find("flushed"), 0U);
  EXPECT_EQ(rows_of(point).front().params.at("flush_l2"), true);
  point.start = {};
  point.start.kernels_only = true;
  EXPECT_NE(json_of(point).at("window").get<std::string>().find("barrier of the GPUs"),
            std::string::npos);
  EXPECT_EQ(rows_of(point).front().params.at("kernels_only"), true);
  point.start = {};
  EXPECT_EQ(rows_of(point).front().params, usual);
}

} // namespace
} // namespace shmemctl::test
