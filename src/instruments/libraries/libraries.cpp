#include "src/instruments/libraries/libraries.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <set>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "src/base/text.h"

namespace shmemctl::libraries {

namespace {

constexpr LibraryKind kinds[] = {
    {"nvshmem-host", "NVSHMEM host library", "libnvshmem_host*.so* libnvshmem.so*", Family::nvshmem,
     "NVSHMEM v", false, true, true},
    {"nvshmem-bootstrap", "NVSHMEM bootstrap plugin", "nvshmem_bootstrap_*.so*", Family::nvshmem,
     "NVSHMEM v", false, false, true},
    {"nvshmem-transport", "NVSHMEM transport plugin", "nvshmem_transport_*.so*", Family::nvshmem,
     "NVSHMEM v", false, false, true},
    {"nccl-net", "NCCL network plugin", "libnccl-net*.so* libnccl_net*.so* libnccl-tuner*.so*",
     Family::nccl, "", false, false, true},
    {"nccl", "NCCL", "libnccl.so* libnccl-*.so*", Family::nccl, "NCCL version ", false, true, true},
    {"rccl", "RCCL", "librccl.so*", Family::nccl, "RCCL version ", false, false, true},
    {"libfabric", "libfabric", "libfabric.so* libfabric-*.so*", Family::libfabric, "", true, false,
     true},
    {"ucx", "UCX",
     "libucp.so* libucp-*.so* libuct.so* libuct-*.so* libuct_*.so* libucs.so* "
     "libucs-*.so* libucs_*.so* libucm.so* libucm-*.so* libucm_*.so*",
     Family::ucx, "", false, false, true},
    {"rdma-core", "rdma-core",
     "libibverbs.so* libibverbs-*.so* librdmacm.so* librdmacm-*.so* libmlx5.so* libmlx5-*.so* "
     "libefa.so* libefa-*.so* libbnxt_re*.so* librxe*.so* libirdma*.so* libhns*.so* libmana.so* "
     "libmana-*.so*"},
    {"gdrcopy", "GDRCopy", "libgdrapi.so* libgdrapi-*.so*"},
    {"cuda-driver", "CUDA driver", "libcuda.so*"},
    {"cuda-runtime", "CUDA runtime", "libcudart.so* libcudart-*.so*"},
    {"deepep", "DeepEP", "deep_ep*.so", Family::none, "NVSHMEM v", false, false, true},
    {"pplx", "pplx", "*pplx*.so", Family::none, "NVSHMEM v", false, false, true},
    {"mori", "MORI", "libmori*.so* mori*.so", Family::none, "", false, false, true},
    {"uccl", "UCCL", "libuccl*.so* uccl*.so", Family::none, "", false, false, true},
    {"nixl", "NIXL", "libnixl*.so*", Family::none, "", false, false, false},
    {"mpi", "MPI", "libmpi.so* liboshmem.so*", Family::none, "", true, false, true},
    {"torch", "PyTorch",
     "libtorch.so libtorch_cuda.so libtorch_cpu.so libc10.so libc10_cuda.so "
     "libtorch_python.so libtorch_nvshmem.so"},
};

constexpr std::uint64_t max_text_bytes = 256U << 20;

std::string_view file_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1); // npos + 1 is 0
}

std::vector<std::pair<std::string, const LibraryKind*>> patterns_of_kinds() {
  std::vector<std::pair<std::string, const LibraryKind*>> patterns;
  for (const LibraryKind& kind : kinds)
    for (std::string& pattern : split_blanks(kind.names))
      patterns.emplace_back(std::move(pattern), &kind);
  return patterns;
}

bool is_identifier(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_';
}

/// Whether a text looks like a symbol version, an argument of dlvsym(): "MLX5_1.25",
/// "IBVERBS_1.14".
bool is_symbol_version(std::string_view text) {
  for (const std::string_view prefix : {"MLX5_", "IBVERBS_", "EFA_"})
    if (starts_with(text, prefix)) {
      const std::string_view number = text.substr(prefix.size());
      return number.find('.') != std::string_view::npos &&
             number.find_first_not_of("0123456789.") == std::string_view::npos &&
             number == leading_version(number);
    }
  return false;
}

