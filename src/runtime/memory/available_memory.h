// How much memory can be allocated before the kernel's OOM killer acts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/sysroot.h"

namespace shmemctl {

/// The free memory, and what limits it: "this machine" or "the control group /x (limit 2G)".
struct Room {
  std::uint64_t free_bytes = 0;
  std::string limited_by;
};

/// Reads MemAvailable, and the memory limit of each control group (version 1 or 2) that this
/// process is in. File cache counts as free; swap does not, since a heap that is swapped out is of
/// no use.
class AvailableMemory {
public:
  explicit AvailableMemory(const Sysroot& sysroot = Sysroot());
  /// The tightest limit; nothing if none can be read.
  std::optional<Room> now() const;

private:
  struct Group {
    std::string folder; ///< "/sys/fs/cgroup/memory/job"
    std::string name;   ///< "/job"
    bool version_1 = false;
  };
  std::optional<Room> room_of(const Group& group) const;
  void add_groups(const std::string& mount, const std::string& path, bool version_1);

  Sysroot sysroot_;
  std::vector<Group> groups_;
};

/// The number after `key` at the start of a line ("MemAvailable:", "active_file"), in the file's
/// own unit; nothing if there is none. Accepts any bytes.
std::optional<std::uint64_t> number_of(std::string_view text, std::string_view key);

/// The path of the controller in /proc/self/cgroup; "" selects the line of version 2, "0::/path".
std::optional<std::string> cgroup_path(std::string_view text, std::string_view controller);

/// The mount point of a cgroup file system in /proc/mounts: for controller "" of type "cgroup2",
/// otherwise of type "cgroup" with the controller among its options.
std::optional<std::string> cgroup_mount(std::string_view mounts, std::string_view controller);

} // namespace shmemctl
