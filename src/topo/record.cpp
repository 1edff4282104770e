#include "src/topo/record.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {
constexpr int max_fields = 64; ///< of one record
}

namespace record_value {

namespace {

template <class T>
struct Words;
template <>
struct Words<PciKind> {
  static constexpr const char* all[] = {"endpoint", "bridge", "whole_switch"};
};
template <>
struct Words<NumaKind> {
  static constexpr const char* all[] = {"cpu", "gpu_memory", "other_memory"};
};
template <>
struct Words<GpuLinkKind> {
  static constexpr const char* all[] = {"nvlink", "xgmi", "c2c"};
};
template <>
struct Words<LinkTarget> {
  static constexpr const char* all[] = {"gpu", "nvswitch", "cpu", "unknown"};
};
template <>
struct Words<PortState> {
  static constexpr const char* all[] = {"down", "init", "armed", "active"};
};
template <>
struct Words<LinkLayer> {
  static constexpr const char* all[] = {"infiniband", "ethernet", "other"};
};

template <class T>
std::string word(T value) {
  return Words<T>::all[static_cast<std::size_t>(value)];
}
template <class T>
bool from_word(const std::string& text, T& value) {
  for (std::size_t i = 0; i < std::size(Words<T>::all); ++i)
    if (text == Words<T>::all[i]) {
      value = static_cast<T>(i);
      return true;
    }
  return false;
}
template <class T>
bool from_integer(const std::string& text, T& value) {
  const std::optional<long long> number = parse_integer(text);
  if (!number || *number < static_cast<long long>(std::numeric_limits<T>::min()) ||
      *number > static_cast<long long>(std::numeric_limits<T>::max()))
    return false;
  value = static_cast<T>(*number);
  return true;
}
std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  return std::nullopt;
}

} // namespace

std::string encode(const std::string& value) {
  return value;
}
std::string encode(double value) {
  return fmt::format("{}", value);
}
std::string encode(long long value) {
  return std::to_string(value);
}
std::string encode(std::uint64_t value) {
  return std::to_string(value);
}
std::string encode(const PciAddress& value) {
  return to_string(value);
}
std::string encode(PciKind value) {
  return word(value);
}
std::string encode(NumaKind value) {
  return word(value);
}
std::string encode(GpuLinkKind value) {
  return word(value);
}
std::string encode(LinkTarget value) {
  return word(value);
}
std::string encode(PortState value) {
  return word(value);
}
std::string encode(LinkLayer value) {
  return word(value);
}

bool decode(const std::string& text, std::string& value) {
  value = text;
  return true;
}
bool decode(const std::string& text, double& value) {
  const std::optional<double> number = parse_number(text);
  value = number.value_or(0);
  return number.has_value();
}
bool decode(const std::string& text, bool& value) {
  value = text == "true";
  return value || text == "false";
}
bool decode(const std::string& text, int& value) {
  return from_integer(text, value);
}
bool decode(const std::string& text, std::uint8_t& value) {
  return from_integer(text, value);
}
bool decode(const std::string& text, std::uint16_t& value) {
  return from_integer(text, value);
}
bool decode(const std::string& text, std::uint32_t& value) {
  return from_integer(text, value);
}
bool decode(const std::string& text, std::uint64_t& value) {
  value = 0;
  for (const char c : text) {
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (c < '0' || c > '9' || value > (std::numeric_limits<std::uint64_t>::max() - digit) / 10)
      return false;
    value = value * 10 + digit;
  }
  return !text.empty();
}
bool decode(const std::string& text, PciAddress& value) {
  const std::optional<PciAddress> address = parse_pci_address(text);
  value = address.value_or(PciAddress{});
  return address.has_value();
}
bool decode(const std::string& text, PciKind& value) {
  return from_word(text, value);
}
bool decode(const std::string& text, NumaKind& value) {
  return from_word(text, value);
}
bool decode(const std::string& text, GpuLinkKind& value) {
  return from_word(text, value);
}
bool decode(const std::string& text, LinkTarget& value) {
  return from_word(text, value);
}
bool decode(const std::string& text, PortState& value) {
  return from_word(text, value);
}
bool decode(const std::string& text, LinkLayer& value) {
  return from_word(text, value);
}

std::string percent_encode(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 && c != ' ')
      out += fmt::format("%{:02x}", byte);
    else if (byte > 0x7e || c == '%' || c == ';' || c == '=' || c == ',' || c == '?')
      out += fmt::format("%{:02x}", byte);
    else
      out += c;
  }
  return out;
}

std::optional<std::string> percent_decode(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const auto high = i + 1 < text.size() ? hex_digit(text[i + 1]) : std::nullopt;
    const auto low = i + 2 < text.size() ? hex_digit(text[i + 2]) : std::nullopt;
    if (!high || !low)
      return std::nullopt;
    out += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return out;
}

} // namespace record_value

void RecordWriter::add(const char* key, const std::string& value) {
  text_ += (text_.empty() ? "" : ";") + std::string(key) + "=" + value;
}

RecordReader::RecordReader(const std::string& text, std::string subject, std::string position)
    : subject_(std::move(subject)), position_(std::move(position)) {
  if (std::count(text.begin(), text.end(), ';') > max_fields)
    fail("list");
  for (const std::string& field : split(text, ';')) {
    const std::size_t equals = field.find('=');
    if (equals == std::string::npos ||
        !fields_.emplace(field.substr(0, equals), field.substr(equals + 1)).second)
      fail(field);
  }
}

void RecordReader::fail(const std::string& key) const {
  throw input_error(subject_, position_, "the field " + printable(key, 60) + " is missing or wrong",
                    "dump the node again with shmemctl topo --dump");
}

const std::string* RecordReader::find(const char* key) const {
  const auto found = fields_.find(key);
  return found == fields_.end() ? nullptr : &found->second;
}

} // namespace shmemctl
