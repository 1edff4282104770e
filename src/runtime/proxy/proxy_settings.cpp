#include "src/runtime/proxy/proxy_settings.h"

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl {

CpuSet proxy_cpus(const Options& options) {
  const std::string text = options.text("PROXY_CPUS");
  const auto cpus = parse_cpulist(text);
  if (!cpus)
    throw Error(ExitCode::usage, "PROXY_CPUS=" + printable(text), "",
                "not a CPU list such as 2,4-7", "name CPUs that this process may use");
  return *cpus;
}

ProxyOptions proxy_options(const Options& options, const Placement& placement,
                           const CpuSet& cpus_at_start, double timeout_s) {
  ProxyOptions made;
  made.timeout_s = timeout_s;
  made.threads = static_cast<unsigned>(options.integer("PROXY_THREADS"));
  for (std::size_t pe = 0; pe < placement.node.size(); ++pe) {
    const int turn = placement.node[pe] + placement.local_pe[pe];
    made.ring_of_pe.push_back(
        static_cast<std::uint8_t>(static_cast<unsigned>(turn) % made.threads));
  }
  const CpuSet named = proxy_cpus(options);
  const std::vector<int> cpus = named.cpus();
  for (unsigned thread = 0; thread < made.threads; ++thread)
    made.cpus.push_back(named.empty()                ? cpus_at_start
                        : cpus.size() < made.threads ? named
                                                     : CpuSet{cpus[thread]});
  return made;
}

} // namespace shmemctl
