// What carries a point's operations: transports and NICs, as they were used.
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

/// The pair of Traffic::pair where nobody names one: PE 0 and the first PE of another node, so that
/// a job of several nodes measures what joins them; PE 0 and PE 1 on a single node.
std::pair<int, int> default_pair(const Placement& placement);

/// What the name of a carrier begins with that is a registered buffer's path.
inline constexpr const char* registered_buffer_name = "registered buffer";
/// The carrier of copies between a GPU and its host's memory.
inline constexpr const char* copy_engine_name = "copy engine";
/// Whether that carrier moves no data through a NIC.
bool is_memory(const std::string& carrier);
/// "mlx5_0", "mlx5_0:2": the port's number where it is not 1.
std::string name_of(const HcaPort& nic);

/// What one PE used at a point.
struct PathUse {
  bool measures = false;
  std::vector<std::string> transports; ///< transports to the PEs that it sends to; sorted
  std::vector<PortUse> ports;          ///< ports that moved its data
  bool over_tcp = false;               ///< one of these transports runs over TCP
  TcpCounters tcp; ///< TCP counters of its network namespace, while samples were taken
  std::map<std::string, double> cores = {}; ///< core_shares() of its threads in that time
};
/// Without the hosts of the ports, which the receiver knows.
void serialize(Archive& archive, PathUse& use);

/// "shm", "libfabric"; for GPU memory "p2p", "ibgda", "proxy over ibrc". "" if nothing reaches the
/// PE.
std::string carrier_of(Runtime& runtime, const Launch& launch, int pe);

/// This PE's transports for a point; ports and counters are the caller's to fill in.
PathUse own_path(Runtime& runtime, const Point& point);
/// Collective: of every PE, by PE. Throws malformed_message().
std::vector<PathUse> gather_paths(Runtime& runtime, const PathUse& own);

/// The row's key "path". Ports count only of PEs that measure, and only where a network is one of
/// the transports: barriers between samples use NICs too.
RowPath row_path(const Point& point, const Placement& placement, const std::vector<PathUse>& uses);

/// Collective, before anything is measured: what will carry the data of the pair that the points
/// name, as the row's key "path" has it afterwards. NICs are those that the transport has on the PE
/// that issues; memory that is mapped (shm, p2p) has none. Nothing where no point is of a pair,
/// where they are of several ones, and for registered buffers, whose way each point finds for
/// itself.
/// @param points the same on all PEs
std::optional<RowPath> planned_path(Runtime& runtime, const std::vector<Point>& points);

/// What this PE's operations go by to each of the others, for connections_message(): one
/// way for each PE, that which is in use, and also that of kernels in a job with GPUs.
std::vector<ConnectionRow> connections_in_use(Runtime& runtime);

} // namespace shmemctl::bench