/// Whether a text is a version of three numbers and nothing else.
bool is_bare_version(std::string_view text) {
  return std::count(text.begin(), text.end(), '.') == 2 && text.size() < 12 &&
         leading_version(text) == text &&
         text.find_first_not_of("0123456789.") == std::string_view::npos && text.back() != '.';
}

/// Whether the file existed before that time. A file that is younger than the process may be built
/// by the process itself (JIT), and then it was not overwritten. False if the file system does not
/// record the time of creation.
bool is_older_than(const std::string& path, double unix_s) {
  struct statx status {};
  return ::statx(AT_FDCWD, path.c_str(), 0, STATX_BTIME, &status) == 0 &&
         (status.stx_mask & STATX_BTIME) != 0 &&
         static_cast<double>(status.stx_btime.tv_sec) < unix_s;
}

} // namespace

ReadAt reader_of(const FileDescriptor& file) {
  return [&file](std::uint64_t offset, std::size_t count) {
    std::string bytes(std::min<std::size_t>(count, 16U << 20), '\0');
    std::size_t done = 0;
    while (done < bytes.size() && offset + done < (1ULL << 62)) {
      const ssize_t got = ::pread(file.get(), bytes.data() + done, bytes.size() - done,
                                  static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR)
        continue;
      if (got <= 0)
        break;
      done += static_cast<std::size_t>(got);
    }
    bytes.resize(done);
    return bytes;
  };
}

std::string reason_of(int error_number) {
  const std::string text = std::generic_category().message(error_number);
  if (error_number == EACCES || error_number == EPERM)
    return text + ": needs the same user, or root with CAP_SYS_PTRACE";
  return text;
}

const LibraryKind* library_kind(std::string_view path) {
  const std::string_view name = file_name(path);
  if (name.find(".so") == std::string_view::npos)
    return nullptr;
  static const auto patterns = patterns_of_kinds(); // built once: every file is looked up
  for (const auto& pattern : patterns)
    if (matches_pattern(name, pattern.first))
      return pattern.second;
  // These extensions have common file names, but a folder of their own. "/mori/" alone may be a
  // home folder.
  constexpr std::pair<std::string_view, std::string_view> folders[] = {{"/uccl/", "uccl"},
                                                                       {"/mori/cco/", "mori"}};
  for (const auto& [folder, id] : folders)
    if (ends_with(name, ".so") && path.find(folder) != std::string_view::npos)
      return library_kind_of_id(id);
  return nullptr;
}

const LibraryKind* library_kind_of_id(std::string_view id) {
  for (const LibraryKind& kind : kinds)
    if (id == kind.id)
      return &kind;
  return nullptr;
}

std::string library_stem(std::string_view path) {
  std::string_view name = file_name(path);
  name = name.substr(0, name.find(".so"));
  const std::size_t dash = name.rfind('-');
  if (dash != std::string_view::npos && name.size() - dash == 9 &&
      name.substr(dash + 1).find_first_not_of("0123456789abcdef") == std::string_view::npos)
    name = name.substr(0, dash);
  return std::string(name);
}

std::string leading_version(std::string_view text) {
  const auto digit = [&text](std::size_t at) {
    return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
  };
  std::size_t end = 0;
  while (digit(end))
    ++end;
  if (end == 0 || end >= text.size() || text[end] != '.' || !digit(end + 1))
    return {};
  while (end < text.size() &&
         (is_identifier(text[end]) || text[end] == '.' || text[end] == '+' || text[end] == '-'))
    ++end;
  return std::string(text.substr(0, end));
}

