// The allow-list of `gather`: which files of a machine an archive contains, and which part of each.
// Recorder::record() adds mapped libraries, lists of their packages, and kernel messages.
#pragma once

#include <string_view>
#include <vector>

namespace shmemctl::gather {

/// The part of a file that is recorded, before names and addresses are replaced.
enum class Treatment {
  text,           ///< the whole file
  binary,         ///< the whole file, and nothing in it is replaced
  lines,          ///< lines that begin with a word of `keep`; no file if there are none
  presence,       ///< only that the path exists: an empty file, or the folder
  link,           ///< the target path of a link, without the target itself
  descriptor,     ///< as link, if it is a socket or a device that communicates; else nothing
  first_word,     ///< only its first word
  command,        ///< program name and number of arguments; with names kept, the whole file
  environment,    ///< variables that recorded_variable() names
  kernel_command, ///< parameters of the kernel's command line that `keep` names
  mounts,         ///< lines about memory, huge pages and control groups
  maps,           ///< lines about communication libraries
  sockets,        ///< the connections of the process itself
  users,          ///< names and numbers of the users of recorded processes
  library,        ///< elf_excerpt()
};

/// A row of the allow-list.
struct RecordedFiles {
  /// A path, in which * matches any text within one name, ? one character. {pid} stands for
  /// processes that have a communication library mapped, {child} for these and all their
  /// descendants, {libraries} for the folders of the loader.
  const char* path;
  Treatment treatment = Treatment::text;
  const char* keep = ""; ///< beginnings, separated by |
};

const std::vector<RecordedFiles>& recorded_files();

/// Whether a variable of a process's environment is recorded.
bool recorded_variable(std::string_view name);

} // namespace shmemctl::gather
