// What reading any of NCCL's elements needs.
#pragma once

#include <optional>
#include <string>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/topo/node.h"
#include "src/topo/readers/xml.h"

namespace shmemctl::nccl {

/// Why a fact is unknown that NCCL has no attribute for.
inline constexpr const char* silent = "NCCL's XML does not tell";

inline std::string line_of(const XmlElement& element) {
  return "line " + std::to_string(element.line);
}

/// Bad input at `element`.
inline Error bad_element(const std::string& subject, const XmlElement& element,
                         const std::string& problem) {
  return input_error(subject, element.position(), problem,
                     "pass XML as written by NCCL_TOPO_DUMP_FILE");
}

/// "0x10de" up to `limit`; unknown if it is missing or empty. Throws Error (usage) for other words.
template <class T>
Fact<T> hexadecimal(const std::string& subject, const XmlElement& element, const char* attribute,
                    long long limit) {
  const std::string text = element.get(attribute);
  if (text.empty())
    return unknown<T>(silent);
  const std::optional<long long> value = parse_integer(text, 16);
  if (!value || *value < 0 || *value > limit)
    throw bad_element(subject, element, std::string(attribute) + " is " + printable(text, 40));
  return known(static_cast<T>(*value), line_of(element) + ", " + attribute);
}

} // namespace shmemctl::nccl
