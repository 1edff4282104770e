// The data expose every mistake: rows differ, values are finite, models differ from each other.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "src/model/moe/oracle.h"
#include "src/model/moe/payload.h"

namespace shmemctl::moe {
namespace {

TEST(Payload, ValuesAreFiniteOfBothSignsAndInTheirRange) {
  int negative = 0;
  for (std::uint32_t channel = 0; channel < 100'000; ++channel) {
    const float x = float_of_bf16(payload_bf16(row_key(1, 0, 0), channel));
    ASSERT_GE(std::fabs(x), 0x1p-7F);
    ASSERT_LT(std::fabs(x), 2.0F);
    negative += x < 0 ? 1 : 0;
  }
  EXPECT_NEAR(negative, 50'000, 1000);
}

TEST(Payload, RowsOfAllRanksTokensAndSeedsDiffer) {
  std::set<std::uint32_t> keys;
  for (std::uint32_t seed : {1U, 2U})
    for (std::int32_t rank = 0; rank < 8; ++rank)
      for (std::int32_t token = 0; token < 4096; ++token)
        keys.insert(row_key(seed, rank, token));
  // Among 65536 draws of 32 bits, a collision or two may occur.
  EXPECT_GE(keys.size(), 65'530U);
  std::set<std::uint64_t> beginnings;
  for (const std::uint32_t key : keys)
    beginnings.insert(std::uint64_t{payload_word(key, 0)} << 32 | payload_word(key, 1));
  EXPECT_EQ(beginnings.size(), keys.size()) << "8 bytes already tell two rows apart";
}

TEST(Payload, WordsWithinARowDiffer) {
  std::set<std::uint64_t> pairs;
  for (std::uint32_t i = 0; i + 1 < 3584; ++i)
    pairs.insert(std::uint64_t{payload_word(77, i)} << 32 | payload_word(77, i + 1));
  EXPECT_EQ(pairs.size(), 3583U) << "a piece at another place in the row is seen";
}

TEST(Payload, WeightsAreAboveZeroAndExactInFp32) {
  for (std::uint32_t key = 0; key < 1000; ++key)
    for (std::int32_t k = 0; k < 8; ++k) {
      const float weight = payload_weight(key, k);
      ASSERT_GT(weight, 0.0F);
      ASSERT_LE(weight, 1.0F);
      ASSERT_EQ(weight * 0x1p24F, std::floor(weight * 0x1p24F));
    }
}

TEST(Payload, ExpertsHaveFactorsOfTheirOwn) {
  std::set<float> factors;
  for (std::int32_t expert = 0; expert < different_experts; ++expert) {
    const float factor = expert_factor(expert);
    factors.insert(factor);
    EXPECT_GE(std::fabs(factor), 0.25F);
    EXPECT_LT(std::fabs(factor), 8);
    EXPECT_EQ(factor * 64, std::floor(factor * 64)) << "sums of 32 have few bits";
  }
  EXPECT_EQ(factors.size(), static_cast<std::size_t>(different_experts));
  EXPECT_LT(*factors.begin(), 0);
  EXPECT_GT(*factors.rbegin(), 0);
  int alike = 0;
  for (std::int32_t a = 0; a < 256; ++a)
    for (std::int32_t b = 0; b < a; ++b)
      alike += expert_factor(a) == expert_factor(b) ? 1 : 0;
  EXPECT_EQ(alike, 256 - different_experts) << "of 32640 pairs: 0.3%";
  // A wrong rank, node or index among a rank's experts.
  for (std::int32_t expert = 0; expert < 1024; ++expert)
    for (std::int32_t distance = 1; distance <= 512; distance *= 2)
      EXPECT_NE(expert_factor(expert), expert_factor(expert + distance));
}

/// One wrong expert of eight changes a row of ordinary length, however small that expert's weight
/// is.
TEST(Payload, ARowOfAnotherExpertShowsInEveryModel) {
  Shape shape;
  shape.n_ranks = 8;
  shape.n_experts = 256;
  shape.top_k = 8;
  shape.hidden = 2048;
  std::uint32_t drawn = 1;
  const auto draw = [&](std::int32_t below) {
    drawn = mixed(drawn + 0x9e3779b9U);
    return static_cast<std::int32_t>(drawn % static_cast<std::uint32_t>(below));
  };
  int shown = 0, tried = 0;
  for (int trial = 0; trial < 400; ++trial) {
    std::int32_t experts[8];
    for (std::int32_t k = 0; k < 8; ++k) // one at least on each of some ranks
      experts[k] = k * 32 + draw(32);
    const std::int32_t at = draw(8), right = experts[at];
    const std::uint32_t key = row_key(3, 1, trial);
    const std::vector<std::uint16_t> x = expected_values(shape, key);
    std::vector<std::vector<std::uint16_t>> expected;
    for (const Combine combine : {Combine::rows, Combine::weighted, Combine::partial})
      expected.push_back(expected_combined(shape, experts, key, combine, x));
    experts[at] = right / 32 * 32 + (right + 1 + draw(31)) % 32; // of the same rank
    std::size_t model = 0;
    for (const Combine combine : {Combine::rows, Combine::weighted, Combine::partial}) {
      ++tried;
      shown += expected_combined(shape, experts, key, combine, x) != expected[model++] ? 1 : 0;
    }
  }
  EXPECT_EQ(shown, tried);
}

Shape small_shape() {
  Shape shape;
  shape.n_ranks = 4;
  shape.n_experts = 16;
  shape.top_k = 4;
  shape.hidden = 256;
  return shape;
}

double as_double(std::uint16_t bf16) {
  return static_cast<double>(float_of_bf16(bf16));
}

/// Every model against the same sum in double, without any of its code.
TEST(Payload, CombinesAreCloseToTheirSumsInDouble) {
  const Shape shape = small_shape();
  const std::int32_t experts[] = {1, 14, 3, no_expert};
  const std::uint32_t key = row_key(5, 2, 9);
  const std::vector<std::uint16_t> x = expected_values(shape, key);
  const std::vector<float> weights = expected_weights(key, shape.top_k);
  const auto weighted = expected_combined(shape, experts, key, Combine::weighted, x);
  const auto partial = expected_combined(shape, experts, key, Combine::partial, x);
  const auto rows = expected_combined(shape, experts, key, Combine::rows, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    double sum = 0, size = 0;
    for (int k = 0; k < 3; ++k) {
      sum += static_cast<double>(weights[static_cast<std::size_t>(k)]) *
             static_cast<double>(expert_factor(experts[k])) * as_double(x[i]);
      size += std::fabs(static_cast<double>(expert_factor(experts[k])) * as_double(x[i]));
    }
    ASSERT_NEAR(as_double(weighted[i]), sum, size / 256);
    ASSERT_NEAR(as_double(partial[i]), sum, size / 64);
    const double row_sum = as_double(x[i]) * static_cast<double>(rank_factor(shape, experts, 0) +
                                                                 rank_factor(shape, experts, 3));
    ASSERT_NEAR(as_double(rows[i]), row_sum, size / 64);
  }
  EXPECT_NE(weighted, partial) << "they round differently, so they have different names";
}

TEST(Payload, ARankFactorIsNeverZeroAndKnowsItsExperts) {
  const Shape shape = small_shape();
  for (std::int32_t a = 0; a < 4; ++a)
    for (std::int32_t b = 0; b < 4; ++b) {
      const std::int32_t experts[] = {a, a == b ? no_expert : b, 15, no_expert};
      EXPECT_NE(rank_factor(shape, experts, 0), 0.0F);
      const std::int32_t turned[] = {no_expert, a == b ? no_expert : b, a, 15};
      EXPECT_EQ(rank_factor(shape, experts, 0), rank_factor(shape, turned, 0));
    }
  const std::int32_t elsewhere[] = {4, 8, 12, no_expert};
  EXPECT_EQ(rank_factor(shape, elsewhere, 0), 0.0F);
}

TEST(Payload, BiasComesFirstAndNodesAreRoundedOnTheirOwn) {
  const float factors[] = {1, 1, 1, 1};
  const std::uint16_t one = bf16_of_float(1);
  // 256 + 1 is 257, which BF16 cannot represent; 256 + (1 + 1) it can.
  EXPECT_EQ(float_of_bf16(combined(one, 0b0011, factors, 4, 256.0F)), 258.0F);
  EXPECT_EQ(float_of_bf16(combined(one, 0b0001, factors, 4, 256.0F)), 256.0F);
  const float big[] = {128, 0.5F, 0.5F, 128};
  // Nodes {0, 1} and {2, 3} give 128.5, rounded to 128, each; together they are 257, and 256.
  EXPECT_EQ(float_of_bf16(combined(one, 0b1111, big, 4, 1.0F, 2)), 256.0F);
  EXPECT_EQ(float_of_bf16(combined(one, 0b1111, big, 4, 1.0F, 0)), 258.0F);
  EXPECT_EQ(combined(one, 0, factors, 4), 0) << "a token that went nowhere comes back as 0";
}

TEST(Payload, Fp8RowsHaveAScaleForEach128Channels) {
  const Shape shape = small_shape();
  const Fp8Row row = expected_fp8(shape, 3, false), powers = expected_fp8(shape, 3, true);
  ASSERT_EQ(row.scales.size(), 2U);
  ASSERT_EQ(row.values.size(), 256U);
  const auto x = expected_values(shape, 3), read = expected_read(shape, 3, Format::fp8, false);
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(as_double(read[i]), as_double(x[i]), std::fabs(as_double(x[i])) / 12 + 1e-2);
    EXPECT_EQ(std::signbit(as_double(read[i])), std::signbit(as_double(x[i])));
  }
  for (const float scale : powers.scales)
    EXPECT_EQ(bits_of(scale) & 0x7fffffU, 0U);
}

} // namespace
} // namespace shmemctl::moe
