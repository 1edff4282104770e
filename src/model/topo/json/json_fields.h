// Reads and writes the fields of the node model as JSON.
#pragma once

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/base/json_values.h"
#include "src/model/topo/model_fields.h"

namespace shmemctl::model_json {

/// A step from the enclosing value; built on the stack while reading, printed only for an error.
struct JsonPath {
  const JsonPath* above = nullptr;
  const char* key = nullptr; ///< member of an object, or null for an item of an array
  std::size_t index = 0;

  JsonPath member(const char* name) const { return {this, name, 0}; }
  JsonPath item(std::size_t at) const { return {this, nullptr, at}; }
};

/// "/topology/model/gpus/3/pci".
inline std::string pointer_of(const JsonPath& path) {
  const std::string step = path.key ? path.key : std::to_string(path.index);
  return (path.above ? pointer_of(*path.above) : "") + "/" + step;
}

/// Throws Error (usage) for invalid input.
/// @param subject the file's name
[[noreturn]] inline void complain(const std::string& subject, const JsonPath& path,
                                  const std::string& problem) {
  throw input_error(subject, pointer_of(path), problem,
                    "pass a report written by shmemctl, or correct that key");
}

/// Reads the members of one object.
class Reader {
public:
  /// Throws if `object` is not an object.
  Reader(const nlohmann::json& object, const JsonPath& path, const std::string& subject)
      : object_(object), path_(path), subject_(subject) {
    if (!object.is_object())
      complain(subject, path, "expected an object");
  }

  /// The member, or null if there is none (JSON's null counts as none).
  const nlohmann::json* find(const char* key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  const nlohmann::json& require(const char* key) const {
    if (const nlohmann::json* value = find(key))
      return *value;
    complain(subject_, path_.member(key), "missing");
  }

  template <class T>
  void operator()(const char* key, T& value) const {
    decode(require(key), path_.member(key), value);
  }
  template <class T>
  void operator()(const char* key, Fact<T>& fact) const {
    const nlohmann::json* value = find(key);
    if (!value) {
      fact = unknown<T>(text_beside(key, "_reason", "not in the report"));
      return;
    }
    T read{};
    decode(*value, path_.member(key), read);
    fact = known(std::move(read), text_beside(key, "_origin", ""));
  }
  void operator()(const char* key, std::optional<PciAddress>& address) const {
    address.reset();
    if (const nlohmann::json* value = find(key))
      decode(*value, path_.member(key), address.emplace());
  }
  void operator()(const char* key, PcieLink& link) const { // a report may lack the whole link
    static const nlohmann::json none = nlohmann::json::object();
    const nlohmann::json* value = find(key);
    decode(value ? *value : none, path_.member(key), link);
  }

  /// A field that reports of earlier releases lack: it keeps its default then.
  template <class T>
  void added(const char* key, T& value) const {
    if (find(key))
      (*this)(key, value);
  }
  template <class T>
  void added(const char* key, Fact<T>& fact) const {
    (*this)(key, fact);
  }

  template <class T>
  void decode(const nlohmann::json& value, const JsonPath& path, T& out) const {
    if constexpr (std::is_same_v<T, bool>) {
      if (!value.is_boolean())
        complain(subject_, path, "expected true or false");
      out = value.get<bool>();
    } else if constexpr (std::is_enum_v<T>) {
      decode_word(value, path, out);
    } else if constexpr (std::is_integral_v<T>) {
      out = decode_integer<T>(value, path);
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!value.is_number() || !std::isfinite(value.get<double>()))
        complain(subject_, path, "expected a number");
      out = value.get<double>();
    } else if constexpr (std::is_same_v<T, std::string>) {
      out = text(value, path);
    } else if constexpr (std::is_same_v<T, PciAddress>) {
      const std::optional<PciAddress> address = parse_pci_address(text(value, path));
      if (!address)
        complain(subject_, path, "expected a PCI address such as 0000:18:00.0");
      out = *address;
    } else {
      Reader inner(value, path, subject_);
      fields(inner, out);
    }
  }
  template <class T>
  void decode(const nlohmann::json& value, const JsonPath& path, std::vector<T>& out) const {
    if (!value.is_array())
      complain(subject_, path, "expected a list");
    out.clear();
    out.reserve(value.size());
    for (std::size_t i = 0; i < value.size(); ++i)
      decode(value[i], path.item(i), out.emplace_back());
  }

private:
  const std::string& text(const nlohmann::json& value, const JsonPath& path) const {
    if (!value.is_string())
      complain(subject_, path, "expected a string");
    return value.get_ref<const std::string&>();
  }

