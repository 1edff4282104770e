#include "src/topo/field_text.h"

#include <cctype>
#include <string_view>

#include "src/topo/distance.h"

namespace shmemctl::field_text {

namespace {

bool is_plain(unsigned char byte) {
  return std::isalnum(byte) != 0 ||
         (byte < 0x80 && std::string_view("._:/+,()@*=;~!?#-").find(static_cast<char>(byte)) !=
                             std::string_view::npos);
}

template <class T>
std::string encode_optional(const std::optional<T>& value) {
  return value ? encode(*value) : "-";
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
  const std::string word = distance.path ? to_string(*distance.path) : "?";
  return distance.links == 0 ? word : word + ":" + std::to_string(distance.links);
}

std::optional<Distance> decode_distance(const std::string& word) {
  const std::size_t colon = word.find(':');
  const std::string path = word.substr(0, colon);
  Distance distance;
  if (path == "NV")
    distance.path = PathClass::nvlink;
  else if (const auto parsed = parse_distance(path); parsed && parsed->links == 0)
    distance = *parsed;
  else
    return std::nullopt;
  if (!distance.path)
    distance.reason = "the machine that wrote this did not know";
  if (colon != std::string::npos) {
    const std::optional<int> links = decode<int>(word.substr(colon + 1));
    if (!links)
      return std::nullopt;
    distance.links = *links;
  }
  return distance;
}

std::string encode_link(const GpuLink& link) {
  return encode(link.kind) + " " + encode(link.target) + " " +
         encode_optional(link.target_address) + " " + encode(link.count) + " " +
         encode_optional(link.bandwidth_GBps.value);
}

std::optional<GpuLink> decode_link(const std::string& words) {
  const std::vector<std::string> parts = split(words, ' ');
  if (parts.size() != 5)
    return std::nullopt;
  const auto kind = decode<GpuLinkKind>(parts[0]);
  const auto target = decode<LinkTarget>(parts[1]);
  const auto address = decode<PciAddress>(parts[2]);
  const auto count = decode<int>(parts[3]);
  const auto bandwidth = decode<double>(parts[4]);
  if (!kind || !target || !count || (!address && parts[2] != "-") ||
      (!bandwidth && parts[4] != "-"))
    return std::nullopt;
  GpuLink link;
  link.kind = *kind;
  link.target = *target;
  link.target_address = address;
  link.count = *count;
  link.bandwidth_GBps = bandwidth ? known(*bandwidth, "shmemctl's own field")
                                  : unknown<double>("the file does not tell");
  return link;
}

} // namespace shmemctl::field_text
