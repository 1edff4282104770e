// What a simulated cluster would carry: the verdict first.
#include <fmt/format.h>

#include "reports/json_view.h"
#include "reports/text.h"

namespace shmemctl {

namespace {

using nlohmann::json;

double number_of(const json& object, const char* key) {
  return view::number(object, key).value_or(0);
}

/// "246.1 us", "246.1 ± 0.4 us".
std::string time_text(const json& estimate) {
  const double mean = number_of(estimate, "mean");
  const std::string text = view::decimal(mean);
  if (const auto margin = view::number(estimate, "margin95"))
    return text + " +- " + view::decimal(*margin, 2) + " us";
  return text + " us";
}

/// The last operation: the whole step.
const json& step_of(const json& variant) {
  const json& operations = view::list(variant, "operations");
  static const json none;
  return operations.empty() ? none : operations.back();
}

std::string megabytes(double size_bytes) {
  return view::decimal(size_bytes / 1e6) + " MB";
}

std::string nic_name(const json& nic) {
  return fmt::format("node {} {}/{}", view::text(nic, "node", "?"), view::text(nic, "device", "?"),
                     view::text(nic, "port", "?"));
}

double busier_direction(const json& nic) {
  return std::max(number_of(nic, "out_bytes"), number_of(nic, "in_bytes"));
}

std::string verdict(const json& simulation, const json& variant, const TextStyle& style) {
  const json& busiest = view::member(variant, "busiest");
  const json& step = step_of(variant);
  // Compared with the printed precision; if many are equal, the first one is not to blame.
  constexpr double nearly_even = 1.005;
  std::string line;
  if (busier_direction(busiest) > 0 &&
      view::number(busiest, "over_even").value_or(nearly_even) < nearly_even)
    line = fmt::format("all NICs carry the same: {} a step", megabytes(busier_direction(busiest)));
  else if (busier_direction(busiest) > 0)
    line = fmt::format("busiest NIC: {}, {} a step, {} times the even share", nic_name(busiest),
                       megabytes(busier_direction(busiest)),
                       view::decimal(number_of(busiest, "over_even"), 3));
  else
    line = "no NIC carries traffic";
  line += fmt::format("; {} a step", time_text(view::member(step, "time_us")));
  if (const std::string by = view::text(step, "limited_by"); !by.empty())
    line += ", limited by " + by;
  line = coloured(wrapped(line, style.width, 2), Colour::bold, style) + "\n";
  line += fmt::format("bytes: {}; times: {} ({}; {} steps)\n", view::text(simulation, "bytes"),
                      view::text(simulation, "times"), view::text(simulation, "sampling"),
                      view::text(simulation, "steps"));
  return line;
}

std::string most_often_text(const json& operation) {
  const json& often = view::member(operation, "most_often");
  if (!often.is_object())
    return "";
  return fmt::format("{} {:.0f}%", view::text(often, "resource"),
                     100 * number_of(often, "share_of_steps"));
}

std::string variants_table(const json& variants, const TextStyle& style) {
  Table table({{"variant"},
               {"policy"},
               {"world"},
               {"operation"},
               {"time", Align::right},
               {"crosses, of a rank", Align::right},
               {"limited by"},
               {"most often"}});
  for (const json& variant : variants)
    for (const json& operation : view::list(variant, "operations"))
      table.add({view::text(variant, "name"), view::text(variant, "policy"),
                 view::text(variant, "world"), view::text(operation, "operation"),
                 time_text(view::member(operation, "time_us")),
                 megabytes(number_of(operation, "crossing_bytes_per_rank")),
                 view::text(operation, "limited_by", "-"), most_often_text(operation)});
  return table.text(style);
}

std::string loads_table(const json& variant, const TextStyle& style) {
  Table table({{"NIC"}, {"out", Align::right}, {"in", Align::right}, {"x even", Align::right}});
  const auto cell = [](const json& nic, const char* key, const char* margin) {
    const auto half = view::number(nic, margin);
    return megabytes(number_of(nic, key)) +
           (half ? " +- " + view::decimal(*half / 1e6, 2) : std::string());
  };
  for (const json& nic : view::list(variant, "nics"))
    table.add({nic_name(nic), cell(nic, "out_bytes", "out_margin95_bytes"),
               cell(nic, "in_bytes", "in_margin95_bytes"),
               view::decimal(number_of(nic, "over_even"), 3)});
  std::string out = table.text(style);
  if (const double left = number_of(variant, "nics_left_out"); left > 0)
    out += fmt::format("... and {:.0f} NICs with no more traffic (--all, --top N)\n", left);
  return out;
}

std::string places_table(const json& variant, const TextStyle& style) {
  Table table({{"place"}, {"out / up", Align::right}, {"in / down", Align::right}});
  for (const json& rail : view::list(variant, "rails"))
    table.add({"rail " + view::text(rail, "device") + "/" + view::text(rail, "port"),
               megabytes(number_of(rail, "out_bytes")), megabytes(number_of(rail, "in_bytes"))});
  for (const json& node : view::list(variant, "nodes"))
    table.add({"node " + view::text(node, "node"), megabytes(number_of(node, "out_bytes")),
               megabytes(number_of(node, "in_bytes"))});
  for (const json& leaf : view::list(variant, "switches"))
    table.add({view::text(leaf, "name"), megabytes(number_of(leaf, "up_bytes")),
               megabytes(number_of(leaf, "down_bytes"))});
  return table.text(style);
}

} // namespace

std::string simulation_text(const nlohmann::json& simulation, const TextStyle& style) {
  const json& variants = view::list(simulation, "variants");
  if (variants.empty())
    return "";
  std::string out = verdict(simulation, variants.front(), style);
  if (const auto price = view::number(simulation, "price_of_mapping"))
    out += fmt::format("price of the mapping: {} times a step with the best one\n",
                       view::decimal(*price, 3));
  if (const auto factor = view::number(simulation, "what_if_factor")) {
    out += fmt::format(
        "with the changes ({}) a step takes {} times as long\n",
        [&] {
          std::string all;
          for (const json& change : view::list(simulation, "changes"))
            all += (all.empty() ? "" : ", ") + safe_text(view::scalar(change).value_or("?"));
          return all;
        }(),
        view::decimal(*factor, 3));
  }
  out += "\n" + variants_table(variants, style) + "\n";
  for (const json& variant : variants) {
    if (const json& slowest = view::member(variant, "slowest_group_us"); slowest.is_object())
      out +=
          fmt::format("{}: the slowest of {} groups takes {} a step\n", view::text(variant, "name"),
                      view::text(simulation, "groups"), time_text(slowest));
  }
  for (const json& variant : variants) {
    if (view::text(variant, "name") == "optimal" && !style.verbose)
      continue;
    out += "\n" + view::text(variant, "name") + "\n" + loads_table(variant, style) + "\n" +
           places_table(variant, style);
  }
  return out;
}

} // namespace shmemctl
