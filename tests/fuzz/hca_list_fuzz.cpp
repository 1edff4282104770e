// Any bytes as NVSHMEM_HCA_LIST, NVSHMEM_HCA_PE_MAPPING and NVSHMEM_HCA_PREFIX. The first byte
// chooses release and transport.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/base/text.h"
#include "src/model/topo/mapping/nvshmem_devices.h"

namespace {

using namespace shmemctl;

void require(bool holds) {
  if (!holds)
    std::abort();
}

void check_list(const std::string& text, std::size_t capacity) {
  const HcaList list = parse_hca_list(text, capacity);
  require(list.entries.size() <= capacity);
  require(list.problems.size() <= 101);
  require(list.exclude == starts_with(text, "^"));
  for (const HcaListEntry& entry : list.entries) {
    require(!entry.name.empty() && entry.name.size() <= 64);
    require(entry.name.find_first_of(",:") == std::string::npos);
    require(entry.column >= 1 && entry.column <= text.size());
    require(text.compare(entry.column - 1, entry.text.size(), entry.text) == 0);
  }
  for (const HcaListProblem& problem : list.problems)
    require(problem.column >= 1 && problem.column <= text.size() + 1 && !problem.problem.empty());
}

const std::vector<HcaFacts>& devices() {
  static const std::vector<HcaFacts> fixed = {
      {"mlx5_0", {{1, true, LinkLayer::infiniband}}, true},
      {"mlx5_1", {{1, true, LinkLayer::ethernet}, {2, false, LinkLayer::infiniband}}, true},
      {"a", {{1, true, LinkLayer::infiniband}, {2, true, LinkLayer::other}}, false},
      {"mlx5_0", {{1, true, LinkLayer::infiniband}}, true}};
  return fixed;
}

void check_table(const NvshmemSettings& settings) {
  const DeviceTable table = build_device_table(devices(), settings);
  require(table.entries.size() <= 1024);
  for (const TableEntry& entry : table.entries)
    require(entry.device >= 0 && entry.device < static_cast<int>(devices().size()) &&
            entry.port >= 1 && entry.port <= 2);
  for (const TableExclusion& exclusion : table.exclusions)
    require(!exclusion.reason.empty());
  require(table.unmatched.size() <= table.list.entries.size());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0)
    return 0;
  const std::vector<NvshmemVersion> versions = representative_versions();
  NvshmemSettings settings;
  settings.version = versions[data[0] % versions.size()];
  settings.transport = static_cast<NvshmemTransport>(data[0] / 16 % 5);
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  check_list(text, 48);
  check_list(text, 2);

  settings.hca_list = text;
  check_table(settings);
  settings.hca_pe_mapping = text;
  check_table(settings);
  settings.hca_list.reset();
  settings.hca_prefix = text.substr(0, text.find(','));
  check_table(settings);
  return 0;
}
