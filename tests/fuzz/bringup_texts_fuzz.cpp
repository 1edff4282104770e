// What PEs send each other in bringup and bench, the FAULT option, and the /proc lines that run
// reads.
#include <cstdint>
#include <cstdlib>

#include "src/instruments/bringup/bringup.h"
#include "src/instruments/bringup/connections.h"
#include "src/instruments/bringup/job_networks.h"
#include "src/instruments/hotspots/job_watch.h"
#include "src/instruments/launch/processes.h"
#include "src/runtime/fault.h"

namespace {

void require(bool holds) {
  if (!holds)
    std::abort();
}

template <class Function>
void survive(Function function) {
  try {
    function();
  } catch (const shmemctl::Error& error) {
    require(!error.message().empty() && error.message().find('\n') == std::string::npos);
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl;
  const std::string text(reinterpret_cast<const char*>(data), size);
  BringupVerdict verdict;
  verdict.n_pes = 2;
  survive([&] {
    verdict.transports = merge_reach({text, reach_message({})});
    verdict.unreachable = unreachable_pairs(verdict.transports, 2);
  });
  survive([&] {
    verdict.failures = merge_failures({text, failures_message({})});
    // What was understood is understood again.
    require(merge_failures({failures_message(verdict.failures), failures_message({})}).size() <=
            verdict.failures.size());
  });
  Placement placement;
  placement.n_pes = 2;
  placement.node = {0, 0};
  placement.node_pes = {{0, 1}};
  placement.hosts.resize(2);
  Report report;
  add_to_report(verdict, report);
  require(verdict.transports.empty() || !verdict_text(verdict, placement).empty());
  survive([&] { merge_phases({text, text}); });
  survive([&] {
    connections_for_people(
        merge_connections({text, connections_message(std::vector<ConnectionRow>())}));
  });
  survive([&] {
    for (const NetworkRow& row : merge_networks({text, networks_message({})}, {0, 1}, 2))
      require(row.pairs == 1 && !networks_text({row}, {"a"}, TextStyle{}).empty());
  });
  survive([&] { gpu_rows_text(merge_gpu_infos({text, text}, {{"a"}, {"b"}}).rows); });
  survive([&] {
    const WatchPart part = read_watch_text(text, "host");
    // What was understood is understood again, and can be judged.
    const std::size_t room = text.size() * 8 + 65536;
    const WatchPart again = read_watch_text(watch_text(part, room), "host");
    require(again.claims.size() == part.claims.size());
    require(again.totals.ports().size() == part.totals.ports().size());
    judge_watch({again}, {{"host", 0, {0}}},
                parse_nic_thresholds(nic_thresholds_text(), "built in"), true, true);
  });
  survive([&] {
    if (const auto fault = parse_fault(text))
      require(fault->pe >= 0 && !fault->phase.empty());
  });
  ProcessName process;
  if (parse_stat(text, process))
    require(process.pid > 0 && process.parent >= 0);
  return 0;
}