bool has_text(const Sysroot& sysroot, const std::string& path, const std::string& text) {
  int error_number = 0;
  const FileDescriptor file = sysroot.open(path, error_number);
  if (!file)
    return false;
  const ReadAt read_at = reader_of(file);
  bool found = false;
  each_text(read_at, read_elf(read_at).texts, text.size(), max_text_bytes,
            [&](std::string_view each) { found = found || ends_with(each, text); });
  return found;
}

bool Library::knows(const std::string& name) const {
  return names.find(name + '\0') != std::string::npos;
}

/// Finds the package that contains a file: wheels by their RECORD, Debian's packages by their
/// lists.
class LibraryReader::Owners {
public:
  explicit Owners(const Sysroot& sysroot) : sysroot_(sysroot) {}

  struct Owner {
    std::string name, version;
  };

  std::optional<Owner> find(const std::string& path) {
    for (const std::string_view folder : {"/site-packages/", "/dist-packages/"})
      if (const std::size_t at = path.rfind(folder); at != std::string::npos) {
        const std::size_t end = at + folder.size();
        if (auto owner = of_wheel(path.substr(0, end - 1), path.substr(end)))
          return owner;
      }
    return of_debian(path);
  }

private:
  std::optional<Owner> of_wheel(const std::string& site, const std::string& file) {
    auto known = sites_.find(site);
    if (known == sites_.end()) {
      std::vector<std::string> names;
      for (const std::string& name : sysroot_.list(site))
        if (ends_with(name, ".dist-info"))
          names.push_back(name);
      known = sites_.emplace(site, std::move(names)).first;
    }
    // Packages whose names resemble the path come first, because RECORDs of large packages take
    // time.
    std::vector<std::string> names = known->second;
    const std::string wanted = plain(file);
    std::stable_partition(names.begin(), names.end(), [&wanted](const std::string& name) {
      const std::string own = plain(name.substr(0, name.find('-')));
      return starts_with(wanted, own) || starts_with(own, wanted.substr(0, wanted.find('/')));
    });
    for (const std::string& name : names) {
      const std::string folder = site + "/" + name;
      auto record = records_.find(folder);
      if (record == records_.end())
        record =
            records_
                .emplace(folder, "\n" + sysroot_.read(folder + "/RECORD", 32U << 20).value_or(""))
                .first;
      if (record->second.find("\n" + file + ",") == std::string::npos)
        continue;
      const std::string stem = name.substr(0, name.size() - std::string(".dist-info").size());
      const std::size_t dash = stem.rfind('-');
      if (dash == std::string::npos)
        return Owner{stem, ""};
      std::string package = stem.substr(0, dash);
      std::replace(package.begin(), package.end(), '_', '-');
      return Owner{package, stem.substr(dash + 1)};
    }
    return std::nullopt;
  }

  static std::string plain(std::string_view name) {
    std::string text = lower(name);
    std::replace(text.begin(), text.end(), '-', '_');
    return text;
  }

  std::optional<Owner> of_debian(const std::string& path) {
    read_debian();
    // On a system with a merged /usr, lists may contain either path.
    const std::string other = starts_with(path, "/usr/lib/") ? path.substr(4)
                              : starts_with(path, "/lib/")   ? "/usr" + path
                                                             : path;
    for (const std::string& each : {path, other})
      if (const auto file = debian_files_.find(each); file != debian_files_.end()) {
        const auto version = debian_versions_.find(file->second);
        return Owner{file->second, version == debian_versions_.end() ? "" : version->second};
      }
    return std::nullopt;
  }

