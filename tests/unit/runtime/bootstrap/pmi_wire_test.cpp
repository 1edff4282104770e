// The bytes on the wire.
#include <gtest/gtest.h>
#include <random>

#include "src/base/error.h"
#include "src/runtime/bootstrap/kvs_bootstrap.h"
#include "src/runtime/bootstrap/pmi_wire.h"

namespace shmemctl {
namespace {

TEST(Pmi1Wire, MessagesAsServersWriteThem) {
  const auto get = parse_pmi1("cmd=get_result rc=0 msg=success value=a+b/c");
  ASSERT_TRUE(get);
  EXPECT_EQ(get->command(), "get_result");
  EXPECT_EQ(get->find("value"), "a+b/c");
  EXPECT_EQ(get->integer("rc"), 0);
  EXPECT_FALSE(get->find("nothing"));
  EXPECT_FALSE(get->integer("msg"));
}

TEST(Pmi1Wire, KeepsErrorTextsWithBlanksWhole) {
  const auto refused = parse_pmi1("cmd=put_result rc=-1 msg=no space left  here x=1");
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->find("msg"), "no space left here");
  EXPECT_EQ(refused->integer("x"), 1);
}

TEST(Pmi1Wire, RejectsMalformedMessages) {
  for (const char* line : {"", " ", "hello", "cmd", "cmd=", "=x", "rc=0 cmd=put", "cmd=put =3"})
    EXPECT_FALSE(parse_pmi1(line)) << line;
}

TEST(Pmi1Wire, Format) {
  EXPECT_EQ(format_pmi1(PmiMessage("put").add("key", "k").add("value", "v")),
            "cmd=put key=k value=v\n");
}

TEST(Pmi2Wire, MessagesAsServersWriteThem) {
  const auto get = parse_pmi2("cmd=kvs-get-response;rc=0;found=TRUE;value=(vector,(0,1,2));");
  ASSERT_TRUE(get);
  EXPECT_EQ(get->command(), "kvs-get-response");
  EXPECT_EQ(get->find("value"), "(vector,(0,1,2))");
}

TEST(Pmi2Wire, SemicolonsAreDoubled) {
  const PmiMessage message = PmiMessage("abort").add("msg", ";a;;b = c;").add("last", "1");
  const std::string text = format_pmi2(message);
  EXPECT_EQ(text, "    36cmd=abort;msg=;;a;;;;b = c;;;last=1;");
  EXPECT_EQ(parse_pmi2(text.substr(6)), message);
}

TEST(Pmi2Wire, RejectsMalformedMessages) {
  for (const char* block :
       {"", ";", "cmd", "cmd=;", "=x;", "rc=0;cmd=put;", "cmd=put;;x=1;a", "cmd=put;x;y=1;"})
    EXPECT_FALSE(parse_pmi2(block)) << block;
}

TEST(PmiFramer, LinesInAnyPortions) {
  const std::string stream = "cmd=a x=1\n\ncmd=b\n";
  for (std::size_t portion = 1; portion <= stream.size(); ++portion) {
    PmiFramer framer;
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < stream.size(); at += portion) {
      framer.feed(std::string_view(stream).substr(at, portion));
      while (auto line = framer.next_line())
        lines.push_back(*line);
    }
    EXPECT_EQ(lines, (std::vector<std::string>{"cmd=a x=1", "", "cmd=b"}));
  }
}

TEST(PmiFramer, BlocksInAnyPortionsAfterALine) {
  const std::string stream = "cmd=response_to_init\n     0    10cmd=a;x=1;000006cmd=b;";
  for (std::size_t portion = 1; portion <= stream.size(); ++portion) {
    PmiFramer framer;
    std::vector<std::string> frames;
    for (std::size_t at = 0; at < stream.size(); at += portion) {
      framer.feed(std::string_view(stream).substr(at, portion));
      while (auto frame = frames.empty() ? framer.next_line() : framer.next_block())
        frames.push_back(*frame);
    }
    EXPECT_EQ(frames,
              (std::vector<std::string>{"cmd=response_to_init", "", "cmd=a;x=1;", "cmd=b;"}));
  }
}

TEST(PmiFramer, RejectsMalformedLengths) {
  for (const char* length :
       {"cmd=ab", "    -1", "      ", "999999", " 65537", "0x0010", "1 2   "}) {
    PmiFramer framer;
    framer.feed(length);
    EXPECT_THROW(framer.next_block(), Error) << length;
  }
}

TEST(PmiFramer, TheLongestLineAndOneMore) {
  PmiFramer longest;
  longest.feed(std::string(PmiFramer::max_frame_bytes, 'x'));
  EXPECT_FALSE(longest.next_line());
  longest.feed("\n");
  EXPECT_EQ(longest.next_line()->size(), PmiFramer::max_frame_bytes);
  PmiFramer longer;
  longer.feed(std::string(PmiFramer::max_frame_bytes + 1, 'x') + "\n");
  EXPECT_THROW(longer.next_line(), Error);
}

TEST(Base64, VectorsOfTheStandardWithoutPadding) {
  const std::pair<const char*, const char*> vectors[] = {
      {"", ""},           {"f", "Zg"},          {"fo", "Zm8"},         {"foo", "Zm9v"},
      {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(base64(bytes, std::string_view(bytes).size()), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(Base64, RoundTripsAnyBytes) {
  std::mt19937 random(1);
  for (std::size_t size_bytes = 0; size_bytes < 300; ++size_bytes) {
    std::string bytes(size_bytes, '\0');
    for (char& byte : bytes)
      byte = static_cast<char>(random());
    const std::string text = base64(bytes.data(), bytes.size());
    EXPECT_EQ(text.size(), base64_length(size_bytes));
    EXPECT_EQ(from_base64(text), bytes);
  }
}

TEST(Base64, RejectsMalformedTexts) {
  for (const char* text : {"A", "Zg=", "Zg==", "Zm 8", "Zm9vY", "Zh", "Zm9", "\xff\xff", "Z-g_"})
    EXPECT_FALSE(from_base64(text)) << text;
}

} // namespace
} // namespace shmemctl
