// What a simulated cluster would carry: the verdict first.
#include <algorithm>
#include <fmt/format.h>

#include "reports/json_view.h"
#include "reports/simulation_words.h"
#include "reports/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;
using namespace simulation;

std::string verdict(const json& simulation, const TextStyle& style) {
  std::string text =
      coloured(wrapped(simulation::verdict_text(simulation), style.width, 2), Colour::bold, style) +
      "\n";
  text += fmt::format("bytes: {}; times: {} ({}; {} steps)\n", view::text(simulation, "bytes"),
                      view::text(simulation, "times"), view::text(simulation, "sampling"),
                      view::text(simulation, "steps"));
  for (const auto& lines : {ratio_lines(simulation), takeover_lines(simulation)})
    for (const std::string& line : lines)
      text += wrapped(line, style.width, 2) + "\n";
  return text;
}

std::string most_often_text(const json& operation) {
  const json& often = view::member(operation, "most_often");
  if (!often.is_object())
    return "";
  return fmt::format("{} {:.0f}%", view::text(often, "resource"),
                     100 * number_of(often, "share_of_steps"));
}

/// The cells of an operation that differ between mappings.
std::vector<std::string> results_of(const json& operation) {
  return {view::text(operation, "operation"), time_text(view::member(operation, "time_us")),
          megabytes(number_of(operation, "crossing_bytes_per_rank")),
          view::text(operation, "limited_by", "-")};
}

/// Whether the rows of the best mapping would repeat those of the given one: the line above the
/// table says then that it is not faster.
bool repeats_given(const json& variants, const json& variant) {
  if (view::text(variant, "name") != "optimal")
    return false;
  if (!view::text(variant, "same_nics_as").empty())
    return true;
  const json& given = view::list(variants.front(), "operations");
  const json& best = view::list(variant, "operations");
  return std::equal(
      given.begin(), given.end(), best.begin(), best.end(),
      [](const json& left, const json& right) { return results_of(left) == results_of(right); });
}

/// The resource that limits most steps may differ from the one that limits the mean step. A table
/// with both would look wrong, so the former is shown only with `verbose`.
std::string variants_table(const json& variants, const TextStyle& style) {
  std::vector<Column> columns = {{"variant"},
                                 {"policy"},
                                 {"world"},
                                 {"operation"},
                                 {"time", Align::right},
                                 {"crosses, of a rank", Align::right},
                                 {"limited by"}};
  if (style.verbose)
    columns.push_back({"in most steps by"});
  Table table(columns);
  for (const json& variant : variants) {
    if (repeats_given(variants, variant) && !style.verbose)
      continue;
    for (const json& operation : view::list(variant, "operations")) {
      std::vector<std::string> row = {view::text(variant, "name"), view::text(variant, "policy"),
                                      view::text(variant, "world")};
      for (std::string& cell : results_of(operation))
        row.push_back(std::move(cell));
      if (style.verbose)
        row.push_back(most_often_text(operation));
      table.add(std::move(row));
    }
  }
  return table.text(style);
}

/// Consecutive rows whose cells are all the same except for the first cell.
struct AlikeRows {
  std::string first; ///< first cell of the first row
  std::vector<std::string> cells;
  std::size_t count = 0;
};

class AlikeTable {
public:
  /// @param joins whether rows that are alike become one
  explicit AlikeTable(bool joins) : joins_(joins) {}

  void add(const std::string& name, std::vector<std::string> cells) {
    if (!joins_ || rows_.empty() || rows_.back().cells != cells)
      rows_.push_back({name, std::move(cells), 0});
    ++rows_.back().count;
  }
  std::vector<AlikeRows>& rows() { return rows_; }

  void print_to(Table& table) const {
    for (const AlikeRows& row : rows_) {
      std::vector<std::string> cells = {
          row.count == 1 ? row.first : fmt::format("{} and {} alike", row.first, row.count - 1)};
      cells.insert(cells.end(), row.cells.begin(), row.cells.end());
      table.add(std::move(cells));
    }
  }

private:
  bool joins_;
  std::vector<AlikeRows> rows_;
};

