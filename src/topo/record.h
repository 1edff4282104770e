// One line of "key=value;key=value" that carries any field of the node model, unknown ones with
// their reason. The same description of a struct's fields serves writing and reading.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/topo/node.h"

namespace shmemctl {

/// Text <-> value for the types of the model. `decode` gives nothing for what is none.
namespace record_value {
std::string encode(const std::string& value);
std::string encode(double value); ///< the shortest text that reads back as the same number
std::string encode(long long value);
std::string encode(const PciAddress& value);
std::string encode(PciKind value);
std::string encode(NumaKind value);
std::string encode(GpuLinkKind value);
std::string encode(LinkTarget value);
std::string encode(PortState value);
std::string encode(LinkLayer value);
inline std::string encode(bool value) {
  return value ? "true" : "false";
}
inline std::string encode(int value) {
  return encode(static_cast<long long>(value));
}
inline std::string encode(std::uint8_t value) {
  return encode(static_cast<long long>(value));
}
inline std::string encode(std::uint16_t value) {
  return encode(static_cast<long long>(value));
}
inline std::string encode(std::uint32_t value) {
  return encode(static_cast<long long>(value));
}
std::string encode(std::uint64_t value);

bool decode(const std::string& text, std::string& value);
bool decode(const std::string& text, double& value);
bool decode(const std::string& text, bool& value);
bool decode(const std::string& text, int& value);
bool decode(const std::string& text, std::uint8_t& value);
bool decode(const std::string& text, std::uint16_t& value);
bool decode(const std::string& text, std::uint32_t& value);
bool decode(const std::string& text, std::uint64_t& value);
bool decode(const std::string& text, PciAddress& value);
bool decode(const std::string& text, PciKind& value);
bool decode(const std::string& text, NumaKind& value);
bool decode(const std::string& text, GpuLinkKind& value);
bool decode(const std::string& text, LinkTarget& value);
bool decode(const std::string& text, PortState& value);
bool decode(const std::string& text, LinkLayer& value);

/// Everything but plain printable ASCII, and the record's own punctuation, as %XX.
std::string percent_encode(const std::string& text);
std::optional<std::string> percent_decode(const std::string& text);
} // namespace record_value

class RecordWriter {
public:
  template <class T>
  void operator()(const char* key, const T& value) {
    add(key, record_value::percent_encode(record_value::encode(value)));
  }
  template <class T>
  void operator()(const char* key, const Fact<T>& fact) {
    if (fact)
      (*this)(key, *fact);
    else
      add(key, "?" + record_value::percent_encode(fact.origin));
  }
  template <class T>
  void operator()(const char* key, const std::optional<T>& value) {
    if (value)
      (*this)(key, *value);
  }
  const std::string& text() const { return text_; }

private:
  void add(const char* key, const std::string& value);
  std::string text_;
};

class RecordReader {
public:
  /// @param position where the record stands, "line 3, column 7"; throws Error (usage) if it is
  ///                 malformed
  RecordReader(const std::string& text, std::string subject, std::string position);

  template <class T>
  void operator()(const char* key, T& value) {
    const std::string* text = find(key);
    if (text == nullptr || !decode_into(*text, value))
      fail(key);
  }
  template <class T>
  void operator()(const char* key, Fact<T>& fact) {
    const std::string* text = find(key);
    if (text == nullptr) {
      fact = unknown<T>("the dump does not say");
    } else if (!text->empty() && text->front() == '?') {
      std::string reason;
      if (!decode_into(text->substr(1), reason))
        fail(key);
      fact = unknown<T>(std::move(reason));
    } else {
      T value{};
      (*this)(key, value);
      fact = known<T>(std::move(value), position_);
    }
  }
  template <class T>
  void operator()(const char* key, std::optional<T>& value) {
    if (find(key) != nullptr)
      (*this)(key, value.emplace());
  }
  /// Throws an Error (usage) that names the field.
  [[noreturn]] void fail(const std::string& key) const;

private:
  const std::string* find(const char* key) const;
  template <class T>
  static bool decode_into(const std::string& text, T& value) {
    const std::optional<std::string> plain = record_value::percent_decode(text);
    return plain && record_value::decode(*plain, value);
  }
  std::map<std::string, std::string> fields_;
  std::string subject_;
  std::string position_;
};

} // namespace shmemctl
