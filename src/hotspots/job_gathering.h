// The machines of a job that only watches: no runtime, the bootstrap alone.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/bootstrap/bootstrap.h"
#include "src/hotspots/job.h"

namespace shmemctl {

/// What the leader of one machine says.
struct HostPart {
  const NodeTotals* totals = nullptr;
  std::vector<PortUser> users; ///< of its ports
};
/// At most about `most_bytes`: counters that tell least are left out first.
std::string host_part_text(const HostPart& part, std::size_t most_bytes);

/// What all machines say, on PE 0.
struct GatheredHosts {
  std::vector<HostTotals> hosts;
  std::vector<PortUser> users;
};
/// Adds host_part_text() of the leader of `host`. Throws Error (unavailable) for a text that is
/// none.
void read_host_part(const std::string& text, const std::string& host, GatheredHosts& all);

class JobGathering {
public:
  /// Collective: who shares a machine. The bootstrap must outlive this object. Throws Error.
  JobGathering(Bootstrap& bootstrap, const PeMachine& mine, const Deadline& deadline);

  const std::vector<JobHost>& hosts() const { return hosts_; }
  const JobHost& my_host() const { return hosts_[my_host_]; }
  bool leads() const { return my_host().leader == bootstrap_.rank(); }
  /// Collective: what all leaders have; nothing but on PE 0. @param mine of leaders
  GatheredHosts gather(const HostPart& mine, const Deadline& deadline);
  /// Collective: one JSON value of each leader, on every PE; the others' count for nothing.
  std::vector<nlohmann::json> gather_values(const nlohmann::json& mine, const Deadline& deadline);
  /// Collective: PE 0's, on every PE.
  ExitCode agree(ExitCode code, const Deadline& deadline);

private:
  Bootstrap& bootstrap_;
  std::vector<JobHost> hosts_;
  std::size_t my_host_ = 0;
};

} // namespace shmemctl
