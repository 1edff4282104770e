#include "src/base/xml_text.h"

#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr const char* replacement = "\xef\xbf\xbd";

/// Whether a valid UTF-8 sequence is a "Char" of XML 1.0; surrogates cannot occur in it.
bool is_xml_character(const std::string& text, std::size_t at, std::size_t length) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  if (length == 1)
    return byte(0) >= 0x20 || text[at] == '\t' || text[at] == '\n' || text[at] == '\r';
  // U+FFFE and U+FFFF.
  return !(length == 3 && byte(0) == 0xef && byte(1) == 0xbf && byte(2) >= 0xbe);
}

/// The replacement of a character that must be escaped; "" for others. These are all references
/// that hwloc's own reader knows; an apostrophe needs none, because our attributes are in double
/// quotes.
std::string reference_to(char c) {
  switch (c) {
  case '&':
    return "&amp;";
  case '<':
    return "&lt;";
  case '>':
    return "&gt;";
  case '"':
    return "&quot;";
  case '\t':
  case '\n':
  case '\r':
    return "&#" + std::to_string(static_cast<int>(c)) + ";";
  default:
    return "";
  }
}

} // namespace

std::string xml_escape(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_sequence_length(text, at);
    if (const std::string reference = reference_to(text[at]); !reference.empty())
      out += reference;
    else if (length == 0 || !is_xml_character(text, at, length) ||
             is_hostile(utf8_character(text, at, length)))
      out += replacement;
    else
      out.append(text, at, length);
    at += length == 0 ? 1 : length;
  }
  return out;
}

} // namespace shmemctl
