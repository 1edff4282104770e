// Invalid shapes are refused with the rule and the nearest legal value.
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/model/moe/shape_rules.h"

namespace shmemctl::moe {
namespace {

Shape good() {
  Shape shape;
  shape.n_ranks = 4;
  shape.n_experts = 256;
  shape.top_k = 8;
  shape.hidden = 7168;
  shape.max_tokens = 4096;
  return shape;
}

struct Bad {
  void (*spoil)(Shape&);
  const char* what;
  const char* nearest;
  Format format = Format::bf16;
  int ranks_limit = max_ranks;
};

TEST(ShapeRules, GoodOnesAre) {
  EXPECT_FALSE(broken_rule(good(), Format::fp8, max_ranks_of_kernels));
  for (const int hidden : {2048, 4096, 7168, 2176}) {
    Shape shape = good();
    shape.hidden = hidden;
    EXPECT_FALSE(broken_rule(shape, Format::fp8));
  }
  Shape none = good();
  none.max_tokens = 0;
  EXPECT_FALSE(broken_rule(none, Format::bf16));
}

TEST(ShapeRules, EachIsNamedWithTheNearestLegalValue) {
  const Bad bads[] = {
      {[](Shape& s) { s.hidden = 7169; }, "hidden", "7168 or 7176"},
      {[](Shape& s) { s.hidden = 7176; }, "hidden", "7168 or 7296", Format::fp8},
      {[](Shape& s) { s.hidden = 4; }, "hidden", "8"},
      {[](Shape& s) { s.hidden = 64; }, "hidden", "128", Format::fp8},
      {[](Shape& s) { s.n_experts = 255; }, "num-experts", "252 or 256"},
      {[](Shape& s) { s.n_experts = 3; }, "num-experts", "8"},
      {[](Shape& s) { s.n_experts = 0; }, "num-experts", "8"},
      {[](Shape& s) { s.n_experts = 0, s.n_ranks = 2, s.top_k = 1; }, "num-experts", "2"},
      {[](Shape& s) { s.hidden = 7; }, "hidden", "128", Format::fp8},
      {[](Shape& s) {
         s.n_experts = 1 << 20;
         s.n_ranks = 3;
       },
       "num-experts", "65535"},
      {[](Shape& s) { s.top_k = 0; }, "num-topk", "1"},
      {[](Shape& s) { s.top_k = 33; }, "num-topk", "32"},
      {[](Shape& s) { s.n_experts = 4, s.top_k = 5; }, "num-topk", "4"},
      {[](Shape& s) { s.max_tokens = -1; }, "num-tokens", "0"},
      {[](Shape& s) { s.expert_alignment = 0; }, "expert-alignment", "1"},
      {[](Shape& s) { s.n_ranks = 16; }, "ranks", "8", Format::bf16, max_ranks_of_kernels},
      {[](Shape& s) { s.n_ranks = 65; }, "ranks", "64"},
  };
  for (const Bad& bad : bads) {
    Shape shape = good();
    bad.spoil(shape);
    const auto broken = broken_rule(shape, bad.format, bad.ranks_limit);
    ASSERT_TRUE(broken) << bad.what;
    EXPECT_EQ(broken->what, bad.what);
    EXPECT_EQ(broken->nearest, bad.nearest) << broken->rule;
    try {
      validate(shape, bad.format, bad.ranks_limit);
      FAIL() << bad.what;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_NE(error.message().find(broken->rule), std::string::npos) << error.message();
      EXPECT_NE(error.fix().find(bad.nearest), std::string::npos) << error.fix();
    }
  }
}

TEST(ShapeRules, RowsHaveTheBytesThatDeepEpCounts) {
  EXPECT_EQ(good().row_bytes(Format::bf16), 14336);
  EXPECT_EQ(good().row_bytes(Format::fp8), 7168 + 56 * 4);
  EXPECT_EQ(good().max_rows(), 16384);
}

} // namespace
} // namespace shmemctl::moe