  void read_debian() {
    if (std::exchange(debian_is_read_, true))
      return;
    const std::string folder = "/var/lib/dpkg/info/";
    for (const std::string& name : sysroot_.list(folder)) {
      if (!ends_with(name, ".list"))
        continue;
      const std::string package = name.substr(0, std::min(name.find(':'), name.size() - 5));
      const std::string text = sysroot_.read(folder + name, 16U << 20).value_or("");
      if (text.find(".so") == std::string::npos)
        continue;
      for (std::string& line : split(text, '\n'))
        if (line.find(".so") != std::string::npos)
          debian_files_.emplace(std::move(line), package);
    }
    if (debian_files_.empty())
      return;
    std::string package;
    const std::string status = sysroot_.read("/var/lib/dpkg/status", 64U << 20).value_or("");
    for (std::string_view rest = status; !rest.empty();) {
      const std::string_view line = take_line(rest);
      if (starts_with(line, "Package: "))
        package = line.substr(9);
      else if (starts_with(line, "Version: "))
        debian_versions_.emplace(package, line.substr(9));
    }
  }

  const Sysroot& sysroot_;
  std::map<std::string, std::vector<std::string>> sites_;
  std::map<std::string, std::string> records_;
  bool debian_is_read_ = false;
  std::map<std::string, std::string> debian_files_; ///< libraries by path: their package
  std::map<std::string, std::string> debian_versions_;
};

LibraryReader::LibraryReader(const Sysroot& sysroot)
    : sysroot_(sysroot),
      own_mount_namespace_(sysroot.live() ? sysroot.read_link("/proc/self/ns/mnt").value_or("")
                                          : ""),
      owners_(std::make_unique<Owners>(sysroot)) {
  for (const std::string& line : split(sysroot.read("/proc/stat").value_or(""), '\n'))
    if (starts_with(line, "btime "))
      boot_s_ = parse_number(line.substr(6));
}

LibraryReader::~LibraryReader() = default;

std::vector<std::shared_ptr<const Library>>
LibraryReader::libraries(const std::vector<MappedFile>& files, const MappingProcess& process) {
  std::vector<std::shared_ptr<const Library>> found;
  for (const MappedFile& file : files)
    if (const LibraryKind* kind = library_kind(file.path))
      found.push_back(read(file, *kind, process));
  return found;
}

std::shared_ptr<const Library> LibraryReader::installed(const std::string& path) {
  const std::string real = sysroot_.realpath(path).value_or(path);
  const LibraryKind* kind = library_kind(real);
  if (kind == nullptr) // libfoo.so.1 may be a link to a file with any name
    kind = library_kind(path);
  if (kind == nullptr)
    return nullptr;
  const std::string key = "installed " + real;
  if (const auto known = known_.find(key); known != known_.end())
    return known->second;
  auto library = std::make_shared<Library>();
  library->kind = kind;
  library->file.path = real;
  library->stem = library_stem(path);
  library->state = "installed";
  read_content(*library, real);
  const auto owner = owners_->find(real);
  if (owner)
    library->owner = owner->version.empty() ? owner->name : owner->name + " " + owner->version;
  find_version(*library, owner ? owner->version : std::string());
  known_.emplace(key, library);
  return library;
}

std::string LibraryReader::path_of(const MappedFile& file, const MappingProcess& process) const {
  const std::string folder = "/proc/" + std::to_string(process.pid);
  if (file.deleted) // a new file of that name has different content
    return folder + "/map_files/" + file.range;
  const bool elsewhere = sysroot_.live() ? !process.mount_namespace.empty() &&
                                               process.mount_namespace != own_mount_namespace_
                                         : sysroot_.is_directory(folder + "/root");
  return elsewhere ? folder + "/root" + file.path : file.path;
}

std::shared_ptr<const Library> LibraryReader::read(const MappedFile& file, const LibraryKind& kind,
                                                   const MappingProcess& process) {
  const std::string key =
      fmt::format("{} {} {} {}", file.device, file.inode, file.deleted, file.path);
  if (const auto known = known_.find(key); known != known_.end())
    return known->second;
  auto library = std::make_shared<Library>();
  library->kind = &kind;
  library->file = file;
  library->stem = library_stem(file.path);
  const std::string path = path_of(file, process);
  compare_with_file(*library, path, process);
  read_content(*library, path);
  const auto owner = owners_->find(file.path);
  if (owner)
    library->owner = owner->version.empty() ? owner->name : owner->name + " " + owner->version;
  // The package database describes the file that exists now.
  find_version(*library, owner && library->state != "replaced" && library->state != "deleted"
                             ? owner->version
                             : std::string());
  known_.emplace(key, library);
  return library;
}

