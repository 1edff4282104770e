#include "src/model/topo/readers/xml.h"

#include <gtest/gtest.h>
#include <random>

#include "src/base/error.h"
#include "src/base/input.h"
#include "src/base/xml_text.h"

namespace shmemctl {

namespace {

std::string message_of(const std::string& text) {
  try {
    parse_xml(text, "x.xml");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_FALSE(error.fix().empty());
    return error.message();
  }
  return "no error";
}

std::string nested(int levels) {
  std::string text;
  for (int i = 0; i < levels; ++i)
    text += "<a>";
  for (int i = 0; i < levels; ++i)
    text += "</a>";
  return text;
}

/// Hand-written UTF-8 encoding, including invalid code points.
std::string encoded(std::uint32_t character) {
  const auto tail = [character](int shift) {
    return static_cast<char>(0x80 | (character >> shift & 0x3f));
  };
  if (character < 0x80)
    return std::string(1, static_cast<char>(character));
  if (character < 0x800)
    return {static_cast<char>(0xc0 | character >> 6), tail(0)};
  if (character < 0x10000)
    return {static_cast<char>(0xe0 | character >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | character >> 18), tail(12), tail(6), tail(0)};
}

} // namespace

TEST(Xml, TheFixForAFileThatIsTooLargeIsAnotherFile) {
  try {
    parse_xml("<a>" + std::string(max_input_bytes, ' ') + "</a>", "x.xml");
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "x.xml: larger than the limit of 67108864 bytes");
    EXPECT_EQ(error.fix(), "use the file of one node, as lstopo or NCCL writes it");
  }
}

TEST(Xml, GivesATreeWithPositionsAttributesAndText) {
  const XmlElement root =
      parse_xml("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<a x=\"1\" y=\"&lt;&#65;\">\n"
                "  <b> some text </b><b/>\n</a>",
                "x.xml");
  EXPECT_EQ(root.name, "a");
  EXPECT_EQ(root.position(), "line 2, column 1");
  EXPECT_EQ(root.get("x"), "1");
  EXPECT_EQ(root.get("y"), "<A");
  EXPECT_EQ(root.find("z"), nullptr);
  ASSERT_EQ(root.children.size(), 2U);
  EXPECT_EQ(root.children[0].text, "some text");
  EXPECT_EQ(root.children[1].position(), "line 3, column 21");
}

TEST(Xml, IgnoresAnExternalDoctype) {
  EXPECT_EQ(parse_xml("<!DOCTYPE topology SYSTEM \"hwloc.dtd\"><topology/>", "x.xml").name,
            "topology");
}

TEST(Xml, RefusesEveryDeclarationInsideDoctype) {
  const std::string laughs = "<!DOCTYPE a [<!ENTITY l \"lol\"><!ENTITY m \"&l;&l;\">]>\n<a>&m;</a>";
  EXPECT_NE(message_of(laughs).find("declarations inside DOCTYPE"), std::string::npos);
  const std::string defaults = "<!DOCTYPE a [<!ATTLIST a x CDATA \"much\">]><a/>";
  EXPECT_NE(message_of(defaults).find("declarations inside DOCTYPE"), std::string::npos);
  const std::string skipped = "<!DOCTYPE a SYSTEM \"x.dtd\"><a>&m;</a>";
  EXPECT_NE(message_of(skipped).find("unknown entity &m;"), std::string::npos);
}

TEST(Xml, AllowsTheNestingLimitAndRefusesOneMore) {
  EXPECT_EQ(parse_xml(nested(max_nesting), "x.xml").name, "a");
  const std::string message = message_of(nested(max_nesting + 1));
  EXPECT_NE(message.find("line 1, column 601: nested deeper than 200 levels"), std::string::npos)
      << message;
  EXPECT_NE(message_of(std::string(std::size_t{3} << 20, '<')).find("line 1"), std::string::npos);
}

TEST(Xml, SaysWhereItEndsTooEarly) {
  EXPECT_EQ(message_of("<a>\n <b>"), "x.xml: line 2, column 5: no element found");
  EXPECT_EQ(message_of("<a></b>"), "x.xml: line 1, column 6: mismatched tag");
  EXPECT_EQ(message_of(" \n"), "x.xml: line 1, column 1: the file is empty");
  EXPECT_EQ(message_of("<a/><a/>"), "x.xml: line 1, column 5: junk after document element");
}

TEST(Xml, RefusesWhatIsNotUtf8) {
  EXPECT_EQ(message_of("<a x=\"\xe9\"/>"), "x.xml: line 1, column 7: invalid UTF-8");
  EXPECT_NE(message_of("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a/>").find("not UTF-8"),
            std::string::npos);
  const std::string utf16 = std::string("<\0a\0/\0>\0", 8);
  EXPECT_NE(message_of(utf16).find("line 1, column 2: invalid XML: NUL byte"), std::string::npos);
}

TEST(Xml, LimitsElementsAndAttributes) {
  std::string elements = "<a>";
  for (int i = 0; i < 1'000'000; ++i)
    elements += "<b/>";
  EXPECT_NE(message_of(elements + "</a>").find("more than 1000000 elements"), std::string::npos);
}

TEST(Xml, EscapeIsReadBackAsItWas) {
  const std::string value = "a<b>&\"'\t\n\r caf\xc3\xa9";
  EXPECT_EQ(parse_xml("<a x=\"" + xml_escape(value) + "\"/>", "x.xml").get("x"), value);
  EXPECT_EQ(xml_escape(std::string("\x01\xff\xef\xbf\xbf", 5)),
            "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(xml_escape("\x7f\xc2\x9b\u202e\u061c"), "\ufffd\ufffd\ufffd\ufffd");
}

TEST(Xml, WhateverIsEscapedIsXml) {
  // Every character, a thousand per document: a parser must accept them all.
  for (std::uint32_t first = 0; first < 0x110000; first += 1000) {
    std::string text;
    for (std::uint32_t character = first; character < first + 1000; ++character)
      text += encoded(character);
    const std::string escaped = xml_escape(text);
    EXPECT_EQ(message_of("<a x=\"" + escaped + "\">" + escaped + "</a>"), "no error") << first;
  }
  std::mt19937_64 random(5);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes;
    for (std::uint64_t left = random() % 40; left > 0; --left)
      bytes += static_cast<char>(random());
    EXPECT_EQ(message_of("<a x=\"" + xml_escape(bytes) + "\"/>"), "no error") << i;
  }
}

} // namespace shmemctl
