// Reads the files of a machine: the live one, a copy of /sys and /proc in a folder, or an archive
// of `shmemctl gather`.
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

/// The content of a file, or the reason why it could not be read.
struct FileContent {
  std::string bytes;
  int error_number = 0; ///< 0 if it was read; else errno: EACCES; ESRCH: its process has ended
};

/// The file system below one root. Every path is absolute as on that machine ("/sys/class/net");
/// symbolic links, absolute or relative, are resolved inside the root and can never leave it.
/// Nothing here throws for a missing file.
class Sysroot {
public:
  /// The live machine.
  Sysroot() : Sysroot("/") {}
  /// @param root an existing folder, or an archive (read_archive()), which is kept in memory and
  /// never written to disk. Throws Error (usage) if it is neither.
  explicit Sysroot(const std::string& root);
  /// @param name the file from which the tree was read: "node.tar.zst"
  Sysroot(std::shared_ptr<const FileTree> tree, std::string name);

  /// True if this is "/": only then may libraries, system calls and devices be used as well.
  bool live() const { return tree_ == nullptr && root_ == "/"; }
  /// The folder, or the archive's name.
  const std::string& root() const { return root_; }

  /// The first `max_bytes` of a file; nullopt if it cannot be read. A sysfs file may exist but
  /// refuse to be read (EINVAL, EOPNOTSUPP); the result is then nullopt, too.
  std::optional<std::string> read(const std::string& path, std::size_t max_bytes = 1 << 20) const;
  /// Like read(), with the reason if the file cannot be read.
  FileContent read_or_reason(const std::string& path, std::size_t max_bytes = 1 << 20) const;
  /// Opens a regular file for reading; if it cannot be opened, returns none and sets `error_number`
  /// to the errno.
  FileDescriptor open(const std::string& path, int& error_number) const;
  /// The unresolved target of a symbolic link: "socket:[4711]" for a process's descriptor. Empty if
  /// the path is not a link or cannot be read; then errno tells why.
  std::optional<std::string> read_link(const std::string& path) const;
  /// Like read(), with white space trimmed at both ends.
  std::optional<std::string> read_line(const std::string& path) const;
  std::optional<long long> read_integer(const std::string& path, int base = 10) const;

  bool exists(const std::string& path) const;
  bool is_directory(const std::string& path) const;
  /// The names in a folder in natural order (mlx5_2 before mlx5_10); empty if there is no such
  /// folder, or it cannot be read.
  std::vector<std::string> list(const std::string& path) const;
  /// The path with every link resolved, as on that machine ("/sys/devices/..."); empty if it does
  /// not exist or links form a cycle.
  std::optional<std::string> realpath(const std::string& path) const;

private:
  std::string host_path(const std::string& path) const;
  std::optional<std::string> resolved_host_path(const std::string& path) const;
  /// The entry in the tree, with links resolved; nullptr if there is none.
  const FileEntry* resolved_entry(const std::string& path) const;
  std::string root_; ///< "/" or an absolute path without a trailing slash; an archive's name
  std::shared_ptr<const FileTree> tree_; ///< files of an archive; null for a folder
};

} // namespace shmemctl
