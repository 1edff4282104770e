#include "src/topo/json/matrix.h"

#include <map>
#include <nlohmann/json.hpp>

#include "src/topo/distance.h"
#include "src/topo/json/reader.h"

namespace shmemctl::model_json {

namespace {

using nlohmann::json;

/// A word where one says it all, null where it is unknown, else an object.
json cell_json(const Distance& distance) {
  if (!distance.path && distance.links == 0)
    return nullptr;
  const std::string word = to_string(distance);
  if (const std::optional<Distance> read = parse_distance(word); read && *read == distance)
    return word;
  json cell{{"links", distance.links}};
  if (distance.path)
    cell["path"] = to_string(*distance.path);
  return cell;
}

Distance read_cell(const json& cell, const Place& place, const std::string& subject) {
  if (cell.is_null())
    return {std::nullopt, 0, "the report does not tell"};
  if (cell.is_object()) {
    Distance distance;
    const Reader reader(cell, place, subject);
    reader("links", distance.links);
    if (const json* word = reader.find("path")) {
      distance.path = word->is_string() ? parse_path_class(word->get<std::string>()) : std::nullopt;
      if (!distance.path)
        complain(subject, place.member("path"), "no word of nvidia-smi topo");
    }
    return distance;
  }
  if (!cell.is_string())
    complain(subject, place, "expected a word of nvidia-smi topo");
  const auto& word = cell.get_ref<const std::string&>();
  const std::optional<Distance> distance = parse_distance(word);
  if (!distance)
    complain(subject, place, "\"" + printable(word, 40) + "\" is no word of nvidia-smi topo");
  return *distance;
}

void read_reasons(const json& groups, const Place& place, DistanceMatrix& matrix,
                  const std::string& subject) {
  if (!groups.is_array())
    complain(subject, place, "expected a list");
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Place group = place.item(i);
    const Reader reader(groups[i], group, subject);
    std::string reason;
    std::vector<std::vector<std::size_t>> cells;
    reader("reason", reason);
    reader("cells", cells);
    for (std::size_t at = 0; at < cells.size(); ++at) {
      if (cells[at].size() != 2 || cells[at][0] >= matrix.size() || cells[at][1] >= matrix.size())
        complain(subject, group, "cell " + std::to_string(at) + " is not in the matrix");
      Distance& distance = matrix[cells[at][0]][cells[at][1]];
      if (!distance.path)
        distance.reason = reason;
    }
  }
}

} // namespace

json matrix_json(const DistanceMatrix& matrix, const std::vector<std::size_t>& devices) {
  json rows = json::array();
  std::map<std::string, json> cells_of_reason;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    json row = json::array();
    for (std::size_t j = 0; j < devices.size(); ++j) {
      const Distance& distance = matrix[devices[i]][devices[j]];
      row.push_back(cell_json(distance));
      if (!distance.path)
        cells_of_reason[distance.reason.empty() ? "the source does not tell" : distance.reason]
            .push_back({i, j});
    }
    rows.push_back(std::move(row));
  }
  json object{{"matrix", std::move(rows)}};
  for (auto& [reason, cells] : cells_of_reason)
    object["unknown"].push_back({{"reason", reason}, {"cells", std::move(cells)}});
  return object;
}

DistanceMatrix matrix_from_json(const json& object, const Place& place, std::size_t size,
                                const std::string& subject) {
  const Reader reader(object, place, subject);
  const json& rows = reader.require("matrix");
  const Place rows_place = place.member("matrix");
  const std::string expected = "expected a list of " + std::to_string(size);
  if (!rows.is_array() || rows.size() != size)
    complain(subject, rows_place, expected + " rows");
  DistanceMatrix matrix(size, std::vector<Distance>(size));
  for (std::size_t i = 0; i < size; ++i) {
    const Place row_place = rows_place.item(i);
    if (!rows[i].is_array() || rows[i].size() != size)
      complain(subject, row_place, expected + " columns");
    for (std::size_t j = 0; j < size; ++j)
      matrix[i][j] = read_cell(rows[i][j], row_place.item(j), subject);
  }
  if (const json* groups = reader.find("unknown"))
    read_reasons(*groups, place.member("unknown"), matrix, subject);
  return matrix;
}

} // namespace shmemctl::model_json
