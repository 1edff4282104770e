// Files of known messages: patterns, entries, and the line that a mistake is in.
#include "src/base/catalogue_file.h"

#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "src/base/error.h"

namespace shmemctl {

namespace {

/// A format with each kind of key.
CatalogueReader fruit_reader() {
  return CatalogueReader({{"origin", {}, true},
                          {"fruit",
                           {{"colour"},
                            {"weight", CatalogueKey::optional},
                            {"pattern", CatalogueKey::several},
                            {"note", CatalogueKey::any_number}}}});
}

std::vector<CatalogueEntry> read_fruit(const std::string& text) {
  CatalogueReader reader = fruit_reader();
  return reader.read(text, "x.conf");
}

} // namespace

TEST(LinePattern, AStarIsAnyText) {
  const LinePattern pattern("rank * of * left");
  EXPECT_TRUE(pattern.matches("x rank 3 of 8 left y"));
  EXPECT_FALSE(pattern.matches("8 left, rank 3 of"));
  EXPECT_EQ(pattern.anchor(), "rank ");
  EXPECT_FALSE(LinePattern("**").matches("anything")) << "no text at all";
  EXPECT_FALSE(LinePattern().matches("anything"));
  EXPECT_FALSE(LinePattern("abab").matches("aba"));
}

TEST(LinePattern, ABackslashMakesAnAsteriskOrABraceOfTheText) {
  EXPECT_TRUE(LinePattern("\\*\\*\\* An error").matches("[node:1] *** An error occurred"));
  EXPECT_FALSE(LinePattern("\\*\\*\\* An error").matches("An error occurred"));
  const LinePattern braces("body \\{} sent");
  EXPECT_TRUE(braces.matches("body {} sent"));
  EXPECT_FALSE(braces.matches("body 3 sent"));
  EXPECT_EQ(braces.capture_count(), 0u);
  EXPECT_TRUE(LinePattern("C:\\dir").matches("C:\\dir"));
}

TEST(LinePattern, BracesAreATextThatTheMatchReports) {
  const auto match = LinePattern("task {} blocked*more").match("INFO: task p:1 blocked for more");
  ASSERT_TRUE(match);
  EXPECT_EQ(match->captured, "p:1");
  EXPECT_EQ(match->begin, 6u);
  EXPECT_EQ(LinePattern("code {}").match("code 7")->captured, "7");
  EXPECT_EQ(LinePattern("{}: failed").match("mlx5_0: failed")->captured, "mlx5_0");
  EXPECT_EQ(LinePattern("at*[{}]").match("at 3 [q]")->captured, "q");
  EXPECT_EQ(LinePattern("a{}").match("a")->captured, "");
  EXPECT_EQ(LinePattern("plain").match("plain")->captured, "");
}

TEST(LinePattern, TheAnchorIsTheFirstBytesOfTheLongestLiteral) {
  EXPECT_EQ(LinePattern("ab*abcdefghijklmnopqrstuvwxyz*abc").anchor(), "abcdefghijklmnop");
  EXPECT_EQ(LinePattern("*{}").anchor(), "");
}

TEST(CatalogueFile, EntriesHaveTheValuesOfTheirLines) {
  const auto entries = read_fruit("# fruit\r\n\r\norigin here the  garden\n"
                                  "fruit red-apple\n  colour\tred  \npattern an apple\n"
                                  "pattern *apples\nweight 150\nfruit pear\ncolour green\n"
                                  "pattern a pear\nnote sweet and soft\n");
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].kind, "origin");
  EXPECT_EQ(entries[0].id, "here");
  EXPECT_EQ(entries[0].text, "the  garden");
  EXPECT_EQ(entries[1].kind, "fruit");
  EXPECT_EQ(entries[1].id, "red-apple");
  EXPECT_EQ(entries[1].value("colour"), "red");
  EXPECT_EQ(entries[1].count("weight", 1), 150u);
  EXPECT_EQ(entries[1].patterns("pattern").size(), 2u);
  EXPECT_TRUE(entries[1].values("note").empty());
  EXPECT_EQ(entries[2].count("weight", 1), 1u);
  EXPECT_EQ(entries[2].values("note"), std::vector<std::string>{"sweet and soft"});
}

TEST(CatalogueFile, AnEmptyTextHasNoEntries) {
  EXPECT_TRUE(read_fruit("").empty());
  EXPECT_TRUE(read_fruit("# nothing\n").empty());
}

