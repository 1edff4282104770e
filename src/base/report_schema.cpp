#include "src/base/report_schema.h"

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

const nlohmann::json* member(const nlohmann::json& object, const char* key) {
  if (!object.is_object())
    return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

/// One part of a version: digits only, no leading zero, at most nine of them.
std::optional<int> version_part(std::string_view text) {
  if (text.empty() || text.size() > 9 || (text.size() > 1 && text[0] == '0') ||
      text.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  return static_cast<int>(*parse_integer(text));
}

} // namespace

std::optional<SchemaVersion> parse_schema_version(std::string_view text) {
  const std::vector<std::string> parts = split(text.substr(0, 40), '.');
  if (parts.size() != 3 || text.size() > 40)
    return std::nullopt;
  const std::optional<int> major = version_part(parts[0]);
  const std::optional<int> minor = version_part(parts[1]);
  const std::optional<int> patch = version_part(parts[2]);
  if (!major || !minor || !patch)
    return std::nullopt;
  return SchemaVersion{*major, *minor, *patch};
}

std::string require_report_schema(const nlohmann::json& document, const std::string& subject) {
  const std::string fix = "give a report that a command of shmemctl wrote by --json";
  const nlohmann::json* schema = member(document, "schema");
  const nlohmann::json* name = schema ? member(*schema, "name") : nullptr;
  if (!name || !name->is_string() || name->get_ref<const std::string&>() != report_schema_name)
    throw input_error(subject, "/schema/name",
                      std::string("not a report: the name is not \"") + report_schema_name + "\"",
                      fix);
  const nlohmann::json* text = member(*schema, "version");
  if (!text || !text->is_string())
    throw input_error(subject, "/schema/version", "no version given", fix);
  const auto& words = text->get_ref<const std::string&>();
  const std::optional<SchemaVersion> version = parse_schema_version(words);
  if (!version)
    throw input_error(
        subject, "/schema/version",
        "\"" + printable(words, 40) + "\" is not a version such as " + report_schema_version, fix);
  const SchemaVersion ours = *parse_schema_version(report_schema_version);
  const std::string newer =
      "schema " + words + " is newer than this tool's " + report_schema_version;
  if (version->major > ours.major)
    throw input_error(subject, "", newer, "use a newer version of shmemctl");
  if (version->major < ours.major)
    throw input_error(subject, "",
                      "schema " + words + " has an older major version than this tool's " +
                          report_schema_version,
                      "use an older version of shmemctl");
  return version->minor > ours.minor ? newer + ": keys that this tool does not know are ignored"
                                     : "";
}

} // namespace shmemctl
