#include "src/instruments/inspect/rights.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "src/base/text.h"

namespace shmemctl::inspect {

namespace {

std::string field(const Process& process, const char* name) {
  const auto found = process.status.find(name);
  return found == process.status.end() ? std::string() : found->second;
}

std::string locked_memory(const std::string& limits) {
  constexpr std::string_view name = "Max locked memory";
  for (const std::string& line : split(limits, '\n'))
    if (starts_with(line, name)) {
      const std::vector<std::string> words =
          split_blanks(std::string_view(line).substr(name.size()));
      return words.empty() ? std::string() : words.front();
    }
  return {};
}

} // namespace

Rights rights_of(const Process& process, const std::map<std::string, std::string>& own) {
  Rights rights;
  const std::string mode = field(process, "Seccomp");
  rights.seccomp = mode == "0" ? "off" : mode == "1" ? "strict" : mode == "2" ? "filter" : "";
  if (const std::string flag = field(process, "NoNewPrivs"); flag == "0" || flag == "1")
    rights.no_new_privileges = flag == "1";
  rights.effective_capabilities = field(process, "CapEff");
  for (const auto& [kind, name] : process.namespaces) {
    const auto ours = own.find(kind);
    if (ours != own.end() && ours->second != name)
      rights.other_namespaces.push_back(kind);
  }
  rights.locked_memory = locked_memory(process.limits);
  std::set<std::string> devices;
  for (const OpenFile& file : process.devices) {
    constexpr std::string_view channels = "/dev/nvidia-caps-imex-channels/";
    if (!devices.insert(file.target).second)
      continue;
    if (starts_with(file.target, channels))
      rights.imex_channels.push_back(file.target.substr(channels.size()));
    else
      rights.devices.push_back(file.target);
  }
  std::sort(rights.devices.begin(), rights.devices.end(), natural_less);
  std::sort(rights.imex_channels.begin(), rights.imex_channels.end(), natural_less);
  return rights;
}

std::map<std::string, std::string> own_namespaces(const Sysroot& sysroot) {
  std::map<std::string, std::string> namespaces;
  if (sysroot.live())
    for (const char* kind : {"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"})
      if (const auto name = sysroot.read_link(std::string("/proc/self/ns/") + kind))
        namespaces[kind] = *name;
  return namespaces;
}

} // namespace shmemctl::inspect
