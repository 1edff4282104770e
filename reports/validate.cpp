#include "reports/validate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "reports/report.h"
#include "src/base/error.h"
#include "src/base/report_schema.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;
using Adapter = valijson::adapters::NlohmannJsonAdapter;

/// Longer than any string with a `pattern` may be (their maxLength is below). The library matches
/// patterns by recursion per character, which a hostile string of a megabyte would turn into a
/// stack overflow; a truncated string violates the same rule as the complete one.
constexpr std::size_t longest_string = 4096;

/// Number of values that are checked to locate violations.
constexpr std::size_t max_values = 200'000;

/// The document as the library needs it: whole numbers as integers (1.0 is an integer in JSON
/// Schema), integers beyond 64 bits with sign kept as too large; long strings truncated.
json prepared(const json& value) {
  switch (value.type()) {
  case json::value_t::object: {
    json object = json::object();
    for (const auto& [key, member] : value.items())
      object[key] = prepared(member);
    return object;
  }
  case json::value_t::array: {
    json array = json::array();
    for (const json& item : value)
      array.push_back(prepared(item));
    return array;
  }
  case json::value_t::number_float: {
    const double number = value.get<double>();
    if (std::abs(number) < 9.0e18 && number == std::trunc(number))
      return static_cast<std::int64_t>(number);
    return value;
  }
  case json::value_t::number_unsigned:
    if (value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()})
      return static_cast<double>(value.get<std::uint64_t>());
    return value;
  case json::value_t::string:
    if (value.get_ref<const std::string&>().size() > longest_string)
      return value.get_ref<const std::string&>().substr(0, longest_string);
    return value;
  default:
    return value;
  }
}

/// Whether the numbers are as the schema requires for a row's samples.
bool are_samples(const json& value) {
  constexpr double largest = 1e18;
  if (!value.is_array())
    return false;
  for (const json& item : value)
    if (!item.is_number() || !(std::abs(item.get<double>()) <= largest))
      return false;
  return true;
}

/// A prepared report; samples that were checked here are removed, because there are a hundred per
/// row, and the library takes a microsecond for each.
json prepared_report(const json& document) {
  const auto results = document.is_object() ? document.find("results") : document.end();
  if (!document.is_object() || results == document.end() || !results->is_array())
    return prepared(document);
  json target = json::object();
  for (const auto& [key, member] : document.items())
    if (key != "results")
      target[key] = prepared(member);
  json& rows = target["results"] = json::array();
  for (const json& row : *results) {
    if (!row.is_object()) {
      rows.push_back(prepared(row));
      continue;
    }
    json object = json::object();
    for (const auto& [key, member] : row.items())
      object[key] = key == "samples" && are_samples(member) ? json::array() : prepared(member);
    rows.push_back(std::move(object));
  }
  return target;
}

/// Drops items of lists once `budget` values have been seen, so that the list of violations stays
/// bounded. True if anything was dropped.
bool shorten(json& value, std::size_t& budget) {
  budget -= budget > 0 ? 1 : 0;
  bool dropped = false;
  if (value.is_object())
    for (json& member : value)
      dropped = shorten(member, budget) || dropped;
  if (!value.is_array())
    return dropped;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (budget == 0) {
      value.erase(value.begin() + static_cast<std::ptrdiff_t>(i), value.end());
      return true;
    }
    dropped = shorten(value[i], budget) || dropped;
  }
  return dropped;
}

/// The schema as relaxed for a newer minor version: every object may have more keys.
void allow_more_keys(json& schema) {
  if (schema.is_object()) {
    const auto found = schema.find("additionalProperties");
    if (found != schema.end() && *found == json(false))
      schema.erase(found);
  }
  if (schema.is_structured())
    for (json& member : schema)
      allow_more_keys(member);
}

