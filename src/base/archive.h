// Serialization of messages between PEs: one function lists the fields of a message and is used
// both to write and to read them.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "src/base/error.h"
#include "src/base/wire_bytes.h"

namespace shmemctl {

/// The version of all messages that are archives. The PEs of a job compare it once, when they
/// gather their hosts, and no message has a version of its own. It is an object and not a constant
/// expression, so that a binary contains it in one place: a test changes it there to make a binary
/// of another version.
extern const std::uint32_t archive_version;

/// Writes values as bytes, or reads them from bytes. Numbers are little-endian and have the size of
/// their type. Strings and vectors begin with their length (32 bits), optional values with a flag.
/// Reading is safe for any bytes: after the first value that is missing or invalid, all further
/// values are zero or empty, and good() is false.
///
/// A struct has a function next to it, which is found by the type of its argument:
///
///     void serialize(Archive& archive, Site& site) { archive(site.device, site.name); }
class Archive {
public:
  /// An archive that writes values.
  Archive() = default;
  /// An archive that reads values. @param bytes must outlive the archive
  explicit Archive(std::string_view bytes) : reader_(bytes), reading_(true) {}

  bool reading() const { return reading_; }

  /// Booleans, integers, floating-point numbers, strings, structs with serialize(), and vectors,
  /// arrays, pairs and optionals of them. Enumerations: see choice().
  template <class... T>
  void operator()(T&... values) {
    (item(values), ...);
  }
  /// A string of at most `max_bytes`: a longer one is cut when it is written, and rejected when it
  /// is read.
  void text(std::string& value, std::size_t max_bytes) {
    if (reading_)
      value = reader_.text<std::uint32_t>(max_bytes);
    else
      writer_.text<std::uint32_t>(value, max_bytes);
  }
  /// A value of an enumeration whose values are 0 to `last` (at most 255), as one byte.
  template <class Enum>
  void choice(Enum& value, Enum last) {
    if (reading_)
      value = reader_.choice(last);
    else
      writer_.number(static_cast<std::uint8_t>(value));
  }
  /// A condition that a message must fulfil when it is read; otherwise good() becomes false.
  void require(bool condition) {
    if (reading_)
      reader_.require(condition);
  }

  /// Whether all values that were read so far existed and were valid.
  bool good() const { return reader_.good(); }
  /// Whether good() is true and no bytes are left.
  bool complete() const { return reader_.good() && reader_.at_end(); }
  /// The bytes that were written.
  std::string take() { return writer_.take(); }

private:
  template <class T>
  void item(T& value) {
    if constexpr (std::is_same_v<T, bool>)
      flag(value);
    else if constexpr (std::is_integral_v<T>)
      number(value);
    else if constexpr (std::is_floating_point_v<T>)
      floating_point(value);
    else
      serialize(*this, value);
  }
  void item(std::string& value) {
    text(value, reading_ ? reader_.left() : std::size_t{0xffffffff});
  }
  template <class T>
  void item(std::vector<T>& values) {
    static_assert(!std::is_same_v<T, bool>, "vector<bool> has no elements to refer to");
    std::uint32_t count = static_cast<std::uint32_t>(values.size());
    number(count);
    if (!reading_) {
      for (T& value : values)
        item(value);
      return;
    }
    values.clear();
    require(count <= reader_.left()); // every value has at least one byte
    for (std::uint32_t i = 0; good() && i < count; ++i)
      item(values.emplace_back());
  }
  template <class T, std::size_t n>
  void item(std::array<T, n>& values) {
    for (T& value : values)
      item(value);
  }
  template <class First, class Second>
  void item(std::pair<First, Second>& value) {
    item(value.first);
    item(value.second);
  }
  template <class T>
  void item(std::optional<T>& value) {
    bool there = value.has_value();
    flag(there);
    if (reading_)
      value = there ? std::optional<T>(T{}) : std::nullopt;
    if (value)
      item(*value);
  }

  void flag(bool& value) {
    if (reading_)
      value = reader_.flag();
    else
      writer_.flag(value);
  }
  template <class T>
  void number(T& value) {
    if (reading_)
      value = reader_.number<T>();
    else
      writer_.number(value);
  }
  template <class T>
  void floating_point(T& value) {
    using Bits =
        std::conditional_t<sizeof(T) == sizeof(std::uint32_t), std::uint32_t, std::uint64_t>;
    Bits bits = std::bit_cast<Bits>(value);
    number(bits);
    if (reading_)
      value = std::bit_cast<T>(bits);
  }

  WireWriter writer_;
  WireReader reader_{std::string_view()};
  bool reading_ = false;
};

/// The value as bytes.
template <class T>
std::string to_bytes(const T& value) {
  Archive archive;
  archive(const_cast<T&>(value)); // an archive that writes does not change the value
  return archive.take();
}

/// The value that these bytes encode; empty unless they are exactly one valid value.
template <class T>
std::optional<T> from_bytes(std::string_view bytes) {
  Archive archive(bytes);
  T value{};
  archive(value);
  return archive.complete() ? std::optional<T>(std::move(value)) : std::nullopt;
}

/// The Error (unavailable) for a message of a PE that cannot be read.
/// @param what "transports", "phases": what the message is about
Error malformed_message(std::size_t pe, const std::string& what);

/// The value that a PE has sent. Throws malformed_message().
template <class T>
T value_of_pe(std::string_view bytes, std::size_t pe, const std::string& what) {
  std::optional<T> value = from_bytes<T>(bytes);
  if (!value)
    throw malformed_message(pe, what);
  return std::move(*value);
}

} // namespace shmemctl
