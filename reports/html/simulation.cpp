// What a simulated cluster would carry.
#include <fmt/format.h>

#include "reports/html/blocks.h"
#include "reports/html/sections.h"
#include "reports/json_view.h"
#include "src/base/text.h"

namespace shmemctl::html {

using nlohmann::json;

namespace {

/// Bytes of an object as MB.
json megabytes(const json& object, const char* key) {
  const auto size_bytes = view::number(object, key);
  return size_bytes ? cell(std::optional<double>(*size_bytes / 1e6)) : json();
}

const json& variants_of(const Shown& one) {
  return view::list(one.report().simulation, "variants");
}

/// How the numbers were obtained, and the two main ratios of a simulation.
std::string method_text(const json& simulation) {
  std::string text = fmt::format(
      "{} ranks; bytes: {}; times: {} ({}; {} steps).", view::text(simulation, "ranks", "?"),
      view::text(simulation, "bytes", "?"), view::text(simulation, "times", "?"),
      view::text(simulation, "sampling", "?"), view::text(simulation, "steps", "?"));
  if (const auto price = view::number(simulation, "price_of_mapping"))
    text += fmt::format(" A step takes {} times as long as with the best mapping.",
                        view::decimal(*price, 3));
  if (const auto factor = view::number(simulation, "what_if_factor")) {
    std::vector<std::string> changes;
    for (const json& change : view::list(simulation, "changes"))
      changes.push_back(view::scalar(change).value_or("?"));
    text += fmt::format(" With the changes ({}) it takes {} times as long.", join(changes, ", "),
                        view::decimal(*factor, 3));
  }
  return text;
}

json operations_table(const std::vector<Shown>& shown) {
  TableBlock table("Variants", {{"where"},
                                {"variant"},
                                {"policy"},
                                {"world"},
                                {"operation"},
                                {"time [us]", ColumnKind::number},
                                {"+- (95%)", ColumnKind::number},
                                {"crosses, of a rank [MB]", ColumnKind::number},
                                {"limited by"},
                                {"most often"},
                                {"in steps", ColumnKind::share}});
  for (const Shown& one : shown)
    for (const json& variant : variants_of(one))
      for (const json& operation : view::list(variant, "operations")) {
        const json& time = view::member(operation, "time_us");
        const json& often = view::member(operation, "most_often");
        table.add(
            {cell(one.label), cell(view::member(variant, "name")),
             cell(view::member(variant, "policy")), cell(view::member(variant, "world")),
             cell(view::member(operation, "operation")), cell(view::member(time, "mean")),
             cell(view::member(time, "margin95")), megabytes(operation, "crossing_bytes_per_rank"),
             cell(view::member(operation, "limited_by")), cell(view::member(often, "resource")),
             cell(view::member(often, "share_of_steps"))});
      }
  return table.empty() ? json() : table.block();
}

json nics_table(const std::vector<Shown>& shown) {
  TableBlock table("Busiest NICs of a step", {{"where"},
                                              {"variant"},
                                              {"node", ColumnKind::number},
                                              {"NIC", ColumnKind::code},
                                              {"out [MB]", ColumnKind::number},
                                              {"+- (95%)", ColumnKind::number},
                                              {"in [MB]", ColumnKind::number},
                                              {"+- (95%)", ColumnKind::number},
                                              {"times the even share", ColumnKind::number}});
  for (const Shown& one : shown)
    for (const json& variant : variants_of(one))
      for (const json& nic : view::list(variant, "nics"))
        table.add({cell(one.label), cell(view::member(variant, "name")),
                   cell(view::member(nic, "node")),
                   cell(view::text(nic, "device", "?") + "/" + view::text(nic, "port", "?")),
                   megabytes(nic, "out_bytes"), megabytes(nic, "out_margin95_bytes"),
                   megabytes(nic, "in_bytes"), megabytes(nic, "in_margin95_bytes"),
                   cell(view::member(nic, "over_even"))});
  return table.empty() ? json() : table.block();
}

json places_table(const std::vector<Shown>& shown) {
  TableBlock table("Rails, nodes and switches", {{"where"},
                                                 {"variant"},
                                                 {"place"},
                                                 {"out / up [MB]", ColumnKind::number},
                                                 {"in / down [MB]", ColumnKind::number}});
  for (const Shown& one : shown)
    for (const json& variant : variants_of(one)) {
      const auto add = [&](const std::string& place, const json& of, const char* out,
                           const char* in) {
        table.add({cell(one.label), cell(view::member(variant, "name")), cell(place),
                   megabytes(of, out), megabytes(of, in)});
      };
      for (const json& rail : view::list(variant, "rails"))
        add("rail " + view::text(rail, "device") + "/" + view::text(rail, "port"), rail,
            "out_bytes", "in_bytes");
      for (const json& node : view::list(variant, "nodes"))
        add("node " + view::text(node, "node"), node, "out_bytes", "in_bytes");
      for (const json& leaf : view::list(variant, "switches"))
        add(view::text(leaf, "name"), leaf, "up_bytes", "down_bytes");
    }
  return table.empty() ? json() : table.block();
}

/// The report contains only the busiest of each kind.
std::string left_out_of(const std::vector<Shown>& shown) {
  double nics = 0, switches = 0;
  for (const Shown& one : shown)
    for (const json& variant : variants_of(one)) {
      nics += view::number(variant, "nics_left_out").value_or(0);
      switches += view::number(variant, "switches_left_out").value_or(0);
    }
  if (nics + switches == 0)
    return "";
  return fmt::format(
      "{:.0f} {} and {:.0f} {} with no more traffic are not in the report (sim --all, "
      "--top N).",
      nics, nics == 1 ? "NIC" : "NICs", switches, switches == 1 ? "switch" : "switches");
}

} // namespace

json simulation_section(const std::vector<Shown>& shown) {
  json blocks = json::array();
  for (const Shown& one : shown)
    if (!variants_of(one).empty())
      blocks.push_back(note_block(labelled(one.label, method_text(one.report().simulation))));
  for (json block : {operations_table(shown), nics_table(shown), places_table(shown)})
    if (!block.is_null())
      blocks.push_back(std::move(block));
  if (const std::string text = left_out_of(shown); !text.empty())
    blocks.push_back(note_block(text));
  return section("simulation", "Simulated cluster", std::move(blocks));
}

} // namespace shmemctl::html
