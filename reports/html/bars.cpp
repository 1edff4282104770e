#include "reports/html/bars.h"

#include "reports/html/blocks.h"
#include "reports/table.h"

namespace shmemctl::html {

using nlohmann::json;

namespace {

const char* to_string(BarState state) {
  return state == BarState::hot ? "hot" : state == BarState::faulty ? "faulty" : "usual";
}

} // namespace

json BarChart::block() const {
  if (bars.empty())
    return nullptr;
  json drawn = json::array(), labels = json::array();
  for (const std::string& name : names)
    labels.push_back(safe_text(name));
  for (const Bar& bar : bars) {
    json values = json::array();
    for (const std::optional<double>& value : bar.values)
      values.push_back(cell(value));
    drawn.push_back({{"name", safe_text(bar.name)},
                     {"state", to_string(bar.state)},
                     {"values", std::move(values)},
                     {"mark", cell(bar.mark)}});
  }
  return {{"type", "bars"},
          {"title", safe_text(title)},
          {"unit", safe_text(unit)},
          {"names", std::move(labels)},
          {"mark_name", safe_text(mark_name)},
          {"bars", std::move(drawn)}};
}

} // namespace shmemctl::html
