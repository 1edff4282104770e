// Bar charts of a page.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace shmemctl::html {

enum class BarState {
  usual,
  hot,
  faulty ///< has an error, whatever it carries
};

struct Bar {
  std::string name;
  BarState state = BarState::usual;
  std::vector<std::optional<double>> values; ///< one for each name of the chart
  std::optional<double> mark; ///< drawn across the bar: the link's rate, or the even share
};

struct BarChart {
  std::string title, unit;
  std::vector<std::string> names; ///< names of the values: "sent", "received"
  std::string mark_name;          ///< the meaning of the marks; "" if there are none
  std::vector<Bar> bars;

  /// Null without bars.
  nlohmann::json block() const;
};

} // namespace shmemctl::html
