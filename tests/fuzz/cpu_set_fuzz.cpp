// The notations of CPU sets: any bytes give a set of ranges apart that each notation gives again,
// or nothing.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/model/topo/cpus.h"

namespace {

using namespace shmemctl;

void require(bool holds) {
  if (!holds)
    std::abort();
}

void check(const std::optional<CpuSet>& read) {
  if (!read)
    return;
  const CpuSet& cpus = *read;
  const std::vector<CpuSet::Range>& ranges = cpus.ranges();
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    require(0 <= ranges[i].first && ranges[i].first <= ranges[i].last && ranges[i].last < max_cpus);
    require(i == 0 || ranges[i - 1].last + 1 < ranges[i].first);
  }
  require(parse_cpulist(format_cpulist(cpus)) == cpus);
  require(parse_cpumap(format_cpumap(cpus)) == cpus);
  require(parse_hwloc_bitmap(format_hwloc_bitmap(cpus)) == cpus);
  CpuSet all;
  all.add(0, max_cpus - 1);
  require(intersection(cpus, cpus) == cpus && intersection(cpus, all) == cpus);
  for (const int cpu : cpus.cpus())
    require(cpus.contains(cpu));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check(parse_cpulist(text));
  check(parse_cpumap(text));
  check(parse_hwloc_bitmap(text));
  return 0;
}
