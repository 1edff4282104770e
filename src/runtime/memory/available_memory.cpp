#include <algorithm>

#include "src/base/text.h"
#include "src/base/units.h"
#include "src/runtime/memory/available_memory.h"

namespace shmemctl {

namespace {

bool has_word(std::string_view comma_list, std::string_view word) {
  const std::vector<std::string> words = split(comma_list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::optional<std::uint64_t> natural(std::string_view text) {
  const auto value = parse_integer(trim(text));
  if (!value || *value < 0)
    return std::nullopt;
  return static_cast<std::uint64_t>(*value);
}

/// The size rounded down to whole MiB, so that messages contain no odd numbers of bytes.
std::string rough_size(std::uint64_t size_bytes) {
  return format_size_bytes(size_bytes >> 20 << 20);
}

} // namespace

std::optional<std::uint64_t> number_of(std::string_view text, std::string_view key) {
  for (const std::string& line : split(text, '\n')) {
    const std::vector<std::string> words = split_blanks(line);
    if (words.size() >= 2 && words[0] == key)
      return natural(words[1]);
  }
  return std::nullopt;
}

std::optional<std::string> cgroup_path(std::string_view text, std::string_view controller) {
  for (const std::string& line : split(text, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos)
      continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : has_word(controllers, controller))
      return line.substr(second + 1);
  }
  return std::nullopt;
}

std::optional<std::string> cgroup_mount(std::string_view mounts, std::string_view controller) {
  for (const std::string& line : split(mounts, '\n')) {
    const std::vector<std::string> words = split_blanks(line);
    if (words.size() < 4)
      continue;
    if (controller.empty() ? words[2] == "cgroup2"
                           : words[2] == "cgroup" && has_word(words[3], controller))
      return words[1];
  }
  return std::nullopt;
}

AvailableMemory::AvailableMemory(const Sysroot& sysroot) : sysroot_(sysroot) {
  const std::string mounts = sysroot_.read("/proc/mounts").value_or("");
  const std::string groups = sysroot_.read("/proc/self/cgroup").value_or("");
  for (const char* controller : {"", "memory"}) {
    const auto mount = cgroup_mount(mounts, controller);
    const auto path = cgroup_path(groups, controller);
    if (mount && path)
      add_groups(*mount, *path, *controller != '\0');
  }
}

/// Adds the group and all groups above it, each of which may have a limit.
void AvailableMemory::add_groups(const std::string& mount, const std::string& path,
                                 bool version_1) {
  std::string name = path == "/" ? "" : path;
  // In a container the mount's root may be the container's own group, although `path` is the name
  // on the host.
  if (!sysroot_.is_directory(mount + name))
    name.clear();
  while (true) {
    groups_.push_back({mount + name, name.empty() ? "/" : name, version_1});
    const std::size_t slash = name.rfind('/');
    if (slash == std::string::npos)
      return;
    name.resize(slash);
  }
}

std::optional<Room> AvailableMemory::room_of(const Group& group) const {
  const auto number = [&](const char* version_1, const char* version_2) {
    const auto text =
        sysroot_.read_line(group.folder + "/" + (group.version_1 ? version_1 : version_2));
    return text ? natural(*text) : std::nullopt;
  };
  // "max", or (cgroup version 1) a number near 2^63, means no limit.
  const auto limit = number("memory.limit_in_bytes", "memory.max");
  if (!limit || *limit > std::uint64_t{1} << 60)
    return std::nullopt;
  const auto used = number("memory.usage_in_bytes", "memory.current");
  if (!used)
    return std::nullopt;
  const std::string stat = sysroot_.read(group.folder + "/memory.stat").value_or("");
  const std::string total = group.version_1 ? "total_" : "";
  const std::uint64_t cache_bytes = number_of(stat, total + "active_file").value_or(0) +
                                    number_of(stat, total + "inactive_file").value_or(0);
  const std::uint64_t fixed_bytes = *used - std::min(*used, cache_bytes);
  return Room{*limit - std::min(*limit, fixed_bytes),
              "the control group " + group.name + " (limit " + rough_size(*limit) + ")"};
}

std::optional<Room> AvailableMemory::now() const {
  std::optional<Room> least;
  const auto meminfo = sysroot_.read("/proc/meminfo");
  const auto available_kB = meminfo ? number_of(*meminfo, "MemAvailable:") : std::nullopt;
  if (available_kB && *available_kB < std::uint64_t{1} << 50)
    least = Room{*available_kB * 1024, "this machine"};
  for (const Group& group : groups_) {
    std::optional<Room> room = room_of(group);
    if (room && (!least || room->free_bytes < least->free_bytes))
      least = std::move(room);
  }
  return least;
}

} // namespace shmemctl
