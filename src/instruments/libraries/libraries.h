// Identifies communication libraries: the kind of library that a file is, its version, its owner
// and, for a file that a process has mapped, whether it is still the same file on disk.
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

/// A mapped file; all of its mappings are one entry.
struct MappedFile {
  std::string path;        ///< path as the process sees it, without " (deleted)"
  std::string device;      ///< "fd:01", hexadecimal as the kernel writes it
  std::uint64_t inode = 0; ///< not 0
  /// The file has lost its name: it was removed, or another file has taken the name.
  bool deleted = false;
  std::string range; ///< its first mapping: "7f00-7f10", a name in /proc/PID/map_files

  bool operator==(const MappedFile&) const = default;
};

/// The facts about the process that decide which file a mapped path means.
struct MappingProcess {
  int pid = 0;
  std::string mount_namespace;   ///< "mnt:[4026531841]"; "" if it is unknown
  std::uint64_t start_ticks = 0; ///< since boot
};

/// The system's text for an errno; if access was denied, with the rights that are needed.
std::string reason_of(int error_number);

/// Groups of libraries that read the same environment variables.
enum class Family { none, nvshmem, nccl, ucx, libfabric };

/// One kind of library: a row of the table in libraries.cpp.
struct LibraryKind {
  const char* id;    ///< "nvshmem-host"
  const char* title; ///< "NVSHMEM host library"
  const char* names; ///< patterns of file names (matches_pattern()), separated by blanks
  Family family = Family::none;
  const char* marker = "";   ///< the text that precedes the version in the file: "NCCL version "
  bool bare_version = false; ///< the version may be a text of its own in the file
  bool versioned_file_name = true; ///< the version may follow ".so." in the file name
  bool reads_texts = false; ///< the file's texts are read, for names of variables and versions
};

/// The kind of a file by its name (UCCL, MORI: also by its folder); null if it is of no kind.
const LibraryKind* library_kind(std::string_view path);
/// The kind with this id; null if there is none.
const LibraryKind* library_kind_of_id(std::string_view id);

/// The name of a library without version and suffix: "libnccl" for "/usr/lib/libnccl.so.2.21.5" and
/// for "libnccl-4fa53e1b.so.2" (a name given by auditwheel).
std::string library_stem(std::string_view path);

/// The version at the start of a text: "2.21.5+cuda12.4"; "" if it does not start with a number, a
/// dot and a digit.
std::string leading_version(std::string_view text);

/// A library file; the same object serves all processes that map the file.
struct Library {
  const LibraryKind* kind = nullptr;
  MappedFile file;
  std::string stem;
  std::string version;        ///< "" if it is unknown
  std::string version_source; ///< "text in the file", "file name", "package"; or why it is unknown
  std::string owner; ///< "nvidia-nccl-cu12 2.21.5"; "" if no known package contains the file
  /// State of the mapped file: "unchanged", "deleted", "replaced", "overwritten" or "not compared";
  /// "installed" if it was not found in a process.
  std::string state;
  std::string state_reason; ///< why the state is "not compared"
  ElfFacts elf;
  /// The identifiers at the ends of the file's texts, each followed by a zero byte. Ends are enough
  /// because the linker stores a text that is the end of another one only once. \x01 precedes an
  /// identifier that is a whole text.
  std::string names;
  std::vector<std::string> asked_versions; ///< symbol versions looked up at run time
  /// Release of the NVSHMEM device library that an extension contains.
  std::string nvshmem_inside;
  bool has_ibgda_state = false; ///< the library reads the state of NVSHMEM's IBGDA transport

  /// Whether a text of the file ends with this identifier.
  bool knows(const std::string& name) const;
};

/// Whether a constant or a symbol name in an ELF file is this text or ends with it. False if the
/// file cannot be read.
bool has_text(const Sysroot& sysroot, const std::string& path, const std::string& text);

/// Returns a reader for an open file that reads at any offset, at most 16 MiB per call, without
/// moving the file position. `file` must outlive the result.
ReadAt reader_of(const FileDescriptor& file);

/// Reads each file once, however many processes map it.
class LibraryReader {
public:
  explicit LibraryReader(const Sysroot& sysroot);
  ~LibraryReader();
  /// The communication libraries among the files that a process has mapped, in the order of
  /// `files`.
  std::vector<std::shared_ptr<const Library>> libraries(const std::vector<MappedFile>& files,
                                                        const MappingProcess& process);
  /// The library installed at `path`, whose links are followed; null if its name belongs to no
  /// kind.
  std::shared_ptr<const Library> installed(const std::string& path);
  /// Number of files that were opened.
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
