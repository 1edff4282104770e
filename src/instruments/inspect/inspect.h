// `inspect`: selects the processes, inspects them, and derives the findings about them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/base/finding.h"
#include "src/base/sysroot.h"
#include "src/instruments/inspect/activity.h"
#include "src/instruments/inspect/environment.h"
#include "src/instruments/inspect/gpu_use.h"
#include "src/instruments/inspect/network.h"
#include "src/instruments/inspect/paths.h"
#include "src/instruments/inspect/process.h"
#include "src/instruments/inspect/rdma_resources.h"
#include "src/instruments/inspect/rights.h"
#include "src/instruments/libraries/libraries.h"
#include "src/model/topo/node.h"

namespace shmemctl::inspect {

/// Which processes to inspect: those of `pids` or, if it is empty, those that have a communication
/// library mapped, of one user or of all users.
struct Selection {
  std::vector<int> pids;
  std::optional<unsigned> user;
  std::vector<int> but = {}; ///< PEs of the inspecting job, left out unless `pids` names them
};

struct Inspected {
  Process process;
  Libraries libraries;
  std::vector<Variable> variables;
  Activity activity;
  Rights rights;
  std::vector<std::string> rdma_devices; ///< opened, or with queue pairs
  std::optional<RdmaUse> rdma;           ///< empty if the kernel's list of resources is unknown
  std::vector<GpuUse> gpus;
  std::vector<ExpectedPorts> expected_ports; ///< ports that its libraries would choose
};

/// A process that was not inspected.
struct NotInspected {
  int pid = 0;
  std::string reason;
};

struct Inspection {
  std::vector<Inspected> processes;
  std::vector<NotInspected> missing;
  std::vector<Skipped> skipped; ///< what could not be read and concerns no single process
  std::vector<JobVerdict> jobs;
  std::vector<PortLoad> loads;     ///< without bytes if nothing was watched
  std::vector<NvlinkLoad> nvlinks; ///< empty if nothing was watched
  double window_s = 0;
  Findings findings;
};

/// Inspects processes, once or repeatedly; library files are read once.
class Inspector {
public:
  /// @param sysroot must outlive this object
  explicit Inspector(const Sysroot& sysroot);
  /// @param window_s how long counters are watched, in seconds; with 0 only CPU times are watched,
  /// for 0.2 s. Nothing is watched on a recorded tree.
  Inspection inspect(const Selection& selection, double window_s);
  std::size_t files_read() const { return libraries_.files_read(); }

private:
  std::vector<int> select(const Selection& selection, Inspection& to) const;
  /// The topology of the node. It is read at the first use, and again after its devices or ports
  /// have changed.
  const Node& node();

  const Sysroot& sysroot_;
  LibraryReader libraries_;
  GpuDriver gpu_driver_;
  std::optional<Node> node_;
  std::string node_state_; ///< state of its devices and ports when it was read
  std::map<std::string, std::string> own_namespaces_;
};

} // namespace shmemctl::inspect
