#include "reports/simulation_words.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <nlohmann/json.hpp>

#include "reports/json_view.h"
#include "reports/table.h"
#include "src/base/text.h"

namespace shmemctl::simulation {

using nlohmann::json;

double number_of(const json& object, const char* key) {
  return view::number(object, key).value_or(0);
}

std::string time_text(const json& estimate) {
  const double mean = number_of(estimate, "mean");
  const std::string text = view::decimal(mean);
  // A margin that is due to rounding alone is not shown.
  if (const auto margin = view::number(estimate, "margin95"); margin && *margin > mean * 1e-6)
    return text + " +- " + view::decimal(*margin, 2) + " us";
  return text + " us";
}

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

namespace {

double busier_direction(const json& nic) {
  return std::max(number_of(nic, "out_bytes"), number_of(nic, "in_bytes"));
}

/// For reports without the key "even": whether the load is even within the printed precision.
bool is_even(const json& variant) {
  constexpr double nearly_even = 1.005;
  const json& busiest = view::member(variant, "busiest");
  return view::member(variant, "even") == true ||
         view::number(busiest, "over_even").value_or(nearly_even) < nearly_even;
}

/// "busiest NIC: node 0 mlx5_0/1, 79.59 MB a step, 2 times the even share". No single NIC is named
/// if others carry the same load.
std::string busiest_text(const json& simulation, const json& variant) {
  const json& busiest = view::member(variant, "busiest");
  if (!(busier_direction(busiest) > 0))
    return "no NIC carries traffic";
  const std::string size = megabytes(busier_direction(busiest));
  if (is_even(variant))
    return fmt::format("all NICs carry the same: {} a step", size);
  const std::string share = view::decimal(number_of(busiest, "over_even"), 3);
  const double alike = view::number(variant, "busiest_alike").value_or(1);
  if (alike < 2)
    return fmt::format("busiest NIC: {}, {} a step, {} times the even share", nic_name(busiest),
                       size, share);
  return fmt::format("busiest: {:.0f} of {} NICs, such as {}: {} a step each, {} times the even "
                     "share",
                     alike, view::text(simulation, "nic_ports", "?"), nic_name(busiest), size,
                     share);
}

/// Whether two estimates differ by more than the displayed precision and the sampling error.
bool differ(const json& a, const json& b) {
  constexpr double same_within = 0.005;
  const double noise = std::hypot(number_of(a, "margin95"), number_of(b, "margin95"));
  const double mean = number_of(b, "mean");
  return std::abs(number_of(a, "mean") - mean) > std::max(noise, same_within * mean);
}

const json& variant_named(const json& variants, const char* name) {
  static const json none;
  for (const json& variant : variants)
    if (view::text(variant, "name") == name)
      return variant;
  return none;
}

/// "PE 0", "PEs 0, 2 and 5".
std::string pes_text(const json& pes) {
  std::vector<std::string> numbers;
  for (const json& pe : pes)
    numbers.push_back(safe_text(view::scalar(pe).value_or("?")));
  if (numbers.size() < 2)
    return "PE " + join(numbers, "");
  const std::string last = numbers.back();
  numbers.pop_back();
  return "PEs " + join(numbers, ", ") + " and " + last;
}

/// "node 1", "every node's", "node 1 and 3 more:".
std::string nodes_text(const json& takeover, double of_nodes) {
  const double nodes = view::number(takeover, "nodes").value_or(1);
  const std::string first = "node " + view::text(takeover, "first_node", "?");
  if (nodes < 2)
    return first;
  return nodes >= of_nodes ? "every node's" : fmt::format("{} and {:.0f} more:", first, nodes - 1);
}

} // namespace

std::string verdict_text(const json& simulation) {
  const json& variants = view::list(simulation, "variants");
  if (variants.empty())
    return "";
  const json& step = step_of(variants.front());
  std::string line = busiest_text(simulation, variants.front());
  line += fmt::format("; {} a step", time_text(view::member(step, "time_us")));
  if (const std::string by = view::text(step, "limited_by"); !by.empty())
    line += ", limited by " + by;
  return line;
}

std::vector<std::string> ratio_lines(const json& simulation) {
  const json& variants = view::list(simulation, "variants");
  if (variants.empty())
    return {};
  const json& given = view::member(step_of(variants.front()), "time_us");
  const auto differs_from_given = [&](const char* name) {
    const json& step = step_of(variant_named(variants, name));
    return !step.is_object() || differ(view::member(step, "time_us"), given);
  };
  std::vector<std::string> lines;
  if (!view::text(variant_named(variants, "optimal"), "same_nics_as").empty())
    lines.emplace_back("the mapping is the best one");
  else if (const auto price = view::number(simulation, "price_of_mapping"))
    lines.push_back(
        differs_from_given("optimal")
            ? fmt::format("cost of the mapping: a step takes {} times as long as with the best one",
                          view::decimal(*price, 3))
            : "the best mapping is not faster");
  if (const auto factor = view::number(simulation, "what_if_factor")) {
    std::vector<std::string> changes;
    for (const json& change : view::list(simulation, "changes"))
      changes.push_back(safe_text(view::scalar(change).value_or("?")));
    lines.push_back(fmt::format("with the changes ({}) a step takes {}", join(changes, ", "),
                                differs_from_given("what-if")
                                    ? view::decimal(*factor, 3) + " times as long"
                                    : std::string("as long as without")));
  }
  return lines;
}

std::vector<std::string> takeover_lines(const json& simulation) {
  const double nodes = view::number(view::member(simulation, "params"), "nodes")
                           .value_or(std::numeric_limits<double>::infinity());
  std::vector<std::string> lines;
  for (const json& one : view::list(simulation, "taken_over")) {
    std::string line = fmt::format("{} {}/{} is killed: ", nodes_text(one, nodes),
                                   view::text(one, "device", "?"), view::text(one, "port", "?"));
    std::vector<std::string> parts;
    for (const json& by : view::list(one, "by")) {
      const json& pes = view::list(by, "pes");
      const json& shared = view::list(by, "shared_with_pes");
      std::string part = fmt::format("{} {} {}/{}", pes_text(pes), pes.size() == 1 ? "uses" : "use",
                                     view::text(by, "device", "?"), view::text(by, "port", "?"));
      if (!shared.empty())
        part += fmt::format(", as {} {}", pes_text(shared), shared.size() == 1 ? "does" : "do");
      parts.push_back(std::move(part));
    }
    line += parts.empty() ? "no PE used it" : join(parts, "; ");
    lines.push_back(std::move(line));
  }
  return lines;
}

} // namespace shmemctl::simulation
