#include "src/topo/field_text.h"

#include <cctype>
#include <string_view>

#include "src/base/text.h"
#include "src/topo/distance.h"

namespace shmemctl::field_text {

namespace {

bool is_plain(unsigned char byte) {
  return std::isalnum(byte) != 0 ||
         (byte < 0x80 && std::string_view("._:/+,()@*=;~!#-").find(static_cast<char>(byte)) !=
                             std::string_view::npos);
}

} // namespace

std::string escape(const std::string& text) {
  static const char* const digits = "0123456789abcdef";
  if (text.empty())
    return "%";
  if (text == "-")
    return "%2d";
  std::string out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_plain(byte)) {
      out += c;
    } else {
      out += '%';
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
  return out;
}

std::optional<std::string> unescape(const std::string& word) {
  if (word.empty())
    return std::nullopt;
  if (word == "%")
    return "";
  std::string out;
  for (std::size_t at = 0; at < word.size(); ++at) {
    if (word[at] != '%') {
      out += word[at];
      continue;
    }
    const std::optional<long long> byte =
        at + 2 < word.size() && std::isxdigit(static_cast<unsigned char>(word[at + 1])) != 0
            ? parse_integer(std::string_view(word).substr(at + 1, 2), 16)
            : std::nullopt;
    if (!byte)
      return std::nullopt;
    out += static_cast<char>(*byte);
    at += 2;
  }
  return out;
}

std::string encode_distance(const Distance& distance) {
  std::string word = distance.path ? to_string(*distance.path) : "?";
  if (distance.links != 0)
    word += ":" + std::to_string(distance.links);
  if (!distance.reason.empty())
    word += "=" + escape(distance.reason);
  return word;
}

std::optional<Distance> decode_distance(const std::string& word) {
  const std::size_t equals = word.find('=');
  const std::string left = word.substr(0, equals);
  const std::size_t colon = left.find(':');
  const std::string path = left.substr(0, colon);
  Distance distance;
  distance.path = parse_path_class(path);
  if (!distance.path && path != "?")
    return std::nullopt;
  if (colon != std::string::npos) {
    const std::optional<int> links = decode<int>(left.substr(colon + 1));
    if (!links)
      return std::nullopt;
    distance.links = *links;
  }
  if (equals != std::string::npos) {
    const std::optional<std::string> reason = unescape(word.substr(equals + 1));
    if (!reason)
      return std::nullopt;
    distance.reason = *reason;
  }
  return distance;
}

} // namespace shmemctl::field_text