/// ["<root>", "[results]", "[3]"] -> "/results/3".
std::string pointer_of(const std::vector<std::string>& context) {
  std::string pointer;
  for (const std::string& step : context) {
    if (step.size() < 2 || step.front() != '[' || step.back() != ']')
      continue;
    pointer += '/';
    for (char c : step.substr(1, step.size() - 2))
      pointer += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return pointer;
}

/// The library also reports at each enclosing level that something below failed; that is redundant.
bool only_an_echo(const std::string& message) {
  return starts_with(message, "Failed to validate against child schema") ||
         starts_with(message, "Failed to validate against schema") ||
         starts_with(message, "Failed to validate item #") ||
         starts_with(message, "Failed to validate against a conditional schema") ||
         starts_with(message, "Failed to validate against all child schemas");
}

std::vector<SchemaViolation> collect(valijson::ValidationResults& results) {
  std::vector<SchemaViolation> violations;
  std::vector<SchemaViolation> echoes;
  std::set<std::pair<std::string, std::string>> seen;
  valijson::ValidationResults::Error error;
  while (results.popError(error)) {
    SchemaViolation violation{pointer_of(error.context), printable(error.description, 300)};
    if (!seen.emplace(violation.pointer, violation.message).second)
      continue;
    (only_an_echo(error.description) ? echoes : violations).push_back(std::move(violation));
  }
  return violations.empty() ? echoes : violations;
}

/// Why the document's schema cannot be read at all; empty if it can.
std::optional<SchemaViolation> refused(const json& document) {
  try {
    require_report_schema(document, "report");
    return std::nullopt;
  } catch (const Error& error) {
    const std::string& text = error.system_message();
    for (const char* pointer : {"/schema/name", "/schema/version"})
      if (starts_with(text, std::string(pointer) + ": "))
        return SchemaViolation{pointer, text.substr(std::string(pointer).size() + 2)};
    return SchemaViolation{"/schema/version", text};
  }
}

class CompiledSchema {
public:
  /// @param open every object may have keys that this version does not know
  explicit CompiledSchema(bool open) {
    json document = json::parse(report_schema_text());
    if (open)
      allow_more_keys(document);
    valijson::SchemaParser parser(valijson::SchemaParser::kDraft7);
    parser.populateSchema(Adapter(document), schema_);
  }

  std::vector<SchemaViolation> violations(const json& document) {
    json target = prepared_report(document);
    if (validator_.validate(schema_, Adapter(target), nullptr))
      return {};
    std::size_t budget = max_values;
    const bool shortened = shorten(target, budget);
    valijson::ValidationResults results;
    validator_.validate(schema_, Adapter(target), &results);
    std::vector<SchemaViolation> found = collect(results);
    if (found.empty())
      found.push_back({"", shortened ? "the document violates the schema beyond its first " +
                                           std::to_string(max_values) + " values"
                                     : "the document violates the schema"});
    return found;
  }

private:
  valijson::Schema schema_;
  valijson::Validator validator_;
};

} // namespace

std::vector<SchemaViolation> validate_report(const json& document) {
  if (const std::optional<SchemaViolation> violation = refused(document))
    return {*violation};
  // Compiling the schema costs more than using it; a validator caches its compiled patterns, so
  // each thread has its own.
  thread_local CompiledSchema strict(false);
  if (require_report_schema(document, "report").empty())
    return strict.violations(document);
  thread_local CompiledSchema open(true);
  return open.violations(document);
}

std::vector<SchemaViolation> validate_rows(json rows, std::size_t first, const json& schema) {
  static const json empty = to_json(Report{});
  json document = empty;
  document["schema"] = schema;
  document["results"] = std::move(rows);
  std::vector<SchemaViolation> violations = validate_report(document);
  const std::string list = "/results/";
  for (SchemaViolation& violation : violations) {
    if (!starts_with(violation.pointer, list))
      continue;
    const std::size_t end =
        std::min(violation.pointer.find('/', list.size()), violation.pointer.size());
    const auto index = parse_integer(violation.pointer.substr(list.size(), end - list.size()));
    violation.pointer = list + std::to_string(first + static_cast<std::size_t>(index.value_or(0))) +
                        violation.pointer.substr(end);
  }
  return violations;
}

} // namespace shmemctl
