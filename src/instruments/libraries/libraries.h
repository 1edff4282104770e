// Communication libraries: which one a file is, which version, whose, and, of one that a process
// has mapped, whether the file is still that.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/file_descriptor.h"
#include "src/base/sysroot.h"
#include "src/instruments/libraries/elf.h"

namespace shmemctl::libraries {

/// A file that is mapped, with all of its mappings.
struct MappedFile {
  std::string path;        ///< as the process sees it, without " (deleted)"
  std::string device;      ///< "fd:01", hexadecimal as the kernel writes it
  std::uint64_t inode = 0; ///< not 0
  /// The file has no name any more: it was removed, or another file has the name.
  bool deleted = false;
  std::string range; ///< its first mapping: "7f00-7f10", a name in /proc/PID/map_files

  bool operator==(const MappedFile&) const = default;
};

/// The process that has files mapped, as far as it decides which file a path means.
struct MappingProcess {
  int pid = 0;
  std::string mount_namespace;   ///< "mnt:[4026531841]"; "" if it is unknown
  std::uint64_t start_ticks = 0; ///< since boot
};

/// What the system says about an errno, and for a refused access what is needed.
std::string reason_of(int error_number);

/// Libraries that read the same variables of the environment.
enum class Family { none, nvshmem, nccl, ucx, libfabric };

/// One kind of library: a row of the table in libraries.cpp.
struct LibraryKind {
  const char* id;    ///< "nvshmem-host"
  const char* title; ///< "NVSHMEM host library"
  const char* names; ///< patterns of file names (matches_pattern()), separated by blanks
  Family family = Family::none;
  const char* marker = "";         ///< what is before its version in its texts: "NCCL version "
  bool bare_version = false;       ///< a text that is nothing but a version is its version
  bool versioned_file_name = true; ///< what follows ".so." is its version, if it has two parts
  bool reads_texts = false; ///< texts of the file are read: names of variables, versions in it
};

/// The kind of a file by its name; null if it is none of these.
const LibraryKind* library_kind(std::string_view path);
/// By its id; null if there is none of that id.
const LibraryKind* library_kind_of_id(std::string_view id);

/// "libnccl" of "/usr/lib/libnccl.so.2.21.5" and of "libnccl-4fa53e1b.so.2" (a name that auditwheel
/// gave).
std::string library_stem(std::string_view path);

/// The version at the start of a text: "2.21.5+cuda12.4"; "" if it does not start with a number and
/// a dot.
std::string leading_version(std::string_view text);

/// What a file says; the same for all processes that map it.
struct Library {
  const LibraryKind* kind = nullptr;
  MappedFile file;
  std::string stem;
  std::string version;        ///< "" if it is unknown
  std::string version_source; ///< "text in the file", "file name", "package"; or why it is unknown
  std::string owner; ///< "nvidia-nccl-cu12 2.21.5"; "" if no known package contains the file
  /// "unchanged", "deleted", "replaced", "overwritten", "not compared"; "installed" of one that was
  /// not found in a process.
  std::string state;
  std::string state_reason; ///< why it was not compared
  ElfFacts elf;
  /// The identifiers at the ends of its texts, each followed by a zero byte: the linker keeps a
  /// text only once that is the end of another one. In front of one that is a whole text is
  /// \x01.
  std::string names;
  std::vector<std::string> asked_versions; ///< symbol versions that it looks up at run time
  /// Release of the NVSHMEM device library that an extension contains.
  std::string nvshmem_inside;
  bool has_ibgda_state = false; ///< the library reads the state of NVSHMEM's IBGDA transport

  /// Whether a text of the file ends with this identifier.
  bool knows(const std::string& name) const;
};

/// Whether a constant or the name of a symbol in an ELF file is this text, or ends with it; false
/// if it cannot be read.
bool has_text(const Sysroot& sysroot, const std::string& path, const std::string& text);

/// Reads an open file at any offset, at most 16 MiB a call, without moving its position. `file`
/// must outlive the result.
ReadAt reader_of(const FileDescriptor& file);

/// Reads each file once, whatever number of processes map it.
class LibraryReader {
public:
  explicit LibraryReader(const Sysroot& sysroot);
  ~LibraryReader();
  /// The communication libraries among the files that a process has mapped, in their order.
  std::vector<std::shared_ptr<const Library>> libraries(const std::vector<MappedFile>& files,
                                                        const MappingProcess& process);
  /// The library that is installed there; null if no kind has that name.
  /// @param path links are followed
  std::shared_ptr<const Library> installed(const std::string& path);
  /// Files that were opened.
  std::size_t files_read() const { return files_read_; }

private:
  class Owners;

  std::shared_ptr<const Library> read(const MappedFile& file, const LibraryKind& kind,
                                      const MappingProcess& process);
  std::string path_of(const MappedFile& file, const MappingProcess& process) const;
  void read_content(Library& library, const std::string& path);
  void compare_with_file(Library& library, const std::string& path,
                         const MappingProcess& process) const;
  void find_version(Library& library, const std::string& package_version) const;

  const Sysroot& sysroot_;
  std::string own_mount_namespace_;
  std::optional<double> boot_s_; ///< Unix time
  std::map<std::string, std::shared_ptr<const Library>> known_;
  std::unique_ptr<Owners> owners_;
  std::size_t files_read_ = 0;
};

} // namespace shmemctl::libraries
