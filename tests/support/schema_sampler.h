// Fake documents of a JSON Schema: of the keywords that the report's schema uses.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace shmemctl {

/// Follows the schema itself, so that a key which is added there is generated here too. What it
/// makes nearly always follows the schema; whether it does is for the validator to say.
class SchemaSampler {
public:
  /// A number from 0 to limit - 1.
  using Choose = std::function<std::uint64_t(std::uint64_t limit)>;

  /// @param words what strings without a pattern, and keys of open objects, are taken from
  SchemaSampler(nlohmann::json schema, Choose choose, std::vector<std::string> words = texts())
      : schema_(std::move(schema)), choose_(std::move(choose)), texts_(std::move(words)) {}

  nlohmann::json document() { return value(schema_, 0); }

  /// Text that breaks a writer which does not make it harmless.
  static const std::vector<std::string>& texts() {
    static const std::vector<std::string> all = {
        "x",
        "mlx5_0",
        "",
        "a,b;c",
        "two\r\nlines\nof text",
        "\"'`<script>alert(1)</script>&amp;",
        "]]><!--",
        "\x1b[2J\x07\x1b]0;title\x07",
        "::error title=x::y",
        "%0A::warning::z",
        "##[error]x",
        "| a | b |\n| --- | --- |\n",
        "[link](javascript:alert(1)) ![i](http://example.com/x.png) www.example.com",
        "=1+1",
        "+1+1",
        "-2+cmd|' /C calc'!A0",
        "@SUM(A1)",
        "-5",
        "\ttab",
        "\xef\xbf\xbe\xef\xbf\xbf not XML",
        "\x7f\xc2\x85\xe2\x81\xa6 also hostile",
        "{a=\"b\"} 1\nfake_metric 2",
        "\\",
        "\xe2\x80\xae\xe2\x80\xa8\xef\xbb\xbf\xc2\x9b",
        "\xe6\xb5\x8b\xe8\xaf\x95 \xf0\x9f\x94\xa5 e\xcc\x81",
        std::string(300, 'w'),
        std::string("nul\0in", 6)};
    return all;
  }

  /// Text that takes control of whatever shows it, with bytes that are not UTF-8: those come from
  /// other hosts and from kernels' files, and get into a report by the fields of its C++ model.
  static const std::vector<std::string>& hostile_texts() {
    static const std::vector<std::string> all = [] {
      std::vector<std::string> made = texts();
      made.insert(made.end(),
                  {"\x9b"
                   "31mred",
                   "\xff\xfe\xc0\xaf\xed\xa0\x80\xf8\x88\x80\x80\x80", "cut \xe2\x80",
                   "\x1b]52;c;cm0gLXJm\x1b\\", "\x1bP1$r\x1b\\", "over\rwritten",
                   "gone\x08\x08\x08\x08", "mark\xd8\x9c", "\xe2\x80\x8e\xe2\x80\x8f\xe2\x81\xa9",
                   "</script><script>alert(1)</script>", "<img src=x onerror=alert(1)>",
                   "' onmouseover='alert(1)", "=cmd|' /C calc'!A0", "\r=1+1",
                   "\xef\xbc\x9d"
                   "1+1",
                   "\xef\xbc\x8b"
                   "1+1",
                   "\xef\xbc\x8d"
                   "1+1",
                   "\xef\xbc\xa0SUM(A1)"});
      return made;
    }();
    return all;
  }

private:
  using json = nlohmann::json;

  bool one_in(std::uint64_t count) { return choose_(count) == count - 1; }

  const json& resolved(const json& schema) const {
    const auto found = schema.find("$ref");
    if (found == schema.end())
      return schema;
    return resolved(schema_.at(json::json_pointer(found->get<std::string>().substr(1))));
  }

  json value(const json& reference, int depth) {
    const json& schema = resolved(reference);
    if (schema.contains("const"))
      return schema["const"];
    if (schema.contains("enum"))
      return schema["enum"][choose_(schema["enum"].size())];
    if (!schema.contains("type") && !schema.contains("properties"))
      return schema.contains("allOf") ? value(schema["allOf"][0], depth) : json();
    const json type = schema.value("type", json("object"));
    const std::string word =
        type.is_array() ? type[choose_(type.size())].get<std::string>() : type.get<std::string>();
    if (word == "object")
      return object(schema, depth);
    if (word == "array")
      return array(schema, depth);
    if (word == "string")
      return text(schema);
    if (word == "integer")
      return integer(schema);
    if (word == "number")
      return number(schema);
    return word == "boolean" ? json(one_in(2)) : json();
  }