/// Whether NICs with equal loads share a row: not if the user asked for every NIC (--all) or for
/// everything (--verbose).
bool joins_alike(const json& variant, const TextStyle& style) {
  constexpr std::size_t default_top = 8;
  const bool all =
      number_of(variant, "nics_left_out") == 0 && view::list(variant, "nics").size() > default_top;
  return !all && !style.verbose;
}

std::string loads_table(const json& variant, const TextStyle& style) {
  const auto cell = [](const json& nic, const char* key, const char* margin) {
    const auto half = view::number(nic, margin);
    return megabytes(number_of(nic, key)) +
           (half ? " +- " + view::decimal(*half / 1e6, 2) : std::string());
  };
  AlikeTable loads(joins_alike(variant, style));
  const json& nics = view::list(variant, "nics");
  for (const json& nic : nics)
    loads.add(nic_name(nic), {cell(nic, "out_bytes", "out_margin95_bytes"),
                              cell(nic, "in_bytes", "in_margin95_bytes"),
                              view::decimal(number_of(nic, "over_even"), 3)});
  double left = number_of(variant, "nics_left_out");
  constexpr double max_nics = 1e15; // a report of another program may hold any number
  const auto alike =
      static_cast<std::size_t>(std::clamp(number_of(variant, "busiest_alike"), 0.0, max_nics));
  const bool one_size = loads.rows().size() == 1 && left > 0 && alike > nics.size();
  if (one_size) { // some sizes are not listed
    left -= static_cast<double>(alike - nics.size());
    loads.rows().front().count = alike;
  }
  Table table({{"NIC"}, {"out", Align::right}, {"in", Align::right}, {"x even", Align::right}});
  loads.print_to(table);
  std::string out = table.text(style);
  if (left > 0)
    out += fmt::format("... and {:.0f} NICs with {} traffic (--all, --top N)\n", left,
                       one_size ? "less" : "at most as much");
  return out;
}

std::string places_table(const json& variant, const TextStyle& style) {
  const bool joins = joins_alike(variant, style);
  AlikeTable places(joins);
  for (const json& rail : view::list(variant, "rails"))
    places.add("rail " + view::text(rail, "device") + "/" + view::text(rail, "port"),
               {megabytes(number_of(rail, "out_bytes")), megabytes(number_of(rail, "in_bytes"))});
  AlikeTable nodes(joins);
  for (const json& node : view::list(variant, "nodes"))
    nodes.add("node " + view::text(node, "node"),
              {megabytes(number_of(node, "out_bytes")), megabytes(number_of(node, "in_bytes"))});
  AlikeTable switches(joins);
  for (const json& leaf : view::list(variant, "switches"))
    if (number_of(leaf, "up_bytes") > 0 || number_of(leaf, "down_bytes") > 0)
      switches.add(view::text(leaf, "name"), {megabytes(number_of(leaf, "up_bytes")),
                                              megabytes(number_of(leaf, "down_bytes"))});
  Table table({{"place"}, {"out / up", Align::right}, {"in / down", Align::right}});
  for (const AlikeTable* part : {&places, &nodes, &switches})
    part->print_to(table);
  return table.text(style);
}

} // namespace

std::string simulation_text(const nlohmann::json& simulation, const TextStyle& style) {
  const json& variants = view::list(simulation, "variants");
  if (variants.empty())
    return "";
  std::string out = verdict(simulation, style);
  out += "\n" + variants_table(variants, style);
  std::string groups;
  for (const json& variant : variants) {
    const json& slowest = view::member(variant, "slowest_group_us");
    if (slowest.is_object() && view::text(variant, "same_nics_as").empty())
      groups +=
          fmt::format("{}: the slowest of {} groups takes {} a step\n", view::text(variant, "name"),
                      view::text(simulation, "groups"), time_text(slowest));
  }
  if (!groups.empty())
    out += "\n" + groups;
  for (const json& variant : variants) {
    if (view::text(variant, "name") == "optimal" && !style.verbose)
      continue;
    out += "\n" + view::text(variant, "name") + "\n" + loads_table(variant, style) + "\n" +
           places_table(variant, style);
  }
  return out;
}

} // namespace shmemctl
