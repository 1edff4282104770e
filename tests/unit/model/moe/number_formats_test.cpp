// BF16 and FP8 by exhaustive comparison with the formats' definitions.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "src/model/moe/number_formats.h"

namespace shmemctl::moe {
namespace {

/// By definition: sign, 4 bits of exponent with bias 7, 3 of mantissa; S.1111.111 is NaN.
double e4m3_value(int code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  const double sign = (code & 0x80) != 0 ? -1 : 1;
  return sign *
         (exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10));
}

TEST(NumberFormats, EveryE4m3ReadsAsDefined) {
  for (int code = 0; code < 256; ++code) {
    const float value = float_of_e4m3(static_cast<std::uint8_t>(code));
    if ((code & 0x7f) == 0x7f)
      EXPECT_TRUE(std::isnan(value)) << code;
    else
      EXPECT_EQ(value, static_cast<float>(e4m3_value(code))) << code;
  }
}

TEST(NumberFormats, EveryE4m3SurvivesACast) {
  for (int code = 0; code < 256; ++code) {
    if ((code & 0x7f) == 0x7f)
      continue;
    EXPECT_EQ(e4m3_of_float(float_of_e4m3(static_cast<std::uint8_t>(code))), code);
  }
}

/// Around each value and each midpoint: which code is nearest, ties to the even code.
TEST(NumberFormats, CastsToE4m3GoToTheNearestAndTiesToEven) {
  for (int code = 0; code < 0x7e; ++code) {
    const auto low = static_cast<float>(e4m3_value(code));
    const auto high = static_cast<float>(e4m3_value(code + 1));
    const float middle = (low + high) / 2;
    const int even = code % 2 == 0 ? code : code + 1;
    for (const int sign : {0, 0x80}) {
      const float s = sign != 0 ? -1.0F : 1.0F;
      EXPECT_EQ(e4m3_of_float(s * middle), sign | even) << middle;
      EXPECT_EQ(e4m3_of_float(s * std::nextafter(middle, 0.0F)), sign | code) << middle;
      EXPECT_EQ(e4m3_of_float(s * std::nextafter(middle, 1e9F)), sign | (code + 1)) << middle;
    }
  }
}

TEST(NumberFormats, CastsToE4m3Saturate) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(e4m3_of_float(448.0F), 0x7e);
  EXPECT_EQ(e4m3_of_float(464.0F), 0x7e);
  EXPECT_EQ(e4m3_of_float(1e30F), 0x7e);
  EXPECT_EQ(e4m3_of_float(infinity), 0x7e);
  EXPECT_EQ(e4m3_of_float(-infinity), 0xfe);
  EXPECT_EQ(e4m3_of_float(std::numeric_limits<float>::quiet_NaN()), 0x7f);
  EXPECT_EQ(e4m3_of_float(-0.0F), 0x80);
}

TEST(NumberFormats, EveryBf16SurvivesAndMiddlesGoToEven) {
  for (std::uint32_t code = 0; code < 0x7f80; ++code) {
    const auto bf16 = static_cast<std::uint16_t>(code);
    EXPECT_EQ(bf16_of_float(float_of_bf16(bf16)), bf16);
    const float middle = float_of(code << 16 | 0x8000);
    EXPECT_EQ(bf16_of_float(middle), code + code % 2);
    EXPECT_EQ(bf16_of_float(float_of(code << 16 | 0x7fff)), code);
    EXPECT_EQ(bf16_of_float(float_of(code << 16 | 0x8001)), code + 1);
  }
  EXPECT_EQ(bf16_of_float(std::numeric_limits<float>::quiet_NaN()), 0x7fff);
  EXPECT_EQ(bf16_of_float(-std::numeric_limits<float>::infinity()), 0xff80);
}

TEST(NumberFormats, TheLargestValueOfAScaleBecomesTheLargestFp8) {
  for (const float largest : {1e-4F, 0.013F, 1.0F, 1.99F, 448.0F, 12345.0F}) {
    const Fp8Scale scale = fp8_scale(largest);
    EXPECT_EQ(e4m3_of_float(multiply(largest, scale.factor)), 0x7e) << largest;
    const Fp8Scale power = fp8_power_scale(largest);
    EXPECT_EQ(power.scale * power.factor, 1.0F);
    EXPECT_GE(power.scale, scale.scale);
    EXPECT_LT(power.scale, 2 * scale.scale);
    EXPECT_EQ(scale_of_ue8m0(ue8m0_of_scale(power.scale)), power.scale);
    EXPECT_LE(largest * power.factor, 448.0F);
  }
  EXPECT_EQ(fp8_scale(0).scale, fp8_scale(1e-4F).scale) << "all zeros divide by nothing small";
  EXPECT_EQ(fp8_power_scale(448.0F).scale, 1.0F) << "a power of two stays itself";
}

TEST(NumberFormats, ReadingACastIsWithinItsPrecision) {
  const Fp8Scale scale = fp8_scale(1.75F);
  for (float x = -1.75F; x <= 1.75F; x += 0.0078125F) {
    const std::uint8_t cast = fp8_cast(bf16_of_float(x), scale);
    const float read = float_of_bf16(fp8_read(cast, scale.scale));
    EXPECT_NEAR(read, x, std::fabs(x) / 16 + 1e-5F + std::fabs(x) / 256);
  }
}

} // namespace
} // namespace shmemctl::moe
