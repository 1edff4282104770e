// Reads the files of the allow-list into a tree and replaces names and addresses in them.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/file_tree.h"
#include "src/base/sysroot.h"
#include "src/instruments/gather/anonymizer.h"
#include "src/instruments/gather/recorded_files.h"
#include "src/instruments/inspect/process.h"

namespace shmemctl::gather {

/// Records one machine once.
class Recorder {
public:
  /// @param sysroot the live machine or a copy; must outlive this object
  /// @param names learns the names of the host and of users, and replaces them in what is recorded,
  /// except in binary files and lists of Debian packages; nullptr: nothing is replaced
  Recorder(const Sysroot& sysroot, Anonymizer* names);

  /// Records all rows of recorded_files(), the libraries of processes, the packages that own them,
  /// and the messages of the kernel log that the catalogue contains.
  void record();
  /// Adds a file that shmemctl itself has written, such as "/shmemctl/node.json".
  void add(const std::string& path, const std::string& content);
  /// Paths that are missing in the tree because read_archive() would not accept them.
  const std::vector<std::string>& left_out() const { return left_out_; }
  const FileTree& tree() const { return tree_; }
  /// Number of processes that have a communication library mapped: they are recorded.
  std::size_t processes() const { return pids_.size(); }

  std::string text(std::string_view text) {
    return names_ != nullptr ? names_->text(text) : std::string(text);
  }
  std::string path(std::string_view path) {
    return names_ != nullptr ? names_->path(path) : std::string(path);
  }

private:
  void learn_names();
  void choose_processes();
  void record_row(const RecordedFiles& row);
  void expand(const std::string& folder, const std::vector<std::string>& parts, std::size_t next,
              const RecordedFiles& row);
  void record_file(const std::string& path, const RecordedFiles& row);
  void record_link(const std::string& path, const RecordedFiles& row);
  void record_presence(const std::string& path);
  void record_library(const std::string& path);
  void record_mapped_libraries();
  void record_wheels();
  void record_packages();
  void record_kernel_log();
  std::string treated(const std::string& content, const std::string& path,
                      const RecordedFiles& row);
  std::string treated_environment(std::string_view content);
  std::string treated_sockets(std::string_view content, const std::string& path);
  std::string treated_users(std::string_view content) const;

  /// Records the links on the way to a path. Returns the path without links, "" if it does not
  /// exist.
  std::string enter(const std::string& path);
  void put(const std::string& path, FileEntry entry);
  void put_file(const std::string& path, std::string content, int error_number = 0);

  const Sysroot& sysroot_;
  Anonymizer* names_;
  FileTree tree_;
  std::set<int> pids_, children_;
  std::map<std::string, std::string> entered_; ///< by folder: its path without links
  std::set<std::string> mapped_;               ///< paths of libraries, as processes see them
  std::vector<std::string> left_out_;
};

} // namespace shmemctl::gather
