#include "src/runtime/memory/host_file.h"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/vfs.h>

#include "src/base/error.h"
#include "src/base/units.h"

namespace shmemctl {

namespace {

constexpr const char* shm_folder = "/dev/shm";
constexpr const char* memfd_name = "shmemctl";
// MFD_NOEXEC_SEAL of Linux 6.3: the file is not executable. Some systems require this flag.
constexpr unsigned memfd_noexec_seal = 0x8;

FileDescriptor open_memfd(unsigned flags) {
  flags |= MFD_CLOEXEC | MFD_ALLOW_SEALING;
  int descriptor = ::memfd_create(memfd_name, flags | memfd_noexec_seal);
  if (descriptor < 0 && errno == EINVAL)
    descriptor = ::memfd_create(memfd_name, flags);
  return FileDescriptor(descriptor);
}

/// For file systems without O_TMPFILE: the file has a name between two calls.
FileDescriptor open_and_unlink() {
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, 0) != sizeof random)
    return FileDescriptor();
  const std::string path = fmt::format("{}/shmemctl-{:016x}", shm_folder, random);
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file)
    ::unlink(path.c_str());
  return file;
}

FileDescriptor open_devshm() {
  struct statfs system {};
  const bool there = ::statfs(shm_folder, &system) == 0;
  if (!there || system.f_type != TMPFS_MAGIC)
    throw Error(ExitCode::unavailable, shm_folder, "use",
                there ? "not a tmpfs" : "no such directory",
                "run mkdir -p /dev/shm && mount -t tmpfs tmpfs /dev/shm, or set "
                "SHMEMCTL_HEAP_BACKING=memfd");
  FileDescriptor file(::open(shm_folder, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (!file && errno != EMFILE && errno != ENFILE)
    file = open_and_unlink();
  return file;
}

} // namespace

const char* to_string(HostFileKind kind) {
  switch (kind) {
  case HostFileKind::memfd:
    return "memfd";
  case HostFileKind::memfd_of_huge_pages:
    return "memfd of huge pages";
  case HostFileKind::devshm:
    return "/dev/shm";
  }
  return "";
}

std::string memory_subject(std::size_t size_bytes, HostFileKind kind) {
  return fmt::format("{} of shared memory ({})", format_size_bytes(size_bytes), to_string(kind));
}

bool memfd_works() noexcept {
  return static_cast<bool>(open_memfd(0));
}

FileDescriptor open_host_file(HostFileKind kind) {
  FileDescriptor file;
  if (kind == HostFileKind::devshm)
    file = open_devshm();
  else
    file = open_memfd(kind == HostFileKind::memfd ? 0u : MFD_HUGETLB | MFD_HUGE_2MB);
  if (file)
    return file;
  const int error = errno;
  throw system_error(fmt::format("shared memory ({})", to_string(kind)), "create", error,
                     error == EMFILE || error == ENFILE
                         ? "raise the limit of open files: ulimit -n"
                         : "set SHMEMCTL_HEAP_BACKING to the other kind (memfd or devshm)");
}

void resize_host_file(const FileDescriptor& file, HostFileKind kind, std::size_t size_bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      size_bytes > limit.rlim_cur)
    throw Error(ExitCode::unavailable, memory_subject(size_bytes, kind), "commit",
                "the file size limit is " + format_size_bytes(limit.rlim_cur),
                "raise the limit: ulimit -f unlimited");
  if (::ftruncate(file.get(), static_cast<off_t>(size_bytes)) != 0)
    throw system_error(memory_subject(size_bytes, kind), "commit", errno,
                       "lower SHMEMCTL_SYMMETRIC_SIZE, or run fewer PEs on this node");
  // No effect in /dev/shm, which does not support seals.
  ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

} // namespace shmemctl
