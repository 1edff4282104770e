#include "src/watch/gathered_text.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "src/base/json_line.h"
#include "src/topo/hotspots/totals_json.h"

namespace shmemctl {

namespace {

constexpr std::size_t most_bytes_of_all = std::size_t{16} << 20;
constexpr std::size_t least_bytes = 4096, most_bytes_of_one = std::size_t{1} << 20;

} // namespace

std::size_t most_part_bytes(int n_pes) {
  return std::clamp(most_bytes_of_all / static_cast<std::size_t>(std::max(n_pes, 1)), least_bytes,
                    most_bytes_of_one);
}

std::string with_totals(nlohmann::json object, const NodeTotals& totals, std::size_t most_bytes) {
  const std::size_t taken = json_line(object).size();
  object["totals"] =
      totals_json(totals, detail_within(totals, most_bytes - std::min(most_bytes, taken)));
  return json_line(object);
}

Error bad_part(const std::string& host) {
  return {ExitCode::unavailable, "NIC counters of " + host, "read", "malformed message from a PE",
          "run the same version of shmemctl on all hosts"};
}

std::string machine_text(const PeMachine& machine) {
  return std::to_string(machine.machine_id) + " " + machine.name;
}

std::vector<PeMachine> machines_from(const std::vector<std::string>& texts) {
  std::vector<PeMachine> machines;
  for (const std::string& text : texts) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    machines.push_back(
        {std::strtoull(text.c_str(), nullptr, 10), text.substr(std::min(blank + 1, text.size()))});
  }
  return machines;
}

} // namespace shmemctl
