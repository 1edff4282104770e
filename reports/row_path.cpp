#include "reports/row_path.h"

#include "src/base/text.h"
#include "src/base/whole_number.h"

namespace shmemctl {

using nlohmann::json;

namespace {

std::string end_text(const PathEnd& end) {
  std::string text = "PE " + std::to_string(end.pe) + " (" + end.host;
  if (end.node)
    text += ", node " + std::to_string(*end.node);
  return text + ")";
}

void put_end(const char* prefix, const std::optional<PathEnd>& end, json& object) {
  if (!end)
    return;
  const std::string name = prefix;
  object[name + "_pe"] = end->pe;
  object[name + "_host"] = end->host;
  if (end->node)
    object[name + "_node"] = *end->node;
}

std::optional<PathEnd> end_from(const char* prefix, const json& object) {
  const std::string name = prefix;
  if (!object.contains(name + "_pe"))
    return std::nullopt;
  PathEnd end{require_whole_number<int>(object.at(name + "_pe")), object.value(name + "_host", "")};
  if (object.contains(name + "_node"))
    end.node = require_whole_number<int>(object.at(name + "_node"));
  return end;
}

} // namespace

std::string to_text(const RowPath& path) {
  std::string text;
  if (path.first && path.second)
    text = end_text(*path.first) + " -> " + end_text(*path.second);
  const auto add = [&text](const std::string& words) { text += (text.empty() ? "" : " ") + words; };
  if (!path.transports.empty())
    add("by " + join(path.transports, ", "));
  if (!path.nics.empty())
    add(path.transports.size() > 1 ? "(" + join(path.nics, ", ") + ")" : join(path.nics, ", "));
  return text;
}

json to_json(const RowPath& path) {
  json object{{"transports", path.transports}, {"nics", path.nics}};
  put_end("first", path.first, object);
  put_end("second", path.second, object);
  return object;
}

RowPath row_path_from_json(const json& object) {
  RowPath path;
  path.first = end_from("first", object);
  path.second = end_from("second", object);
  path.transports = object.at("transports").get<std::vector<std::string>>();
  path.nics = object.at("nics").get<std::vector<std::string>>();
  return path;
}

} // namespace shmemctl
