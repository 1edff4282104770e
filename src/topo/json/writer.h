// Model to JSON: the archive that writes.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/topo/model_fields.h"

namespace shmemctl::model_json {

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
  /// A field that is left out where it says nothing: false, 0, an empty list, an unknown fact.
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
  /// A fact without its origin, as the contract's keys have it.
  template <class T>
  void plain(const char* key, const Fact<T>& fact) {
    fact_member(key, fact, false);
  }
  nlohmann::json take() { return std::move(object_); }

  template <class T>
  static nlohmann::json encode(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      return word_of(value);
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
      object_[key + "_reason"] = fact.origin.empty() ? "the source does not tell" : fact.origin;
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
