// What carries a point's operations: the transports and NICs that were used.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/report.h"
#include "src/instruments/bench/bandwidth_limit.h"
#include "src/instruments/bench/case.h"
#include "src/instruments/bench/tcp_counters.h"

namespace shmemctl::bench {

/// The default PEs of Traffic::pair: PE 0 and the first PE of another node, so that a job of
/// several nodes measures the network between them; PE 0 and PE 1 on a single node.
std::pair<int, int> default_pair(const Placement& placement);

/// The names of carriers that are paths of a registered buffer begin with this text.
inline constexpr const char* registered_buffer_name = "registered buffer";
/// The carrier of copies between a GPU and its host's memory.
inline constexpr const char* copy_engine_name = "copy engine";
/// Whether data that this carrier moves goes through no NIC.
bool is_memory(const std::string& carrier);
/// "mlx5_0", "mlx5_0:2": the port's number is omitted if it is 1.
std::string name_of(const HcaPort& nic);

/// What one PE used at a point.
struct PathUse {
  bool measures = false;
  std::vector<std::string> transports; ///< transports to the PEs that it sends to; sorted
  std::vector<PortUse> ports;          ///< ports that moved its data
  bool over_tcp = false;               ///< whether one of these transports runs over TCP
  TcpCounters tcp; ///< TCP counters of its network namespace, over the time of the samples
  std::map<std::string, double> cores = {}; ///< core_shares() of its threads over that time
};
/// Serializes everything but the hosts of the ports, which the receiver knows.
void serialize(Archive& archive, PathUse& use);

/// What carries operations to a PE: "shm", "libfabric"; for GPU memory "p2p", "ibgda", "proxy over
/// ibrc". "" if nothing reaches the PE.
std::string carrier_of(Runtime& runtime, const Launch& launch, int pe);

/// This PE's transports for a point. The caller fills in the ports and counters.
PathUse own_path(Runtime& runtime, const Point& point);
/// Collective: the paths of all PEs, by PE. Throws malformed_message().
std::vector<PathUse> gather_paths(Runtime& runtime, const PathUse& own);

/// The row's key "path". Only ports of PEs that measure count, and only if one of the transports is
/// a network, because barriers between samples use NICs too.
RowPath row_path(const Point& point, const Placement& placement, const std::vector<PathUse>& uses);

/// Collective, before the measurement: the expected path of the pair that the points name, in the
/// form of the row's key "path". NICs are those that the transport uses on the PEs that issue
/// operations; mapped memory (shm, p2p) has none. Nothing if no point is of a pair, if the points
/// are of several pairs, or if buffers are registered, because each point then finds its own path.
/// @param points the same on all PEs
std::optional<RowPath> planned_path(Runtime& runtime, const std::vector<Point>& points);

/// How this PE's operations reach each other PE, for connections_message(): the transport that is
/// in use for it and, in a job with GPUs, also the path of kernels.
std::vector<ConnectionRow> connections_in_use(Runtime& runtime);

} // namespace shmemctl::bench