TEST(CatalogueFile, ABadLineIsNamedWithWhatWasExpectedThere) {
  const std::string good = "fruit a\ncolour c\npattern abcd\n";
  const std::pair<std::string, std::string> cases[] = {
      {"colour c\n", "line 1: colour is before the first entry"},
      {"fruit\n", "line 1: fruit has no value"},
      {"fruit A\n", "line 1: A is not an id"},
      {"fruit a--b\n", "line 1: a--b is not an id"},
      {"origin a\n", "line 1: origin a has no text"},
      {good + good, "line 4: a is already defined"},
      {"origin a x\n" + good, "line 2: a is already defined"},
      {good + "colour d\n", "line 4: colour occurs twice"},
      {good + "taste sour\n", "line 4: unknown key taste"},
      {"origin a x\ncolour c\n", "line 2: unknown key colour"},
      {good + "weight\n", "line 4: weight has no value"},
      {"fruit a\npattern abcd\nfruit b\n", "line 1: a has no colour"},
      {"# c\nfruit a\ncolour c\n", "line 2: a has no pattern"},
      {good + "note " + std::string(4097, 'x') + "\n", "line 4: the value is too long"},
      {"fruit \xff\n", "line 1: the line is not UTF-8"},
  };
  for (const auto& [text, problem] : cases)
    try {
      read_fruit(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      EXPECT_EQ(error.message(), "x.conf, " + problem);
      EXPECT_FALSE(error.fix().empty());
    }
}

TEST(CatalogueFile, AKeyIsRepeatedAtMost64Times) {
  std::string text = "fruit a\ncolour c\npattern abcd\n";
  for (int i = 0; i < 64; ++i)
    text += "note n\n";
  EXPECT_EQ(read_fruit(text)[0].values("note").size(), 64u);
  EXPECT_THROW(read_fruit(text + "note n\n"), Error);
}

TEST(CatalogueFile, AnIdIsThereOnceInAllTextsOfAReader) {
  CatalogueReader reader = fruit_reader();
  const std::string pear = "fruit pear\ncolour c\npattern abcd\n";
  EXPECT_EQ(reader.read(pear, "a").size(), 1u);
  EXPECT_THROW(reader.read(pear, "b"), Error);
  EXPECT_EQ(fruit_reader().read(pear, "b").size(), 1u);
}

TEST(CatalogueFile, AFileHasAtMost4096Entries) {
  std::string text;
  for (int i = 0; i < 4096; ++i)
    text += "origin o" + std::to_string(i) + " x\n";
  EXPECT_EQ(read_fruit(text).size(), 4096u);
  EXPECT_THROW(read_fruit(text + "origin more x\n"), Error);
}

TEST(CatalogueFile, ValuesOfAnotherFormAreRefusedWithTheirLine) {
  const auto problem_of = [](const std::string& line, const auto& convert) -> std::string {
    const auto entries =
        read_fruit("fruit a\n" + line + "\n" + (line.find("colour ") == 0 ? "" : "colour red\n") +
                   (line.find("pattern ") == 0 ? "" : "pattern abcd\n"));
    try {
      convert(entries.at(0));
    } catch (const Error& error) {
      return error.message();
    }
    return "no error";
  };
  const auto patterns = [](const CatalogueEntry& entry) { entry.patterns("pattern"); };
  const auto weight = [](const CatalogueEntry& entry) { entry.count("weight", 1); };
  const auto severity = [](const CatalogueEntry& entry) { entry.severity("colour"); };
  EXPECT_EQ(
      problem_of("pattern ab{}cd*ef", patterns),
      "x.conf, line 2: the pattern needs at least 4 bytes in a row that are neither * nor {}");
  EXPECT_EQ(problem_of("pattern abcd{}{}", patterns),
            "x.conf, line 2: the pattern has {} more than once");
  for (const char* const number : {"0", "-1", "x", "1000001", "3.5"})
    EXPECT_EQ(problem_of(std::string("weight ") + number, weight),
              std::string("x.conf, line 2: ") + number + " is not an integer from 1 to 1000000");
  EXPECT_EQ(problem_of("weight 1000000", weight), "no error");
  EXPECT_EQ(problem_of("colour red", severity), "x.conf, line 2: red is not a severity");
  EXPECT_EQ(problem_of("colour warning", severity), "no error");
}

} // namespace shmemctl
