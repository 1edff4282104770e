// Gathers the counters of a job's machines on PE 0: the format of the messages, and the collective
// calls that exchange them.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/instruments/hotspots/hotspots.h"
#include "src/runtime/bootstrap/bootstrap.h"

namespace shmemctl {

/// Maximum length of one PE's message: PE 0 may get that many bytes from every PE, so it is 16 MiB
/// divided by the number of PEs, clamped to 4 KiB ... 1 MiB.
std::size_t max_part_bytes(int n_pes);
/// JSON text of `object` with "totals" added; omits counters to stay within about `max_bytes`.
std::string with_totals(nlohmann::json object, const NodeTotals& totals, std::size_t max_bytes);
/// The Error for a message of a PE of that host that cannot be parsed.
Error bad_part(const std::string& host);

/// Where a PE runs, as a message, and parsed from one.
std::string machine_text(const PeMachine& machine);
std::vector<PeMachine> machines_from(const std::vector<std::string>& texts);

/// What the leader of one machine reports.
struct HostPart {
  const NodeTotals* totals = nullptr;
  std::vector<PortUser> users; ///< users of its ports
};
/// At most about `max_bytes`: the least informative counters are omitted first.
std::string host_part_text(const HostPart& part, std::size_t max_bytes);

/// The reports of all machines, on PE 0.
struct GatheredHosts {
  std::vector<HostTotals> hosts;
  std::vector<PortUser> users;
};
/// Adds host_part_text() of the leader of `host`. Throws Error (unavailable) for a message that
/// cannot be parsed.
void read_host_part(const std::string& text, const std::string& host, GatheredHosts& all);

class JobGathering {
public:
  /// Collective: determines which PEs share a machine. The bootstrap must outlive this object.
  /// Throws Error.
  JobGathering(Bootstrap& bootstrap, const PeMachine& machine, const Deadline& deadline);

  const std::vector<JobHost>& hosts() const { return hosts_; }
  const JobHost& my_host() const { return hosts_[my_host_]; }
  bool leads() const { return my_host().leader == bootstrap_.rank(); }
  /// Collective: the parts of all leaders on PE 0, empty on the other PEs. @param part the part of
  /// a leader
  GatheredHosts gather(const HostPart& part, const Deadline& deadline);
  /// Collective: returns the code of PE 0 on every PE.
  ExitCode agree(ExitCode code, const Deadline& deadline);

private:
  Bootstrap& bootstrap_;
  std::vector<JobHost> hosts_;
  std::size_t my_host_ = 0;
};

} // namespace shmemctl
