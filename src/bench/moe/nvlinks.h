// What the NVLinks of a job's GPUs counted while a point of `moe` ran.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/topo/readers/nvml.h"

namespace shmemctl::moe {

/// Of one GPU, over all calls of a point.
struct NvlinkUse {
  std::string host, gpu;           ///< PCI address
  std::vector<std::int32_t> ranks; ///< on it
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
/// What an item of "nvlinks" and each of its links say of bytes, and back.
nlohmann::json traffic_json(const NvlinkTraffic& traffic);
NvlinkTraffic nvlink_traffic_from(const nlohmann::json& object);
/// "nvlinks" of a point of the report.
nlohmann::json nvlinks_json(const std::vector<NvlinkUse>& all);

} // namespace shmemctl::moe
