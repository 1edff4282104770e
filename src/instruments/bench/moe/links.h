// The links over which the rows of a point's tokens go, their bytes and limits. Those of GPU links
// are computed from the routing, with what NVLink counted beside them; those of NICs were counted
// by the transports.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reports/report.h"
#include "src/instruments/bench/bandwidth_limit.h"
#include "src/instruments/bench/moe/traffic.h"
#include "src/model/topo/readers/nvml.h"
#include "src/runtime/runtime.h"

namespace shmemctl::moe {

/// The NVLink traffic of one GPU in all calls of a point.
struct NvlinkUse {
  std::string host, gpu;           ///< gpu: PCI address
  std::vector<std::int32_t> ranks; ///< ranks that run on it
  NvlinkTraffic counted;
  std::uint64_t machine_id = 0; ///< distinguishes hosts, several of which may have the same name
};

/// Counts a GPU's NVLink traffic from construction to end(), including traffic of other programs.
class NvlinkWatch {
public:
  /// @param nvml_library as for Nvml::open
  /// @param gpu PCI address
  NvlinkWatch(const std::string& nvml_library, std::string gpu);
  NvlinkTraffic end() const;

private:
  NvlinkCounters read() const;

  std::string gpu_, why_not_;
  std::optional<Nvml> nvml_;
  NvlinkCounters before_;
};

/// Adds a PE's reading. If several PEs of a GPU have read its counters, the first reading is kept.
void add_nvlink_use(const NvlinkUse& use, std::vector<NvlinkUse>& all);

/// Sets `key`. If the count is unknown, the value is null, and "<key>_reason" says why.
void put_count(nlohmann::json& object, const std::string& key, const Fact<std::uint64_t>& count);
/// The value of "nvlinks" for a point of the report.
nlohmann::json nvlinks_json(const std::vector<NvlinkUse>& all);

/// A GPU's links to all other GPUs of the job, and the ranks that run on it.
struct GpuLinks {
  std::vector<std::int32_t> ranks;
  std::string gpu;        ///< PCI address
  bench::LinkLimit limit; ///< in each direction
  /// Where `limit` comes from: "by the model", or "measured (...)" with conditions.
  std::string basis;
  std::optional<double> model_GBps;              ///< limit by the node model, if the model knows it
  std::optional<double> stores_GBps, loads_GBps; ///< measured
};

/// A port with the bytes that this run's transports moved through it in all calls of a point.
struct NicUse {
  std::string host, device;
  int port = 0;
  std::uint64_t moved_bytes = 0;
  /// Distinguishes hosts, several of which may have the same name.
  std::uint64_t machine_id = 0;
  std::vector<std::int32_t> ranks = {}; ///< ranks whose bytes these are
};
/// Adds a port. If PEs of one machine share it, their bytes are summed in one entry.
void add_use(const NicUse& use, std::vector<NicUse>& all);

struct Links {
  std::vector<GpuLinks> gpus; ///< empty: rows do not use GPU links, or the links are not known
  std::string unmeasured;     ///< why limits of `gpus` come from the model; "" if they do not
  std::vector<NicUse> nics;
  std::vector<NvlinkUse> nvlinks;        ///< NVLinks of the job's GPUs; empty for the host backend
  std::optional<bench::LinkLimit> ports; ///< limit of all `nics` together
  std::vector<std::uint64_t> machine_of; ///< by rank
  std::vector<std::string> transports;   ///< transports that carry rows between ranks; sorted
};
/// The transports and NICs that carried rows, for the key "path" of the report's rows.
RowPath path_of(const Links& links);

/// The links of each GPU. Limits are the measured ones, if there are any; otherwise those of the
/// node model. Empty unless the ranks' GPUs are two or more of one machine; also if nothing was
/// measured and the model lacks one (as for more than two GPUs without a switch).
std::vector<GpuLinks> gpu_links(const Node& node, const std::vector<bench::GpuOfPe>& by_rank,
                                const bench::LinkMeasurement& measured = {});

/// Bytes over a GPU's links, out and in.
struct LinkBytes {
  std::uint64_t out = 0, in = 0;
};
LinkBytes bytes_over(const GpuLinks& links, const Traffic& traffic);

/// The share of its limit that the busiest link, or all ports together, reached in a call of that
/// length. Nothing if no limit is known, or if nothing goes over the links.
struct LinkShare {
  double fraction = 0;
  std::string limited_by;
};
std::optional<LinkShare> share_of(const Links& links, const Traffic& traffic, double call_us);

/// The values of "links" and "nics" for a point of the report.
/// @param calls the calls that the point made, to compare what all of them moved with the counters
nlohmann::json links_json(const Links& links, const Traffic& dispatch, const Traffic& combine,
                          const std::optional<CallCount>& calls);
nlohmann::json nics_json(const Links& links);
/// The links as text for people; "" if nothing is known.
std::string links_text(const Links& links, const Traffic& dispatch, const Traffic& combine,
                       const std::optional<CallCount>& calls);

/// Whether kernels' rows go from GPU to GPU by loads and stores. They do not if the heap is in host
/// memory, or if a PE's memory is not mapped.
bool rows_stay_on_gpu_links(Runtime& runtime);

/// Records from construction to end() what the transports move and what NVLinks count. Each PE
/// reads the counters of its own GPU, both times outside of calls: a barrier must follow the
/// constructor, and another one must precede end().
class LinkWatch {
public:
  /// @param by_kernels whether kernels move the rows
  /// @param measured measured links between the job's GPUs (once in a run); must outlive this
  /// object
  /// @param nvml_library as for Nvml::open
  LinkWatch(Runtime& runtime, bool by_kernels, const bench::LinkMeasurement& measured,
            const std::string& nvml_library);
  /// Collective. The same on all PEs of a machine.
  Links end();

private:
  Runtime& runtime_;
  bool by_kernels_, on_gpu_links_;
  const bench::LinkMeasurement& measured_;
  std::vector<NicTraffic> before_;
  std::optional<NvlinkWatch> nvlinks_;
};

} // namespace shmemctl::moe