  std::string text_beside(const char* key, const char* suffix, const char* otherwise) const {
    const auto found = object_.find(std::string(key) + suffix);
    return found != object_.end() && found->is_string() ? found->get<std::string>() : otherwise;
  }

  template <class Enum>
  void decode_word(const nlohmann::json& value, const JsonPath& path, Enum& out) const {
    const std::string& word = text(value, path);
    std::string all;
    for (const auto& entry : enum_names(Enum{})) {
      if (word == entry.word) {
        out = entry.value;
        return;
      }
      all += std::string(all.empty() ? "" : ", ") + entry.word;
    }
    complain(subject_, path, "\"" + printable(word, 40) + "\" is none of " + all);
  }

  /// Integers only, written 3 or 3.0, within the range of the type.
  template <class T>
  T decode_integer(const nlohmann::json& value, const JsonPath& path) const {
    using Limits = std::numeric_limits<T>;
    if (const std::optional<T> number = whole_number<T>(value))
      return *number;
    complain(subject_, path,
             "expected an integer from " + std::to_string(Limits::min()) + " to " +
                 std::to_string(Limits::max()));
  }

  const nlohmann::json& object_;
  const JsonPath& path_;
  const std::string& subject_;
};

/// Collects members of one object. A fact becomes `key`, with `<key>_origin`, or null with
/// `<key>_reason`.
class Writer {
public:
  template <class T>
  void operator()(const char* key, const T& value) {
    object_[key] = encode(value);
  }
  template <class T>
  void operator()(const char* key, const Fact<T>& fact) {
    fact_member(key, fact, true);
  }
  void operator()(const char* key, const std::optional<PciAddress>& address) {
    if (address)
      object_[key] = to_string(*address);
  }
  /// A field that is omitted if it carries no information: false, 0, an empty list, an unknown
  /// fact.
  template <class T>
  void added(const char* key, const T& value) {
    if (!(value == T{}))
      (*this)(key, value);
  }
  template <class T>
  void added(const char* key, const Fact<T>& fact) {
    if (fact)
      (*this)(key, fact);
  }
  /// A fact without its origin, as in the report's documented keys.
  template <class T>
  void plain(const char* key, const Fact<T>& fact) {
    fact_member(key, fact, false);
  }
  nlohmann::json take() { return std::move(object_); }

  template <class T>
  static nlohmann::json encode(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      return enum_name(value);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return value;
    } else if constexpr (std::is_same_v<T, PciAddress>) {
      return to_string(value);
    } else {
      Writer inner;
      fields(inner, value);
      return inner.take();
    }
  }
  template <class T>
  static nlohmann::json encode(const std::vector<T>& items) {
    nlohmann::json list = nlohmann::json::array();
    for (const T& item : items)
      list.push_back(encode(item));
    return list;
  }

private:
  template <class T>
  void fact_member(const std::string& key, const Fact<T>& fact, bool with_origin) {
    if (!fact) {
      object_[key] = nullptr;
      object_[key + "_reason"] = fact.origin.empty() ? "not reported by the source" : fact.origin;
      return;
    }
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::isfinite(*fact)) {
        object_[key] = nullptr;
        object_[key + "_reason"] = "not a finite number";
        return;
      }
    }
    object_[key] = encode(*fact);
    if (with_origin && !fact.origin.empty())
      object_[key + "_origin"] = fact.origin;
  }

  nlohmann::json object_ = nlohmann::json::object();
};

} // namespace shmemctl::model_json
