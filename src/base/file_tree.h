// Files, folders and links of a machine in memory, and as a .tar.zst archive.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace shmemctl {

struct FileEntry {
  enum class Kind { folder, file, link };
  Kind kind = Kind::folder;
  std::string content;            ///< bytes of a file, target of a link
  int error_number = 0;           ///< errno with which that machine refused to read it
  std::vector<std::string> names; ///< in a folder, in order of insertion
};

/// Limits of an archive that is read (docs/explanation/gather.md). A tree that reaches all of them
/// takes half a gigabyte of memory.
namespace archive_limits {
inline constexpr std::size_t max_packed_bytes = std::size_t{64} << 20;
inline constexpr std::size_t max_unpacked_bytes = std::size_t{256} << 20;
/// Entries, including the folders that lead to files.
inline constexpr std::size_t max_entries = 100000;
inline constexpr std::size_t max_path_bytes = 1023;
inline constexpr std::size_t max_name_bytes = 255;
inline constexpr std::size_t max_depth = 64;
} // namespace archive_limits

/// Paths are absolute and as that machine sees them ("/sys/class/net"). Links are not followed
/// here: Sysroot does that, within the tree.
class FileTree {
public:
  FileTree();

  /// Adds an entry and the folders above it. Returns false and changes nothing if the entry exists
  /// already, or if a path above it is not a folder. A folder may be added again.
  bool add(const std::string& path, FileEntry entry);
  /// Null if there is no such entry. "/" always exists.
  const FileEntry* find(const std::string& path) const;
  const std::map<std::string, FileEntry>& entries() const { return entries_; }

private:
  std::map<std::string, FileEntry> entries_; ///< by path; "/" is the root
};

/// The tree as a tar file (POSIX pax), with the same bytes for the same tree: no times, no owners.
std::string write_tar(const FileTree& tree);
/// Reads a tar file, written by write_tar() or another program. Throws Error (usage) if it is cut
/// off or damaged, has paths that leave the tree, entries below links, duplicates, hard links or
/// devices, or exceeds `archive_limits`.
/// @param subject the file's name, for the message
FileTree read_tar(std::string_view bytes, const std::string& subject);

/// Like write_tar(), compressed with Zstandard.
std::string write_archive(const FileTree& tree);
FileTree read_archive(std::string_view bytes, const std::string& subject);

} // namespace shmemctl
