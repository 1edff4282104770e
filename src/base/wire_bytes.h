// Messages between processes as bytes: numbers little-endian, texts preceded by their length.
// Whatever a peer sends, reading stays within the message.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace shmemctl {

class WireWriter {
public:
  WireWriter() = default;
  /// @param version the first byte; each layout has its own
  explicit WireWriter(std::uint8_t version) { number(version); }

  /// An integer, or a value of an enumeration, with the size of its type.
  template <class T>
  void number(T value) {
    const auto bits = static_cast<std::uint64_t>(value);
    for (std::size_t byte = 0; byte < sizeof(T); ++byte)
      bytes_ += static_cast<char>(bits >> (8 * byte) & 0xff);
  }
  void flag(bool value) { number(static_cast<std::uint8_t>(value)); }
  void bytes(std::string_view value) { bytes_ += value; }
  template <std::size_t n>
  void array(const std::array<std::uint8_t, n>& value) {
    bytes_.append(value.begin(), value.end());
  }
  /// Appends a text, cut at `max_bytes`, which must fit into a Length.
  template <class Length = std::uint16_t>
  void text(std::string_view value, std::size_t max_bytes) {
    const std::string_view cut = value.substr(0, max_bytes);
    number(static_cast<Length>(cut.size()));
    bytes(cut);
  }
  std::string take() { return std::move(bytes_); }

private:
  std::string bytes_;
};

/// After the first value that is missing or invalid, all further reads return zero or empty, and
/// good() is false.
class WireReader {
public:
  /// @param bytes must outlive the reader
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}
  /// @param version the required first byte
  WireReader(std::string_view bytes, std::uint8_t version) : rest_(bytes) {
    require(number<std::uint8_t>() == version);
  }

  template <class T>
  T number() {
    const std::string_view part = bytes(sizeof(T));
    std::uint64_t bits = 0;
    for (std::size_t byte = part.size(); byte-- > 0;)
      bits = bits << 8 | static_cast<std::uint8_t>(part[byte]);
    return static_cast<T>(bits);
  }
  bool flag() {
    const auto value = number<std::uint8_t>();
    require(value <= 1);
    return value == 1;
  }
  /// A value of an enumeration whose values are 0 to `last`; 0 if the byte is larger.
  template <class Enum>
  Enum choice(Enum last) {
    const auto value = number<std::uint8_t>();
    require(value <= static_cast<std::uint8_t>(last));
    return good_ ? static_cast<Enum>(value) : Enum{};
  }
  std::string_view bytes(std::size_t size_bytes) {
    require(size_bytes <= rest_.size());
    const std::string_view part = rest_.substr(0, good_ ? size_bytes : 0);
    rest_.remove_prefix(part.size());
    return part;
  }
  template <std::size_t n>
  std::array<std::uint8_t, n> array() {
    std::array<std::uint8_t, n> value{};
    const std::string_view part = bytes(n);
    std::copy(part.begin(), part.end(), value.begin());
    return value;
  }
  template <class Length = std::uint16_t>
  std::string text(std::size_t max_bytes) {
    return std::string(bytes(count<Length>(max_bytes)));
  }
  /// The number of elements that follow.
  template <class T>
  std::size_t count(std::size_t max_count) {
    const std::size_t value = number<T>();
    require(value <= max_count);
    return good_ ? value : 0;
  }
  void require(bool condition) { good_ = good_ && condition; }

  bool good() const { return good_; }
  bool at_end() const { return rest_.empty(); }
  /// Number of bytes that have not been read yet.
  std::size_t left() const { return rest_.size(); }

private:
  std::string_view rest_;
  bool good_ = true;
};

} // namespace shmemctl
