#include "src/topo/mapping/compare_versions.h"

#include <algorithm>

#include "src/topo/mapping/nvshmem_mapping.h"
#include "src/topo/mapping/nvshmem_versions.h"

namespace shmemctl {

namespace {

bool same_answer(const PeMapping& left, const PeMapping& right) {
  return left.nics == right.nics && left.used == right.used;
}

bool same_answers(const std::vector<PeMapping>& left, const std::vector<PeMapping>& right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(), same_answer);
}

} // namespace

std::vector<NvshmemVersion> compared_versions(const NvshmemSettings& settings) {
  std::vector<NvshmemVersion> versions = representative_versions();
  versions.push_back({2, 8, 0});  // before HCA_PE_MAPPING is ignored
  versions.push_back({3, 2, 5});  // before HCA_LIST holds 48 entries
  versions.push_back({3, 3, 20}); // before HCA_PREFIX and data-direct paths
  versions.push_back({3, 5, 1});  // before HCA_PREFIX means "^smi"
  versions.push_back(settings.version);
  std::sort(versions.begin(), versions.end());
  versions.erase(std::unique(versions.begin(), versions.end()), versions.end());
  std::erase_if(versions, [&settings](const NvshmemVersion& version) {
    return !has_transport(version, settings.transport);
  });
  return versions;
}

std::vector<VersionDifference> compare_versions(const Node& node, const MappingRequest& request) {
  std::vector<VersionDifference> differences;
  for (const NvshmemVersion& version :
       compared_versions(settings_in(request.world, request.nvshmem))) {
    MappingRequest asked = request;
    asked.policy = Policy::nvshmem;
    asked.nvshmem.version = version;
    std::vector<PeMapping> pes = map_nics(node, asked).pes;
    const auto same = std::find_if(
        differences.begin(), differences.end(),
        [&pes](const VersionDifference& known) { return same_answers(known.pes, pes); });
    if (same != differences.end())
      same->versions.push_back(version);
    else
      differences.push_back({{version}, std::move(pes)});
  }
  return differences;
}

} // namespace shmemctl
