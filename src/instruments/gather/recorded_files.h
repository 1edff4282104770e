// Which files of a machine an archive of `gather` has, and what of them: nothing else leaves it.
#pragma once

#include <string_view>
#include <vector>

namespace shmemctl::gather {

/// What is recorded of a file, before names and addresses are replaced.
enum class Treatment {
  text,           ///< the whole file
  binary,         ///< the whole file, and nothing in it is replaced
  lines,          ///< lines that begin with a word of `keep`; if there are none, no file
  presence,       ///< only that the path exists: an empty file, or the folder
  link,           ///< the text of a link, whose target is not recorded
  descriptor,     ///< only that the path exists, for sockets and for devices that communicate
  first_word,     ///< only its first word
  command,        ///< the program's name and the number of its arguments
  environment,    ///< variables that recorded_variable() names
  kernel_command, ///< parameters of the kernel's command line that `keep` names
  mounts,         ///< lines of memory, huge pages and control groups
  maps,           ///< lines of communication libraries
  sockets,        ///< the connections of the process itself
  users,          ///< names and numbers of the users of recorded processes
  library,        ///< elf_excerpt()
};

/// A row of the allow-list.
struct RecordedFiles {
  /// A path in which * is any text within a name. {pid}: processes that have a communication
  /// library mapped; {child}: these and what they have started; {libraries}: the folders of the
  /// loader.
  const char* path;
  Treatment treatment = Treatment::text;
  const char* keep = ""; ///< beginnings, separated by |
};

const std::vector<RecordedFiles>& recorded_files();

/// Whether a variable of a process's environment is recorded.
bool recorded_variable(std::string_view name);

} // namespace shmemctl::gather
