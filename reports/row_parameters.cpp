#include "reports/row_parameters.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace shmemctl {

namespace {

constexpr std::size_t most_parameters = 16;

} // namespace

std::vector<std::string> parameter_names(const std::vector<const ResultRow*>& rows) {
  std::vector<std::string> names;
  for (const ResultRow* row : rows) {
    if (!row->params.is_object())
      continue;
    for (const auto& [name, value] : row->params.items()) {
      if (names.size() >= most_parameters)
        return names;
      if (std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
    }
  }
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name == "size_bytes"; });
  return names;
}

} // namespace shmemctl
