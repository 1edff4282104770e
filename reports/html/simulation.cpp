// What a simulated cluster would carry.
#include <fmt/format.h>
#include <optional>
#include <string>
#include <vector>

#include "reports/html/bars.h"
#include "reports/html/blocks.h"
#include "reports/html/sections.h"
#include "reports/json_view.h"
#include "reports/simulation_words.h"
#include "src/base/text.h"

namespace shmemctl::html {

using nlohmann::json;

namespace {

/// A chart has at most this many bars; the tables have the rest.
constexpr std::size_t max_node_bars = 40;
constexpr std::size_t max_operations = 8; ///< a report of ours has three

/// Bytes of an object as MB.
json megabytes(const json& object, const char* key) {
  const auto size_bytes = view::number(object, key);
  return size_bytes ? cell(std::optional<double>(*size_bytes / 1e6)) : json();
}

const json& variants_of(const Shown& one) {
  return view::list(one.report().simulation, "variants");
}

/// The variants, without those that use the same NICs as the first, the given mapping.
std::vector<const json*> different_variants_of(const Shown& one) {
  std::vector<const json*> variants;
  for (const json& variant : variants_of(one))
    if (view::text(variant, "same_nics_as").empty())
      variants.push_back(&variant);
  return variants;
}

/// The verdict, the effect of the other variants, and how the numbers were obtained.
std::vector<std::string> sentences_of(const json& simulation) {
  std::vector<std::string> sentences = {simulation::verdict_text(simulation)};
  for (const auto& lines :
       {simulation::ratio_lines(simulation), simulation::takeover_lines(simulation)})
    sentences.insert(sentences.end(), lines.begin(), lines.end());
  sentences.push_back(fmt::format(
      "{} ranks; bytes: {}; times: {} ({}; {} steps)", view::text(simulation, "ranks", "?"),
      view::text(simulation, "bytes", "?"), view::text(simulation, "times", "?"),
      view::text(simulation, "sampling", "?"), view::text(simulation, "steps", "?")));
  return sentences;
}

/// How long a step and its parts take in each variant.
json times_chart(const Shown& one) {
  BarChart chart;
  chart.title = labelled(one.label, "Time of a step");
  chart.unit = "us";
  for (const json* variant : different_variants_of(one)) {
    Bar bar;
    bar.name = view::text(*variant, "name");
    const json& operations = view::list(*variant, "operations");
    for (std::size_t i = 0; i < operations.size() && i < max_operations; ++i) {
      if (chart.bars.empty())
        chart.names.push_back(view::text(operations[i], "operation"));
      bar.values.push_back(view::number(view::member(operations[i], "time_us"), "mean"));
    }
    bar.values.resize(chart.names.size());
    chart.bars.push_back(std::move(bar));
  }
  // A single bar has nothing to be compared with.
  return chart.bars.size() < 2 ? json() : chart.block();
}

std::optional<double> megabytes_of(const json& object, const char* key) {
  const auto size_bytes = view::number(object, key);
  return size_bytes ? std::optional<double>(*size_bytes / 1e6) : std::nullopt;
}

/// What the listed NICs of a variant carry, the hot ones red, next to the even share.
json nics_chart(const Shown& one, const json& variant) {
  BarChart chart;
  chart.title = labelled(one.label, "Bytes of the busiest NICs, " + view::text(variant, "name"));
  chart.unit = "MB a step";
  chart.names = {"out", "in"};
  chart.mark_name = "the even share";
  for (const json& nic : view::list(variant, "nics")) {
    if (chart.bars.size() >= max_node_bars)
      break;
    chart.bars.push_back({simulation::nic_name(nic),
                          view::member(nic, "hot") == true ? BarState::hot : BarState::usual,
                          {megabytes_of(nic, "out_bytes"), megabytes_of(nic, "in_bytes")},
                          megabytes_of(variant, "even_bytes")});
  }
  return chart.block();
}

/// Whether the listed NICs do not all carry the same number of bytes.
bool differs_by_nic(const json& variant) {
  return view::member(variant, "even") != true &&
         view::number(variant, "busiest_alike").value_or(1) <
             static_cast<double>(view::list(variant, "nics").size());
}

/// The busiest NIC of each rail, over the whole cluster; the report's list of NICs may contain only
/// the busiest ones.
json rails_chart(const Shown& one, const json& variant) {
  BarChart chart;
  chart.title = labelled(one.label, "The busiest NIC of each rail, " + view::text(variant, "name"));
  chart.unit = "MB a step";
  chart.names = {"its busier direction"};
  chart.mark_name = "the even share";
  for (const json& rail : view::list(variant, "rails")) {
    if (chart.bars.size() >= max_node_bars)
      break;
    chart.bars.push_back({view::text(rail, "device") + "/" + view::text(rail, "port"),
                          view::member(rail, "hot") == true ? BarState::hot : BarState::usual,
                          {megabytes_of(rail, "most_bytes")},
                          megabytes_of(variant, "even_bytes")});
  }
  return chart.block();
}

bool has_more_bars(const json& variant) {
  return view::list(variant, "rails").size() > max_node_bars ||
         (differs_by_nic(variant) && view::list(variant, "nics").size() > max_node_bars);
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
                                {"in most steps by"},
                                {"of steps", ColumnKind::share}});
  for (const Shown& one : shown)
    for (const json* variant : different_variants_of(one))
      for (const json& operation : view::list(*variant, "operations")) {
        const json& time = view::member(operation, "time_us");
        const json& often = view::member(operation, "most_often");
        table.add(
            {cell(one.label), cell(view::member(*variant, "name")),
             cell(view::member(*variant, "policy")), cell(view::member(*variant, "world")),
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
    for (const json* variant : different_variants_of(one))
      for (const json& nic : view::list(*variant, "nics"))
        table.add({cell(one.label), cell(view::member(*variant, "name")),
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
    for (const json* variant : different_variants_of(one)) {
      const auto add = [&](const std::string& place, const json& of, const char* out,
                           const char* in) {
        table.add({cell(one.label), cell(view::member(*variant, "name")), cell(place),
                   megabytes(of, out), megabytes(of, in)});
      };
      for (const json& rail : view::list(*variant, "rails"))
        add("rail " + view::text(rail, "device") + "/" + view::text(rail, "port"), rail,
            "out_bytes", "in_bytes");
      for (const json& node : view::list(*variant, "nodes"))
        add("node " + view::text(node, "node"), node, "out_bytes", "in_bytes");
      for (const json& leaf : view::list(*variant, "switches"))
        if (view::number(leaf, "up_bytes").value_or(0) > 0 ||
            view::number(leaf, "down_bytes").value_or(0) > 0)
          add(view::text(leaf, "name"), leaf, "up_bytes", "down_bytes");
    }
  return table.empty() ? json() : table.block();
}

/// The report contains only the busiest of each kind.
std::string left_out_of(const std::vector<Shown>& shown) {
  double nics = 0, switches = 0;
  for (const Shown& one : shown)
    for (const json* variant : different_variants_of(one)) {
      nics += view::number(*variant, "nics_left_out").value_or(0);
      switches += view::number(*variant, "switches_left_out").value_or(0);
    }
  if (nics + switches == 0)
    return "";
  return fmt::format(
      "{:.0f} {} and {:.0f} {} with no more traffic than these are not in the report (sim --all, "
      "--top N).",
      nics, nics == 1 ? "NIC" : "NICs", switches, switches == 1 ? "switch" : "switches");
}

/// Charts of one page; a hostile document may have any number of variants.
constexpr std::size_t max_simulation_charts = 60;

void add_block(json& blocks, json block) {
  if (!block.is_null())
    blocks.push_back(std::move(block));
}

} // namespace

json simulation_section(const std::vector<Shown>& shown) {
  json blocks = json::array();
  bool omitted = false;
  for (const Shown& one : shown)
    if (!variants_of(one).empty())
      for (const std::string& sentence : sentences_of(one.report().simulation))
        blocks.push_back(note_block(labelled(one.label, sentence + ".")));
  for (const Shown& one : shown) {
    add_block(blocks, times_chart(one));
    for (const json* variant : different_variants_of(one)) {
      if (blocks.size() >= max_simulation_charts) {
        omitted = true;
        break;
      }
      omitted = omitted || has_more_bars(*variant);
      add_block(blocks, rails_chart(one, *variant));
      if (differs_by_nic(*variant))
        add_block(blocks, nics_chart(one, *variant));
    }
  }
  if (omitted)
    blocks.push_back(note_block(
        fmt::format("Not all charts and bars are shown: at most {} charts, with {} bars each. The "
                    "report has the others.",
                    max_simulation_charts, max_node_bars)));
  for (json block : {operations_table(shown), nics_table(shown), places_table(shown)})
    add_block(blocks, std::move(block));
  if (const std::string text = left_out_of(shown); !text.empty())
    blocks.push_back(note_block(text));
  return section("simulation", "Simulated cluster", std::move(blocks));
}

} // namespace shmemctl::html
