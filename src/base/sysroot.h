// Reads the files of a machine: the live one, somebody's copy of /sys and /proc under a folder, or
// an archive of `shmemctl gather`.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/file_descriptor.h"
#include "src/base/file_tree.h"

namespace shmemctl {

/// What a file held, or why it could not be read.
struct FileContent {
  std::string bytes;
  int error_number = 0; ///< errno: ENOENT, EACCES, ESRCH of a process that has ended
};

/// The file system below one root. Every path is absolute as on that machine ("/sys/class/net");
/// symbolic links, absolute or relative, are resolved inside the root and can never leave it.
/// Nothing here throws for a missing file.
class Sysroot {
public:
  /// The live machine.
  Sysroot() : Sysroot("/") {}
  /// @param root an existing folder, or an archive (read_archive()), which stays in memory: nothing
  /// of it is written to a disk. Throws Error (usage) if it is neither.
  explicit Sysroot(const std::string& root);
  /// @param name what the tree was read from: "node.tar.zst"
  Sysroot(std::shared_ptr<const FileTree> tree, std::string name);

  /// True if this is "/": only then may libraries, system calls and devices be used as well.
  bool live() const { return tree_ == nullptr && root_ == "/"; }
  /// The folder, or the archive's name.
  const std::string& root() const { return root_; }

  /// First `max_bytes` of a file; empty if it cannot be read. A sysfs file may exist and refuse to
  /// be read (EINVAL, EOPNOTSUPP); that is empty, too.
  std::optional<std::string> read(const std::string& path, std::size_t max_bytes = 1 << 20) const;
  /// As read(), with the reason if it cannot be read.
  FileContent read_or_reason(const std::string& path, std::size_t max_bytes = 1 << 20) const;
  /// A regular file for reading; none, and the errno, if it cannot be opened.
  FileDescriptor open(const std::string& path, int& error_number) const;
  /// The text of a symbolic link, as it is written there and not resolved: "socket:[4711]" of a
  /// process's descriptor. Empty if it is not a link or cannot be read; then errno tells why.
  std::optional<std::string> read_link(const std::string& path) const;
  /// As read(), with white space trimmed at both ends.
  std::optional<std::string> read_line(const std::string& path) const;
  std::optional<long long> read_integer(const std::string& path, int base = 10) const;

  bool exists(const std::string& path) const;
  bool is_directory(const std::string& path) const;
  /// Names in a folder, naturally sorted (mlx5_2 before mlx5_10); empty if there is none.
  std::vector<std::string> list(const std::string& path) const;
  /// The path with every link resolved, as on that machine ("/sys/devices/..."); empty if it does
  /// not exist or links form a cycle.
  std::optional<std::string> realpath(const std::string& path) const;

private:
  std::string host_path(const std::string& path) const;
  std::optional<std::string> resolved_host_path(const std::string& path) const;
  /// In the tree, with links resolved; null if there is none.
  const FileEntry* resolved_entry(const std::string& path) const;
  std::string root_; ///< "/" or an absolute path without a trailing slash; an archive's name
  std::shared_ptr<const FileTree> tree_; ///< files of an archive; null for a folder
};

} // namespace shmemctl
