#include "reports/xml_text.h"

#include "reports/table.h"

namespace shmemctl {

std::string markup_escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    case '\'':
      out += "&#39;";
      break;
    default:
      out += c;
    }
  return out;
}

std::string xml_text(const std::string& text) {
  return markup_escaped(safe_text(text));
}

} // namespace shmemctl
