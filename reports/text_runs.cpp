// The runs of a merged report as text.
#include "reports/table.h"
#include "reports/text.h"
#include "src/base/text.h"

namespace shmemctl {

std::string runs_text(const std::vector<RunInfo>& runs, const TextStyle& style) {
  Table table({{"run", Align::right},
               {"hosts"},
               {"started"},
               {"status"},
               {"exit code", Align::right},
               {"PEs", Align::right},
               {"shmemctl"},
               {"command"}});
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunInfo& run = runs[i];
    table.add({std::to_string(i), safe_text(join(run.hosts, ", ")), safe_text(run.started_at),
               to_string(run.status), std::to_string(static_cast<int>(run.exit_code)),
               std::to_string(run.job.pes), safe_text(run.tool_version),
               safe_text(join(run.command, " "))});
  }
  return table.empty() ? "" : table.text(style);
}

} // namespace shmemctl
