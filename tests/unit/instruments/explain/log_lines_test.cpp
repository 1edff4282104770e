// Lines in blocks of any size, and the processes that wrote them.
#include "src/instruments/explain/log_lines.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

using namespace shmemctl;
using namespace shmemctl::explain;

namespace {

struct TakenLines {
  std::vector<std::string> lines;
  LineSplitter splitter{[this](std::string_view line, std::uint64_t number) {
    lines.emplace_back(line);
    EXPECT_EQ(number, lines.size());
  }};
};

TEST(LogLines, BlocksOfAnySizeGiveTheSameLines) {
  using namespace std::string_literals;
  const std::string text = "one\r\ntwo\n\nwith \0 inside\nlast"s;
  for (std::size_t block = 1; block <= text.size(); ++block) {
    TakenLines taken;
    for (std::size_t at = 0; at < text.size(); at += block)
      taken.splitter.feed(std::string_view(text).substr(at, block));
    taken.splitter.finish();
    EXPECT_EQ(taken.lines, (std::vector<std::string>{"one", "two", "", "with \0 inside"s, "last"}))
        << block;
    EXPECT_EQ(taken.splitter.bytes(), text.size());
    EXPECT_TRUE(taken.splitter.ended_within_line());
  }
}

TEST(LogLines, OfALongLineTheBeginIsTaken) {
  for (const std::size_t block : {std::size_t{1000}, std::size_t{1} << 20}) {
    TakenLines taken;
    const std::string text = std::string(max_line_bytes * 3, 'x') + "\nnext\n";
    for (std::size_t at = 0; at < text.size(); at += block)
      taken.splitter.feed(std::string_view(text).substr(at, block));
    taken.splitter.finish();
    ASSERT_EQ(taken.lines.size(), 2u);
    EXPECT_EQ(taken.lines[0].size(), max_line_bytes);
    EXPECT_EQ(taken.lines[1], "next");
    EXPECT_EQ(taken.splitter.cut_lines(), 1u);
    EXPECT_FALSE(taken.splitter.ended_within_line());
  }
}

struct OriginCase {
  const char* line;
  bool labelled;
  std::optional<int> rank;
  const char* process;
  const char* body;
};

TEST(LogLines, TheOriginIsWhatLaunchersAndLibrariesPutInFront) {
  const OriginCase cases[] = {
      {"[1,3]<stdout>:hello", false, 3, "", "hello"},
      {"[prterun-node1-4711@1,12]<stderr>: hello", false, 12, "", "hello"},
      {"Fri Nov 27 01:02:03 2026[1,3]<stderr>:node1:17:18 [0] NCCL INFO x", false, 3, "node1:17",
       "node1:17:18 [0] NCCL INFO x"},
      {" 3: hello", true, 3, "", "hello"},
      {"3: hello", false, std::nullopt, "", "3: hello"},
      {"[rank7]: Traceback (most recent call last):", false, 7, "",
       "Traceback (most recent call last):"},
      {"(WorkerDict pid=34) [rank1]:[E1118 20:32:23 x.cpp:2] y", false, 1, "",
       "[E1118 20:32:23 x.cpp:2] y"},
      {"node-1.example.org:17:18 [2] NCCL INFO x", false, std::nullopt, "node-1.example.org:17",
       "node-1.example.org:17:18 [2] NCCL INFO x"},
      {"[2026-11-27 01:02:03] node1:17:18 [2] NCCL INFO x", false, std::nullopt, "node1:17",
       "[2026-11-27 01:02:03] node1:17:18 [2] NCCL INFO x"},
      {"[1764201600.123456] [node1:17:0]  a.c:1 UCX  INFO  x", false, std::nullopt, "node1:17",
       "[1764201600.123456] [node1:17:0]  a.c:1 UCX  INFO  x"},
      {"[1764201600.123456] [node1:17   :0]  a.c:1 UCX  INFO  x", false, std::nullopt, "node1:17",
       "[1764201600.123456] [node1:17   :0]  a.c:1 UCX  INFO  x"},
      {"[node1:4711 :12] a.c:1 UCX  INFO  x", false, std::nullopt, "node1:4711",
       "[node1:4711 :12] a.c:1 UCX  INFO  x"},
      {"[retry:3 of 5] x", false, std::nullopt, "", "[retry:3 of 5] x"},
      {"[phase:3 :", false, std::nullopt, "", "[phase:3 :"},
      {"[node1:00017] *** An error occurred", false, std::nullopt, "node1:00017",
       "[node1:00017] *** An error occurred"},
      {"libfabric:17:1764201600:core:core:core:f():1<info> x", false, std::nullopt, ":17",
       "libfabric:17:1764201600:core:core:core:f():1<info> x"},
      {"std::vector[1,3]<std::string> x", false, std::nullopt, "",
       "std::vector[1,3]<std::string> x"},
      {"12:34:56 started", false, std::nullopt, "", "12:34:56 started"},
      {"", true, std::nullopt, "", ""},
  };
  for (const OriginCase& each : cases) {
    const LineOrigin origin = read_origin(each.line, each.labelled);
    EXPECT_EQ(origin.rank, each.rank) << each.line;
    EXPECT_EQ(origin.process, each.process) << each.line;
    EXPECT_EQ(origin.body, each.body) << each.line;
  }
}

TEST(LogLines, EscapeSequencesGo) {
  std::string clean;
  remove_escapes("\x1b[31mred\x1b[0m and \x1b]0;title\atext\x1b", clean);
  EXPECT_EQ(clean, "red and text");
  remove_escapes("\x1b[", clean);
  EXPECT_EQ(clean, "");
}

TEST(LogLines, NumbersThatDoNotFitAreNone) {
  std::string_view text = "12x";
  EXPECT_EQ(take_number(text), 12);
  EXPECT_EQ(text, "x");
  text = "99999999999";
  EXPECT_FALSE(take_number(text));
  text = "x";
  EXPECT_FALSE(take_number(text));
}

} // namespace
