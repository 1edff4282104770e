// The catalogue's format, its patterns, and that the built-in one tells its messages apart.
#include "src/instruments/explain/catalogue.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/instruments/explain/literal_search.h"

using namespace shmemctl;
using namespace shmemctl::explain;

namespace {

const Catalogue& built_in_catalogue() {
  static const Catalogue catalogue = [] {
    Catalogue made;
    made.add(log_messages_text(), "built in");
    return made;
  }();
  return catalogue;
}

std::vector<std::string> ids_that_match(const std::string& line) {
  std::vector<std::string> ids;
  for (const Message& message : built_in_catalogue().messages())
    for (const LinePattern& pattern : message.patterns)
      if (pattern.matches(line)) {
        ids.push_back(message.id);
        break;
      }
  return ids;
}

TEST(Catalogue, TheBuiltInOneHasWhatItPromises) {
  const Catalogue& catalogue = built_in_catalogue();
  EXPECT_GE(catalogue.messages().size(), 60u);
  EXPECT_GE(catalogue.steps().size(), 4u);
  std::set<std::string> libraries;
  for (const Message& message : catalogue.messages()) {
    libraries.insert(message.library);
    EXPECT_TRUE(starts_with(message.source, "https://")) << message.id;
    EXPECT_FALSE(message.examples.empty()) << message.id;
    EXPECT_TRUE(ends_with(message.cause, ".")) << message.id;
    EXPECT_TRUE(ends_with(message.fix, ".")) << message.id;
  }
  for (const char* const library :
       {"NCCL", "NVSHMEM", "UCX", "libfabric", "Open MPI", "DeepEP", "PyTorch"})
    EXPECT_EQ(libraries.count(library), 1u) << library;
}

TEST(Catalogue, EveryExampleIsTakenByItsOwnMessageAndByNoOther) {
  for (const Message& message : built_in_catalogue().messages())
    for (const std::string& example : message.examples)
      EXPECT_EQ(ids_that_match(example), std::vector<std::string>{message.id}) << example;
}

TEST(Catalogue, EveryPatternHasAnExample) {
  const auto has_example = [](const auto& entry) {
    for (const LinePattern& pattern : entry.patterns)
      EXPECT_TRUE(std::any_of(entry.examples.begin(), entry.examples.end(),
                              [&](const std::string& line) { return pattern.matches(line); }))
          << entry.id << ": " << pattern.text();
  };
  for (const Message& message : built_in_catalogue().messages())
    has_example(message);
  for (const Step& step : built_in_catalogue().steps())
    has_example(step);
}

TEST(Catalogue, TheRecogniserFindsWhatThePatternsSay) {
  const Catalogue& catalogue = built_in_catalogue();
  const Recogniser recogniser(catalogue, {"NCCL WARN", "zzz"});
  for (std::size_t i = 0; i < catalogue.messages().size(); ++i)
    for (const std::string& example : catalogue.messages()[i].examples) {
      std::uint64_t seen = 0;
      const Recognised found = recogniser.recognise("[1,3]<stderr>: " + example + " tail", seen);
      ASSERT_TRUE(found.message) << example;
      EXPECT_EQ(*found.message, i) << example;
      EXPECT_EQ(seen & 1, example.find("NCCL WARN") != std::string::npos ? 1u : 0u) << example;
      EXPECT_EQ(seen & 2, 0u);
    }
  for (std::size_t i = 0; i < catalogue.steps().size(); ++i)
    for (const std::string& example : catalogue.steps()[i].examples) {
      std::uint64_t seen = 0;
      EXPECT_EQ(recogniser.recognise(example, seen).step, i) << example;
    }
  std::uint64_t seen = 0;
  EXPECT_FALSE(recogniser.recognise("epoch 3, loss 0.17", seen).message);
  EXPECT_EQ(seen, 0u);
}

TEST(Catalogue, ThePatternWithMoreTextWins) {
  const std::string entry = "library L\nversions all\nseverity info\ncause c\nfix f\nsource s\n";
  Catalogue catalogue;
  catalogue.add("message general\n" + entry + "pattern transfer failed\nmessage special\n" + entry +
                    "pattern transfer failed*status=12\n",
                "x.conf");
  const Recogniser recogniser(catalogue, {});
  std::uint64_t seen = 0;
  EXPECT_EQ(recogniser.recognise("transfer failed with status=12", seen).message, 1u);
  EXPECT_EQ(recogniser.recognise("transfer failed with status=13", seen).message, 0u);
}

TEST(Catalogue, EntriesOfBothKindsAreChecked) {
  const std::pair<std::string, std::string> cases[] = {
      {"message a\nmeaning m\n", "unknown key meaning"},
      {"step a\nseverity error\n", "unknown key severity"},
      {"message a\npattern abcdef\nlibrary L\n", "a has no versions"},
      {"step a\nlibrary L\npattern abcdef\n", "a has no meaning"},
      {"message a\nlibrary L\nversions v\nseverity bad\npattern abcdef\ncause c\nfix f\nsource s\n",
       "x.conf, line 4: bad is not a severity"},
  };
  for (const auto& [text, problem] : cases) {
    Catalogue catalogue;
    try {
      catalogue.add(text, "x.conf");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_NE(error.message().find(problem), std::string::npos) << error.message();
    }
  }
}

TEST(Catalogue, ALaterTextAddsOtherIds) {
  const std::string good = "library L\nversions all\nseverity error\npattern abcdef\ncause c\n"
                           "fix f\nsource s\n";
  Catalogue catalogue;
  catalogue.add("message a\n" + good, "x.conf");
  catalogue.add("message b\n" + good, "y.conf");
  ASSERT_EQ(catalogue.messages().size(), 2u);
  EXPECT_EQ(catalogue.messages()[1].severity, Severity::error);
  EXPECT_TRUE(catalogue.messages()[1].patterns[0].matches("x abcdef"));
  EXPECT_THROW(catalogue.add("message a\n" + good, "z.conf"), Error);
}

TEST(LiteralSearch, FindsEveryOccurrenceOfEveryLiteral) {
  const std::vector<std::string> literals = {"he", "she", "his", "hers", "s"};
  const LiteralSearch search(literals);
  std::vector<std::uint32_t> found;
  search.find("ushers", [&](std::uint32_t literal) { found.push_back(literal); });
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (std::vector<std::uint32_t>{0, 1, 3, 4, 4}));
}

TEST(LiteralSearch, AgreesWithASearchForEach) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const auto text_of = [&random](std::size_t bytes) {
      std::string text;
      for (std::size_t i = 0; i < bytes; ++i)
        text += static_cast<char>("ab\0\xff"[random() % 4]);
      return text;
    };
    std::vector<std::string> literals;
    for (int i = 0; i < 6; ++i)
      literals.push_back(text_of(1 + random() % 5));
    const std::string text = text_of(60);
    std::vector<std::size_t> expected(literals.size()), counts(literals.size());
    for (std::size_t i = 0; i < literals.size(); ++i)
      for (std::size_t at = text.find(literals[i]); at != std::string::npos;
           at = text.find(literals[i], at + 1))
        ++expected[i];
    LiteralSearch(literals).find(text, [&](std::uint32_t literal) { ++counts[literal]; });
    EXPECT_EQ(counts, expected);
  }
}

} // namespace
