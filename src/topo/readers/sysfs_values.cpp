#include "src/topo/readers/sysfs_values.h"

#include <algorithm>

#include "src/base/text.h"

namespace shmemctl {

namespace {

bool is_hex_word(std::string_view word, std::size_t digits) {
  return word.size() == digits &&
         word.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

} // namespace

std::optional<PortState> parse_port_state(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos)
    return std::nullopt;
  const std::optional<long long> number = parse_integer(trim(text.substr(0, colon)));
  if (!number)
    return std::nullopt;
  switch (*number) {
  case 1:
    return PortState::down;
  case 2:
    return PortState::init;
  case 3:
    return PortState::armed;
  case 4:
  case 5:
    return PortState::active;
  default:
    return std::nullopt;
  }
}

std::optional<LinkLayer> parse_link_layer(std::string_view text) {
  const std::string word = lower(trim(text));
  if (word == "infiniband")
    return LinkLayer::infiniband;
  if (word == "ethernet")
    return LinkLayer::ethernet;
  if (word == "unknown" || word == "unspecified")
    return LinkLayer::other;
  return std::nullopt;
}

std::optional<double> parse_rate_Gbps(std::string_view text) {
  const std::vector<std::string> words = split_blanks(trim(text));
  if (words.size() < 2 || words[1] != "Gb/sec")
    return std::nullopt;
  const std::optional<double> rate_Gbps = parse_number(words[0]);
  if (!rate_Gbps || *rate_Gbps <= 0 || *rate_Gbps > 1e6)
    return std::nullopt;
  return rate_Gbps;
}

std::optional<int> parse_lid(std::string_view text) {
  const std::string_view word = trim(text);
  const std::optional<long long> lid = parse_integer(word, starts_with(word, "0x") ? 16 : 10);
  if (!lid || *lid < 0 || *lid > 0xffff)
    return std::nullopt;
  return static_cast<int>(*lid);
}

std::optional<std::string> parse_gid(std::string_view text) {
  const std::string_view word = trim(text);
  if (word.size() != 39)
    return std::nullopt;
  const std::vector<std::string> groups = split(word, ':');
  const bool well_formed =
      groups.size() == 8 && std::all_of(groups.begin(), groups.end(), [](const std::string& group) {
        return is_hex_word(group, 4);
      });
  if (!well_formed)
    return std::nullopt;
  return lower(word);
}

bool is_zero_gid(std::string_view gid) {
  return gid.find_first_not_of("0:") == std::string_view::npos;
}

std::optional<int> parse_link_width(std::string_view text) {
  const std::optional<long long> lanes = parse_integer(trim(text));
  if (!lanes || *lanes < 1 || *lanes > 32)
    return std::nullopt;
  return static_cast<int>(*lanes);
}

std::optional<std::uint64_t> parse_memory_total_bytes(std::string_view text) {
  for (const std::string& line : split(text, '\n')) {
    const std::size_t at = line.find("MemTotal:");
    if (at == std::string::npos)
      continue;
    const std::vector<std::string> words = split_blanks(std::string_view(line).substr(at + 9));
    if (words.size() != 2 || words[1] != "kB")
      return std::nullopt;
    const std::optional<long long> kB = parse_integer(words[0]);
    if (!kB || *kB < 0 || *kB > (1LL << 52))
      return std::nullopt;
    return static_cast<std::uint64_t>(*kB) * 1024; // the kernel's kB are 1024 bytes
  }
  return std::nullopt;
}

std::optional<std::string> parse_field(std::string_view text, std::string_view key) {
  for (const std::string& line : split(text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon != std::string::npos && trim(std::string_view(line).substr(0, colon)) == key)
      return std::string(trim(std::string_view(line).substr(colon + 1)));
  }
  return std::nullopt;
}

} // namespace shmemctl
