// XML as a tree of elements, and their attributes as values.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace shmemctl {

struct XmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  int line = 0;   ///< line of the start tag, from 1
  int column = 0; ///< column of the start tag, from 1
  std::vector<XmlElement> children;
  std::string text; ///< character data directly inside, trimmed

  /// The attribute's value, or nullptr.
  const std::string* find(const std::string& attribute) const {
    const auto found = attributes.find(attribute);
    return found == attributes.end() ? nullptr : &found->second;
  }
  /// The attribute's value, or "".
  std::string get(const std::string& attribute) const {
    const std::string* value = find(attribute);
    return value == nullptr ? std::string() : *value;
  }
  /// "line 3, column 7"
  std::string position() const {
    return "line " + std::to_string(line) + ", column " + std::to_string(column);
  }
};

/// Parses a whole document: at most max_nesting levels, 1,000,000 elements and 2,000,000
/// attributes, no declarations inside a DOCTYPE (an external one is ignored and never loaded), and
/// UTF-8 only. Memory is bounded by these. Throws Error (usage) with line and column.
/// @param subject the file's name, for messages
XmlElement parse_xml(const std::string& text, const std::string& subject);

} // namespace shmemctl
