#include "src/instruments/bench/thread_times.h"

#include "src/base/text.h"
#include "src/instruments/bench/interference.h"

namespace shmemctl::bench {

namespace {

/// Whether a thread with that name moves data for PEs; all others (watchdog, bootstrap, progress
/// line and so on) are left out.
bool serves(const std::string& name) {
  for (const char* known : {"proxy", "libfabric", "ucx", "ibrc", "staged", "emulated-mlx5"})
    if (starts_with(name, known))
      return true;
  return false;
}

} // namespace

std::map<std::string, std::uint64_t> thread_run_ns(const Sysroot& sysroot) {
  std::map<std::string, std::uint64_t> times;
  if (const auto text = sysroot.read("/proc/thread-self/schedstat"))
    if (const auto own = parse_schedstat(*text))
      times[measuring_thread] = own->run_ns;
  for (const std::string& thread : sysroot.list("/proc/self/task")) {
    const std::string folder = "/proc/self/task/" + thread;
    const auto name = sysroot.read_line(folder + "/comm");
    if (!name || !serves(*name))
      continue;
    const auto text = sysroot.read(folder + "/schedstat");
    if (const auto of_thread = text ? parse_schedstat(*text) : std::nullopt)
      times[*name] += of_thread->run_ns;
  }
  return times;
}

std::map<std::string, double> core_shares(const std::map<std::string, std::uint64_t>& before,
                                          const std::map<std::string, std::uint64_t>& after,
                                          double wall_s) {
  std::map<std::string, double> shares;
  if (!(wall_s > 0))
    return shares;
  for (const auto& [name, time_ns] : after) {
    const auto earlier = before.find(name);
    const std::uint64_t begin_ns = earlier == before.end() ? 0 : earlier->second;
    if (time_ns >= begin_ns)
      shares[name] = static_cast<double>(time_ns - begin_ns) * 1e-9 / wall_s;
  }
  return shares;
}

} // namespace shmemctl::bench