void LibraryReader::compare_with_file(Library& library, const std::string& path,
                                      const MappingProcess& process) const {
  if (library.file.deleted) {
    library.state = sysroot_.exists(library.file.path) ? "replaced" : "deleted";
    return;
  }
  library.state = "not compared";
  if (!sysroot_.live()) {
    library.state_reason = "a recorded tree has other inodes";
    return;
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    library.state_reason = reason_of(errno);
    return;
  }
  // On some file systems (overlayfs, btrfs) the device in maps differs from that of stat(); then
  // the inodes cannot be compared either.
  const std::string device =
      fmt::format("{:02x}:{:02x}", major(status.st_dev), minor(status.st_dev));
  const bool same_device = device == library.file.device;
  const double started_s = boot_s_.value_or(0) + static_cast<double>(process.start_ticks) /
                                                     static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto changed_s = static_cast<double>(status.st_mtim.tv_sec);
  // Allow one second more, because ticks and btime are rounded.
  if (same_device && status.st_ino != library.file.inode)
    library.state = "replaced";
  else if (boot_s_ && changed_s > started_s + 1 && is_older_than(path, started_s))
    library.state = "overwritten";
  else
    library.state = "unchanged";
}

void LibraryReader::read_content(Library& library, const std::string& path) {
  if (library.state == "replaced" && !library.file.deleted) {
    library.elf.problem = "another file has its name now";
    return;
  }
  int error_number = 0;
  const FileDescriptor file = sysroot_.open(path, error_number);
  if (!file) {
    library.elf.problem = library.file.deleted && error_number != EISDIR
                              ? "the mapped file has no name any more; root can read it"
                              : reason_of(error_number);
    return;
  }
  ++files_read_;
  const ReadAt read_at = reader_of(file);
  library.elf = read_elf(read_at);
  if (!library.kind->reads_texts)
    return;
  std::set<std::string> asked;
  const std::string_view marker = library.kind->marker;
  each_text(read_at, library.elf.texts, 2, max_text_bytes, [&](std::string_view text) {
    std::size_t start = text.size();
    while (start > 0 && is_identifier(text[start - 1]))
      --start;
    if (text.size() - start >= 2) {
      if (start == 0)
        library.names += '\x01';
      library.names += text.substr(start);
      library.names += '\0';
    }
    if (is_symbol_version(text))
      asked.emplace(text);
    if (library.version.empty() && library.kind->bare_version && is_bare_version(text))
      library.version = text;
    if (marker.empty())
      return;
    if (const std::size_t at = text.find(marker); at != std::string_view::npos) {
      std::string version = leading_version(text.substr(at + marker.size()));
      std::string& where =
          library.kind->family == Family::none ? library.nvshmem_inside : library.version;
      if (where.empty())
        where = std::move(version);
    }
  });
  library.asked_versions.assign(asked.begin(), asked.end());
  library.has_ibgda_state = library.knows("nvshmemi_ibgda_device_state_d");
}

void LibraryReader::find_version(Library& library, const std::string& package_version) const {
  if (!library.version.empty()) {
    library.version_source = "text in the file";
    return;
  }
  if (library.kind->versioned_file_name) {
    const std::string_view name = file_name(library.file.path);
    if (const std::size_t at = name.find(".so."); at != std::string_view::npos)
      library.version = leading_version(name.substr(at + 4));
    library.version_source = "file name";
  }
  if (library.version.empty()) {
    library.version = package_version;
    library.version_source = "package";
  }
  if (library.version.empty())
    library.version_source = library.elf.problem.empty() ? "neither its file nor a package says it"
                                                         : library.elf.problem;
}

} // namespace shmemctl::libraries
