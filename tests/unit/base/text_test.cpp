#include "src/base/text.h"

#include <gtest/gtest.h>

namespace shmemctl {

TEST(Text, EditDistance) {
  EXPECT_EQ(edit_distance("NET_DEVICES", "NET_DEVICES"), 0U);
  EXPECT_EQ(edit_distance("NET_DEVICE", "NET_DEVICES"), 1U);
  EXPECT_EQ(edit_distance("NET_DEVICES", "NET_DEVICE"), 1U);
  EXPECT_EQ(edit_distance("NET_DEVCIES", "NET_DEVICES"), 1U) << "neighbours swapped";
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", "xbz"), 2U);
}

TEST(Text, NaturalOrderComparesDigitsByValue) {
  EXPECT_TRUE(natural_less("mlx5_2", "mlx5_10"));
  EXPECT_FALSE(natural_less("mlx5_10", "mlx5_2"));
  EXPECT_TRUE(natural_less("mlx5_2", "mlx5_2a"));
  EXPECT_FALSE(natural_less("mlx5_2", "mlx5_2"));
}

TEST(Text, NearestSpellingFindsATypoAndRefusesAStranger) {
  const std::vector<std::string> names = {"mlx5_0", "mlx5_1", "mlx5_bond_0"};
  EXPECT_EQ(nearest_spelling("mlx_1", names), "mlx5_1");
  EXPECT_EQ(nearest_spelling("ibp14s0", names), std::nullopt);
  EXPECT_EQ(nearest_spelling("4", {"p", "g"}), std::nullopt);
  EXPECT_EQ(nearest_spelling("P", {"p", "g"}), "p");
}

TEST(Text, LinesEndAtLineFeedsAndAtTheEnd) {
  const auto lines_of = [](std::string_view text) {
    std::vector<std::string> lines;
    each_line(text, [&lines](std::string_view line) { lines.emplace_back(line); });
    return lines;
  };
  EXPECT_EQ(lines_of(""), std::vector<std::string>{});
  EXPECT_EQ(lines_of("a\n\nb\n"), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(lines_of("a\nb"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(lines_of("\n"), std::vector<std::string>{""});
  std::string_view rest = "a\nb";
  EXPECT_EQ(take_line(rest), "a");
  EXPECT_EQ(rest, "b");
  EXPECT_EQ(take_line(rest), "b");
  EXPECT_EQ(take_line(rest), "");
}

TEST(Text, Utf8RefusesOverlongFormsAndSurrogates) {
  EXPECT_EQ(first_non_utf8("caf\xc3\xa9"), std::nullopt);
  EXPECT_EQ(first_non_utf8("a\xc0\xaf"), 1U);
  EXPECT_EQ(first_non_utf8("ab\xed\xa0\x80"), 2U);
  EXPECT_EQ(first_non_utf8("\xf4\x90\x80\x80"), 0U);
}

} // namespace shmemctl
