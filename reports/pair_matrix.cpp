#include "reports/pair_matrix.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "reports/compare/compare.h"
#include "reports/json_view.h"
#include "src/base/text.h"
#include "src/base/units.h"

namespace shmemctl {

namespace {

using nlohmann::json;

/// A matrix with fewer labels is of no use.
constexpr std::size_t fewest_labels = 3;

constexpr PairNames pair_names[] = {
    {"first_pe", "second_pe", "PE"}, {"source", "target", "GPU"}, {"from_host", "to_host", "host"}};

struct Pair {
  std::string source, target;
  const ResultRow* row = nullptr;
};

std::string parameter_text(const std::string& name, const json& value) {
  if (name == "size_bytes" && value.is_number_integer() && value.get<std::int64_t>() >= 0)
    return "size=" + format_size_bytes(value.get<std::uint64_t>());
  return name + "=" + view::scalar(value).value_or("null");
}

/// Rows with the same title belong to one matrix: everything but the pair is equal.
std::string title_of(const ResultRow& row, const PairNames& names) {
  std::string title = row.case_name;
  for (const auto& [name, value] : row.params.items())
    if (!is_dependent(name) && name != names.source && name != names.target)
      title += " " + parameter_text(name, value);
  return row.run ? title + " (run " + std::to_string(*row.run) + ")" : title;
}

bool cell_has_failed(const ResultRow& row) {
  return row.status == RowStatus::fail || row.verified == Verified::failed;
}

std::vector<std::string> in_order(std::vector<std::string> labels) {
  std::sort(labels.begin(), labels.end(), [](const std::string& left, const std::string& right) {
    return natural_less(left, right) || (!natural_less(right, left) && left < right);
  });
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  return labels;
}

std::optional<PairMatrix> matrix_of(const std::string& title, const std::string& kind,
                                    const std::vector<Pair>& pairs) {
  PairMatrix matrix;
  const bool rates = std::any_of(pairs.begin(), pairs.end(), [](const Pair& pair) {
    return pair.row->bandwidth_GBps.has_value();
  });
  matrix.title = title + (rates ? ", bandwidth" : ", median");
  matrix.unit = rates ? "GB/s" : pairs.front().row->unit;
  matrix.row_is = "from " + kind;
  matrix.column_is = "to " + kind;
  matrix.low_is_bad = rates;
  matrix.of_median = true;
  std::vector<std::string> labels;
  for (const Pair& pair : pairs)
    labels.insert(labels.end(), {pair.source, pair.target});
  matrix.labels = in_order(std::move(labels));
  std::map<std::string, std::size_t> index_of;
  for (const std::string& label : matrix.labels)
    index_of.emplace(label, index_of.size());
  for (const Pair& pair : pairs) {
    const ResultRow& row = *pair.row;
    const bool failed = cell_has_failed(row);
    const std::optional<double> measured = rates       ? row.bandwidth_GBps
                                           : row.stats ? row.stats->p50
                                                       : std::nullopt;
    if (pair.source != pair.target && (failed || measured))
      matrix.cells.push_back(
          {index_of.at(pair.source), index_of.at(pair.target), failed ? std::nullopt : measured});
  }
  if (matrix.labels.size() < fewest_labels || matrix.cells.empty())
    return std::nullopt;
  return matrix;
}

void add_rows(const Report& report, std::vector<PairMatrix>& matrices) {
  std::vector<std::pair<std::string, std::vector<Pair>>> groups; // in order of appearance
  std::map<std::string, std::size_t> index_of;
  std::vector<std::string> kinds;
  for (const ResultRow& row : report.results) {
    const PairNames* names = row.params.is_object() ? pair_names_of(row) : nullptr;
    if (!names)
      continue;
    const std::string title = title_of(row, *names);
    const auto [found, is_new] = index_of.emplace(title, groups.size());
    if (is_new) {
      groups.push_back({title, {}});
      kinds.emplace_back(names->kind);
    }
    groups[found->second].second.push_back(
        {view::scalar(view::member(row.params, names->source)).value(),
         view::scalar(view::member(row.params, names->target)).value(), &row});
  }
  for (std::size_t i = 0; i < groups.size(); ++i)
    if (auto matrix = matrix_of(groups[i].first, kinds[i], groups[i].second))
      matrices.push_back(std::move(*matrix));
}

void add_waits(const json& point, const json& waits, std::vector<PairMatrix>& matrices) {
  PairMatrix matrix;
  matrix.title = "moe";
  const json& params = view::member(point, "params");
  if (params.is_object())
    for (const auto& [name, value] : params.items())
      matrix.title += " " + parameter_text(name, value);
  if (const auto run = view::scalar(view::member(point, "run")))
    matrix.title += " (run " + *run + ")";
  matrix.title += ", " + view::text(waits, "operation") + ": which rank waited for which";
  matrix.unit = "us";
  matrix.row_is = "PE that waits";
  matrix.column_is = "for PE";
  const json& rows = view::list(waits, "wait_us");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    matrix.labels.push_back(std::to_string(i));
    for (std::size_t j = 0; j < rows[i].size() && j < rows.size(); ++j)
      if (i != j && rows[i][j].is_number())
        matrix.cells.push_back({i, j, rows[i][j].get<double>()});
  }
  if (matrix.labels.size() >= fewest_labels && !matrix.cells.empty())
    matrices.push_back(std::move(matrix));
}

} // namespace

const PairNames* pair_names_of(const ResultRow& row) {
  for (const PairNames& names : pair_names)
    if (view::scalar(view::member(row.params, names.source)) &&
        view::scalar(view::member(row.params, names.target)))
      return &names;
  return nullptr;
}

std::vector<PairMatrix> pair_matrices(const Report& report) {
  std::vector<PairMatrix> matrices;
  add_rows(report, matrices);
  for (const json& point : report.moe)
    for (const json& waits : view::list(point, "waits"))
      add_waits(point, waits, matrices);
  return matrices;
}

} // namespace shmemctl