  json object(const json& schema, int depth) {
    json made = json::object();
    const json properties = schema.value("properties", json::object());
    for (const json& key : schema.value("required", json::array()))
      made[key.get<std::string>()] = property(properties, key.get<std::string>(), depth);
    for (const auto& [key, inner] : properties.items())
      if (!made.contains(key) && one_in(depth < 2 ? 2 : 3))
        made[key] = value(inner, depth + 1);
    const auto more = schema.find("additionalProperties");
    if (more != schema.end() && more->is_object())
      for (std::uint64_t count = choose_(3); count > 0; --count)
        made[texts_[choose_(texts_.size())]] = value(*more, depth + 1);
    meet_conditions(schema, properties, made, depth);
    return made;
  }

  json property(const json& properties, const std::string& key, int depth) {
    return properties.contains(key) ? value(properties[key], depth + 1) : json();
  }

  /// "what is null needs a reason" and the like.
  void meet_conditions(const json& schema, const json& properties, json& made, int depth) {
    for (const json& part : schema.value("allOf", json::array()))
      if (part.contains("if") && holds(part["if"], made))
        for (const json& key : part["then"].value("required", json::array()))
          if (!made.contains(key.get<std::string>()))
            made[key.get<std::string>()] = property(properties, key.get<std::string>(), depth);
  }

  static bool holds(const json& condition, const json& made) {
    for (const json& key : condition.value("required", json::array()))
      if (!made.contains(key.get<std::string>()))
        return false;
    const json properties = condition.value("properties", json::object());
    for (const auto& [key, inner] : properties.items()) {
      if (!made.contains(key))
        continue;
      if (inner.value("type", "") == "null" && !made[key].is_null())
        return false;
      if (inner.contains("const") && inner["const"] != made[key])
        return false;
      if (inner.contains("enum") &&
          std::find(inner["enum"].begin(), inner["enum"].end(), made[key]) == inner["enum"].end())
        return false;
    }
    return true;
  }

  json array(const json& schema, int depth) {
    const std::uint64_t fewest = schema.value("minItems", std::uint64_t{0});
    const std::uint64_t most = schema.value("maxItems", fewest + (depth < 3 ? 4 : 3));
    json made = json::array();
    for (std::uint64_t count = fewest + choose_(most - fewest + 1); count > 0; --count)
      made.push_back(schema.contains("items") ? value(schema["items"], depth + 1) : json());
    return made;
  }

  std::string text(const json& schema) {
    if (schema.contains("pattern")) {
      static const std::map<std::string, std::vector<std::string>> examples = {
          {R"(^(X|NV[1-9][0-9]{0,2}|PIX|PXB|PHB|NODE|SYS|\?)$)", {"X", "NV18", "PIX", "SYS", "?"}},
          {R"(^1\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})$)", {"1.0.0", "1.1.0", "1.7.12"}},
          {R"(^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?Z$)",
           {"2026-11-21T03:33:00Z", "0000-99-99T99:99:99.123456789Z"}},
          {"^[0-9a-f]{16}$", {"0123456789abcdef"}},
          {R"(^[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$)",
           {"0000:18:00.0", "abcdef01:ff:1f.7"}},
          {"^[a-z0-9]+(-[a-z0-9]+)*$", {"nic-hotspot", "x"}}};
      const auto found = examples.find(schema["pattern"].get<std::string>());
      if (found == examples.end())
        throw std::runtime_error("no example for the pattern " + schema["pattern"].dump());
      return found->second[choose_(found->second.size())];
    }
    std::string made = texts_[choose_(texts_.size())];
    if (made.size() < schema.value("minLength", std::size_t{0}))
      made = "y";
    return made;
  }

  json integer(const json& schema) {
    const auto least = schema.value("minimum", std::int64_t{-1000});
    const auto most = schema.value("maximum", std::int64_t{1000});
    switch (choose_(5)) {
    case 0:
      return least;
    case 1:
      return most;
    default:
      return std::min(most, std::max(least, static_cast<std::int64_t>(choose_(6))));
    }
  }

  json number(const json& schema) {
    const double most = schema.value("maximum", 1e18);
    const double least = schema.contains("exclusiveMinimum")
                             ? schema["exclusiveMinimum"].get<double>() + 1e-9
                             : schema.value("minimum", -1e18);
    const std::vector<double> all = {least, most, 0, 1, 1.5, 1e-300, 1e15, 0.1, 123456.789};
    return std::min(most, std::max(least, all[choose_(all.size())]));
  }

  json schema_;
  Choose choose_;
  std::vector<std::string> texts_;
};

} // namespace shmemctl
