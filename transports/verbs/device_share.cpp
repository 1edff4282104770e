#include "transports/verbs/device_share.h"

#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl::verbs {

namespace {

constexpr std::size_t max_words_bytes = 200;

/// The device's line in a file rdma.max or rdma.current, without its name: "hca_handle=2
/// hca_object=20".
std::optional<std::string> line_of(const Sysroot& sysroot, const std::string& path,
                                   const std::string& device) {
  const std::optional<std::string> text = sysroot.read(path);
  if (!text)
    return std::nullopt;
  for (const std::string& line : split(*text, '\n'))
    if (starts_with(line, device + " "))
      return printable(std::string(trim(line.substr(device.size()))), max_words_bytes);
  return std::nullopt;
}

bool limits(const std::string& line) {
  for (const std::string& word : split(line, ' ')) {
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos && word.substr(equals + 1) != "max")
      return true;
  }
  return false;
}

/// Folders of this process's cgroups that may contain rdma.max, innermost first.
std::vector<std::string> cgroup_folders(const Sysroot& sysroot) {
  std::vector<std::string> folders;
  for (const std::string& line : split(sysroot.read("/proc/self/cgroup").value_or(""), '\n')) {
    const std::vector<std::string> fields = split(line, ':');
    if (fields.size() < 3 || (!fields[1].empty() && fields[1] != "rdma"))
      continue;
    const std::string root = fields[1].empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/rdma";
    std::string path = line.substr(fields[0].size() + fields[1].size() + 2);
    while (path.size() > 1) {
      folders.push_back(root + path);
      path.resize(path.rfind('/'));
    }
    folders.push_back(root); // a container sees its own cgroup as the root
  }
  return folders;
}

} // namespace

std::string cgroup_share(const std::string& device, const Sysroot& sysroot) {
  for (const std::string& folder : cgroup_folders(sysroot)) {
    const auto most = line_of(sysroot, folder + "/rdma.max", device);
    if (!most || !limits(*most))
      continue;
    const auto in_use = line_of(sysroot, folder + "/rdma.current", device);
    return "rdma.max of " + folder + " allows " + *most +
           (in_use ? ", in use are " + *in_use : std::string());
  }
  return {};
}

Refusal refusal(const std::string& device, int error_number, const std::string& usual_fix,
                const Sysroot& sysroot) {
  Refusal refused{std::strerror(error_number), usual_fix};
  if (error_number == EAGAIN) {
    if (const std::string share = cgroup_share(device, sysroot); !share.empty())
      return {refused.message + ": " + share,
              "end the processes that hold the device (rdma resource show), raise rdma.max, or ask "
              "the administrator of the job scheduler for a higher limit"};
  }
  if (error_number == ENOMEM || error_number == ENOSPC)
    refused.fix += "; rdma resource show lists what other processes hold of the device";
  return refused;
}

} // namespace shmemctl::verbs
