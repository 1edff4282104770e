// Samples read apart from a report: what comes of it is what the JSON parser alone gives.
#include "reports/compare/sample_arrays.h"

#include <cmath>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace shmemctl;

namespace {

using nlohmann::json;

/// The document with the samples back in their rows.
json whole_again(const TakenSamples& taken) {
  json document = json::parse(taken.text);
  for (std::size_t row = 0; row < taken.samples.size(); ++row)
    if (!taken.samples[row].empty())
      document["results"][row]["samples"] = taken.samples[row];
  return document;
}

TEST(SampleArrays, AreTakenFromRowsAlone) {
  const std::string text = R"({"samples": [9], "results": [
    {"case": "a", "params": {"samples": [1, 2]}, "samples": [ 1.5e3 , -0.25,
     3 ]},
    {"case": "b\"{[", "samples": []}, {"case": "c"},
    {"samples" : [4.000000000000000444e-1], "stats": {"n": 1}}],
    "findings": [{"samples": [7]}]})";
  const auto taken = take_samples(text);
  ASSERT_TRUE(taken);
  ASSERT_EQ(taken->samples.size(), 4u);
  EXPECT_EQ(taken->samples[0], (std::vector<double>{1500, -0.25, 3}));
  EXPECT_TRUE(taken->samples[2].empty());
  EXPECT_EQ(taken->samples[3], std::vector<double>{0.4});
  json expected = json::parse(text);
  EXPECT_EQ(whole_again(*taken), expected);
}

TEST(SampleArrays, NumbersAreTheParsersToTheBit) {
  for (const std::string number :
       {"0", "-0", "-0.0", "0.1", "123456789012345678", "1e18", "2.2250738585072014e-308",
        "9007199254740993", "3.14159265358979323846264338327950288", "1E+5", "7e-1"}) {
    const std::string text = R"({"results":[{"samples":[)" + number + "]}]}";
    const auto taken = take_samples(text);
    ASSERT_TRUE(taken) << number;
    const auto expected = json::parse(text)["results"][0]["samples"].get<std::vector<double>>();
    ASSERT_EQ(taken->samples.at(0).size(), 1u);
    EXPECT_EQ(std::signbit(taken->samples[0][0]), std::signbit(expected[0])) << number;
    EXPECT_EQ(taken->samples[0], expected) << number;
  }
}

TEST(SampleArrays, WhatIsNotPlainStaysForTheParser) {
  for (const std::string samples :
       {"[1,]", "[01]", "[.5]", "[1.]", "[+1]", "[nan]", "[1e999]", "[2e18]", "[\"1\"]", "[null]",
        "[[1]]", "[1 2]", "[1", "3", "{}", "[0x10]", "[1e]", "[-]"}) {
    const auto taken = take_samples(R"({"results":[{"samples":)" + samples + "}]}");
    EXPECT_FALSE(taken) << samples << " " << (taken ? taken->text : "");
  }
  for (const std::string text :
       {R"({"results":[{"samples":[1],"samples":[2]}]})",      // which of the two?
        R"({"results":[{"samples":[1],"sampl\u0065s":[2]}]})", // the same
        R"({"results":[{"samples":[1]}],"results":[{}]})", R"({"results":{"samples":[1]}})", "",
        "[", R"({"results":[{"samples":[1)", R"({"results)"})
    EXPECT_FALSE(take_samples(text)) << text;
}

} // namespace
