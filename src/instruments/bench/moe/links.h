// The links that a point's rows go over, what they carry, and what they could: of GPUs from the
// routing and by NVLink's own counters, of NICs as the transports count it.
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
  std::string host, gpu;           ///< PCI address
  std::vector<std::int32_t> ranks; ///< ranks that run on it
  NvlinkTraffic counted;
  std::uint64_t machine_id = 0; ///< what tells hosts apart: names may be alike
};

/// The counters of one GPU from its making to end(). What other programs move is in them too.
class NvlinkWatch {
public:
  /// @param nvml_library as for Nvml::open @param gpu PCI address
  NvlinkWatch(const std::string& nvml_library, std::string gpu);
  NvlinkTraffic end() const;

private:
  NvlinkCounters read() const;

  std::string gpu_, why_not_;
  std::optional<Nvml> nvml_;
  NvlinkCounters before_;
};

/// Each PE of a GPU has read its counters; the first one's are taken.
void add_nvlink_use(const NvlinkUse& use, std::vector<NvlinkUse>& all);

/// Sets `key`; null, with the reason in "<key>_reason", where the count is not known.
void put_count(nlohmann::json& object, const std::string& key, const Fact<std::uint64_t>& count);
/// "nvlinks" of a point of the report.
nlohmann::json nvlinks_json(const std::vector<NvlinkUse>& all);

/// A GPU's links to all the others of the job, and the ranks on it.
struct GpuLinks {
  std::vector<std::int32_t> ranks;
  std::string gpu;        ///< PCI address
  bench::LinkLimit limit; ///< in each direction
  std::string basis; ///< where `limit` comes from: "by the model", or "measured (...)" with how
  std::optional<double> model_GBps; ///< limit by the node model, where the model knows it
  std::optional<double> stores_GBps, loads_GBps; ///< measured
};

/// A port that this run's transports say they moved bytes with, over all calls of a point.
struct NicUse {
  std::string host, device;
  int port = 0;
  std::uint64_t moved_bytes = 0;
  std::uint64_t machine_id = 0;         ///< what tells hosts apart: names may be alike
  std::vector<std::int32_t> ranks = {}; ///< ranks that moved the bytes
};
/// PEs of one machine may share a port: then their bytes are one entry.
void add_use(const NicUse& use, std::vector<NicUse>& all);

struct Links {
  std::vector<GpuLinks> gpus; ///< empty: rows do not use links of GPUs, or the links are not known
  std::string unmeasured;     ///< why limits of `gpus` come from the model; "": they do not
  std::vector<NicUse> nics;
  std::vector<NvlinkUse> nvlinks; ///< NVLinks of all GPUs of the job; empty: kernels move nothing
  std::optional<bench::LinkLimit> ports; ///< limit of all `nics` together
  std::vector<std::uint64_t> machine_of; ///< by rank
  std::vector<std::string> transports;   ///< transports that carry rows between ranks; sorted
};
/// What carried the rows, for the key "path" of the report's rows.
RowPath path_of(const Links& links);

/// By GPU. Limits are what was measured; else the node model's, where it knows all of them: empty
/// where it does not, or where they are linked one to one and are more than two.
std::vector<GpuLinks> gpu_links(const Node& node, const std::vector<bench::GpuOfPe>& by_rank,
                                const bench::LinkMeasurement& measured = {});

/// Bytes over a GPU's links, out and in.
struct LinkBytes {
  std::uint64_t out = 0, in = 0;
};
LinkBytes bytes_over(const GpuLinks& links, const Traffic& traffic);

/// Share of its limit that the busiest link, or all ports together, had in a call of that length;
/// nothing where no limit is known or nothing goes over it.
struct LinkShare {
  double fraction = 0;
  std::string limited_by;
};
std::optional<LinkShare> share_of(const Links& links, const Traffic& traffic, double call_us);

/// "links" and "nics" of a point of the report.
/// @param calls that the point made, for what all of them moved besides what was counted
nlohmann::json links_json(const Links& links, const Traffic& dispatch, const Traffic& combine,
                          const std::optional<CallCount>& calls);
nlohmann::json nics_json(const Links& links);
/// The links as text for people; "" where nothing is known.
std::string links_text(const Links& links, const Traffic& dispatch, const Traffic& combine,
                       const std::optional<CallCount>& calls);

/// Whether rows of kernels go from GPU to GPU by loads and stores: not with a heap in host memory,
/// nor where a PE is reached by a network.
bool rows_stay_on_gpu_links(Runtime& runtime);

/// From its making to end(): what the transports move, and what NVLinks count. Each PE reads its
/// own GPU's counters, both outside of calls: a barrier follows the constructor, and another one
/// precedes end().
class LinkWatch {
public:
  /// @param by_kernels   who moves the rows
  /// @param measured     once in a run, of the links between the job's GPUs; outlives this
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
