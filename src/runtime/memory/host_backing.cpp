// Host memory: unnamed files, whose memory is committed when they are created, unless sparse.
#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <utility>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/base/units.h"
#include "src/runtime/memory/available_memory.h"
#include "src/runtime/memory/backing.h"
#include "src/runtime/memory/host_file.h"

namespace shmemctl {

namespace {

/// Memory that is left free for other processes, and for PEs that commit at the same time.
constexpr std::uint64_t margin_bytes = std::uint64_t{64} << 20;
/// A PE commits at most 1 / shares_of_room of the available memory (or 2 MiB, if that is more)
/// between two checks, so that shares_of_room PEs can commit at once without exhausting it.
constexpr std::uint64_t shares_of_room = 256;
constexpr std::uint64_t max_bytes_per_look = std::uint64_t{64} << 20;

std::string size_text(std::uint64_t size_bytes) {
  return format_size_bytes(size_bytes >> 20 << 20);
}

class HostChunk final : public Chunk {
public:
  HostChunk(FileDescriptor file, std::size_t size_bytes, bool advise_huge)
      : file_(std::move(file)), size_bytes_(size_bytes), advise_huge_(advise_huge) {}

  std::size_t size_bytes() const override { return size_bytes_; }
  int descriptor() const override { return file_.get(); }

  // StaticDataRegion maps the program's own variables with this function, so it must not write to
  // any of them.
  void map(void* address) override {
    if (::mmap(address, size_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_.get(),
               0) == MAP_FAILED)
      throw system_error(format_size_bytes(size_bytes_) + " of shared memory", "map", errno,
                         "raise the limits of memory: ulimit -v, sysctl vm.max_map_count");
    if (advise_huge_)
      ::madvise(address, size_bytes_, MADV_HUGEPAGE);
  }

private:
  FileDescriptor file_;
  std::size_t size_bytes_;
  bool advise_huge_;
};

/// A mapping of a file while its pages are allocated, to choose their NUMA node and to ask for huge
/// pages. The destructor unmaps it.
class TemporaryMapping {
public:
  TemporaryMapping(const FileDescriptor& file, std::size_t size_bytes) : size_bytes_(size_bytes) {
    void* mapped = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (mapped != MAP_FAILED)
      base_ = static_cast<std::byte*>(mapped);
  }
  TemporaryMapping(const TemporaryMapping&) = delete;
  TemporaryMapping& operator=(const TemporaryMapping&) = delete;
  ~TemporaryMapping() {
    if (base_)
      ::munmap(base_, size_bytes_);
  }
  /// nullptr if the size is 0, or the file could not be mapped.
  std::byte* base() const { return base_; }

private:
  std::byte* base_ = nullptr;
  std::size_t size_bytes_;
};

class HostRange final : public AddressRange {
public:
  explicit HostRange(std::size_t size_bytes) : reservation_(size_bytes, huge_page_bytes) {}
  std::byte* base() const override { return reservation_.base(); }
  void clear(std::byte* at, std::size_t size_bytes) noexcept override {
    reservation_.clear(at, size_bytes);
  }

private:
  Reservation reservation_;
};

/// Throws if `missing_bytes`, the rest of `size_bytes`, cannot be allocated without the risk that
/// the kernel's OOM killer acts. Returns the available memory; nothing if it is unknown.
std::optional<Room> require_room(const AvailableMemory& in, HostFileKind kind,
                                 std::size_t size_bytes, std::size_t missing_bytes) {
  std::optional<Room> room = in.now();
  if (room && (room->free_bytes < margin_bytes || room->free_bytes - margin_bytes < missing_bytes))
    throw Error(
        ExitCode::unavailable, memory_subject(size_bytes, kind), "commit",
        fmt::format("{} has {} of free memory, of which {} must stay free", room->limited_by,
                    size_text(room->free_bytes), size_text(margin_bytes)),
        "lower SHMEMCTL_SYMMETRIC_SIZE, run fewer PEs on this node, or raise the limit if a "
        "control group is named");
  return room;
}

class HostBacking final : public HeapBacking {
public:
  explicit HostBacking(const HostBackingOptions& options)
      : kind_(choose_kind(options.kind)), huge_pages_(options.huge_pages),
        numa_node_(options.numa_node) {}

  const char* kind() const override { return kind_ == HostFileKind::devshm ? "devshm" : "memfd"; }
  // The same on all PEs, whether or not they get huge pages, because offsets must agree.
  std::size_t granularity_bytes() const override { return huge_page_bytes; }
  std::unique_ptr<AddressRange> reserve(std::size_t size_bytes) override {
    return std::make_unique<HostRange>(size_bytes);
  }

  std::unique_ptr<Chunk> create(std::size_t size_bytes) override {
    const bool whole_huge_pages = size_bytes % huge_page_bytes == 0;
    if (huge_pages_ && whole_huge_pages && kind_ == HostFileKind::memfd)
      if (auto chunk = create_of_huge_pages(size_bytes))
        return chunk;
    return create_of_pages(size_bytes, huge_pages_ && whole_huge_pages);
  }

  std::unique_ptr<Chunk> create_of_small_pages(std::size_t size_bytes) override {
    return create_of_pages(size_bytes, false);
  }

  std::unique_ptr<Chunk> import(FileDescriptor descriptor, std::size_t size_bytes) override {
    struct stat status {};
    if (::fstat(descriptor.get(), &status) != 0)
      throw system_error("memory of a peer", "import", errno,
                         "report this as a bug in shmemctl, with the command line");
    if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) < size_bytes)
      throw Error(ExitCode::unavailable, "memory of a peer", "import",
                  fmt::format("it has {} bytes instead of {}", status.st_size, size_bytes),
                  "start the same program with the same options on all PEs");
    return std::make_unique<HostChunk>(std::move(descriptor), size_bytes, false);
  }

private:
  static HostFileKind choose_kind(const std::string& kind) {
    if (kind == "memfd" || (kind == "auto" && memfd_works()))
      return HostFileKind::memfd;
    if (kind == "devshm" || kind == "auto")
      return HostFileKind::devshm;
    throw Error(ExitCode::usage, "heap backing '" + kind + "'", "", "unknown kind of memory",
                "set SHMEMCTL_HEAP_BACKING to auto, memfd or devshm");
  }

  /// nullptr if the pool has too few free huge pages, or the allocation fails.
  std::unique_ptr<Chunk> create_of_huge_pages(std::size_t size_bytes) const {
    const std::string pool = "/sys/kernel/mm/hugepages/hugepages-2048kB/";
    const long long free = Sysroot().read_integer(pool + "free_hugepages").value_or(0);
    const long long reserved = Sysroot().read_integer(pool + "resv_hugepages").value_or(0);
    if (free - reserved < static_cast<long long>(size_bytes / huge_page_bytes))
      return nullptr;
    try {
      FileDescriptor file = open_host_file(HostFileKind::memfd_of_huge_pages);
      resize_host_file(file, HostFileKind::memfd_of_huge_pages, size_bytes);
      const TemporaryMapping mapping(file, numa_node_ < 0 ? 0 : size_bytes);
      prefer_numa_node(mapping, size_bytes);
      if (allocate(file, 0, size_bytes) == 0)
        return std::make_unique<HostChunk>(std::move(file), size_bytes, false);
    } catch (const Error& error) {
      log(LogLevel::info, "memory", "no huge pages: " + error.message());
    }
    return nullptr;
  }

  std::unique_ptr<Chunk> create_of_pages(std::size_t size_bytes, bool advise_huge) const {
    require_room(size_bytes, size_bytes);
    FileDescriptor file = open_host_file(kind_);
    resize_host_file(file, kind_, size_bytes);
    const bool populate =
        advise_huge && kind_ == HostFileKind::memfd && shared_memory_gets_huge_pages_if_advised();
    const TemporaryMapping mapping(file, numa_node_ >= 0 || populate ? size_bytes : 0);
    prefer_numa_node(mapping, size_bytes);
    if (populate && mapping.base())
      ::madvise(mapping.base(), size_bytes, MADV_HUGEPAGE);
    commit(file, size_bytes, populate ? mapping.base() : nullptr);
    return std::make_unique<HostChunk>(std::move(file), size_bytes, advise_huge);
  }

  static bool shared_memory_gets_huge_pages_if_advised() {
    const auto modes = Sysroot().read_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    return modes && modes->find("[advise]") != std::string::npos;
  }

  /// Commits in steps, with a check of the available memory before each.
  /// @param advised a mapping of the file with MADV_HUGEPAGE, in which page faults allocate the
  /// pages, because fallocate() allocates small pages whatever the mappings advise; nullptr: none
  void commit(const FileDescriptor& file, std::size_t size_bytes, std::byte* advised) const {
    std::size_t done = 0;
    while (done < size_bytes) {
      const std::size_t step = static_cast<std::size_t>(
          std::min<std::uint64_t>(step_bytes(size_bytes, size_bytes - done), size_bytes - done));
#ifdef MADV_POPULATE_WRITE
      // Best effort: pages that it leaves out (before Linux 5.14 all of them) are allocated below.
      if (advised)
        ::madvise(advised + done, step, MADV_POPULATE_WRITE);
#else
      static_cast<void>(advised);
#endif
      if (const int error = allocate(file, done, step))
        throw_not_committed(size_bytes, error);
      done += step;
    }
  }

  std::uint64_t step_bytes(std::size_t size_bytes, std::size_t missing_bytes) const {
    const std::optional<Room> room = require_room(size_bytes, missing_bytes);
    const std::uint64_t share = room ? (room->free_bytes - margin_bytes) / shares_of_room : 0;
    return std::clamp<std::uint64_t>(share / huge_page_bytes * huge_page_bytes, huge_page_bytes,
                                     max_bytes_per_look);
  }

  std::optional<Room> require_room(std::size_t size_bytes, std::size_t missing_bytes) const {
    return shmemctl::require_room(room_, kind_, size_bytes, missing_bytes);
  }

  /// Returns 0 or the errno. A signal only repeats the step.
  static int allocate(const FileDescriptor& file, std::size_t offset, std::size_t size_bytes) {
    while (::fallocate(file.get(), 0, static_cast<off_t>(offset), static_cast<off_t>(size_bytes)) !=
           0)
      if (errno != EINTR)
        return errno;
    return 0;
  }

  [[noreturn]] void throw_not_committed(std::size_t size_bytes, int error) const {
    struct statvfs system {};
    if (kind_ == HostFileKind::devshm && error == ENOSPC && ::statvfs("/dev/shm", &system) == 0)
      throw Error(ExitCode::unavailable, memory_subject(size_bytes, kind_), "commit",
                  fmt::format("/dev/shm is full: its size is {}",
                              format_size_bytes(std::uint64_t{system.f_blocks} * system.f_frsize)),
                  "run mount -o remount,size=50% /dev/shm (docker run --shm-size=16g), set "
                  "SHMEMCTL_HEAP_BACKING=memfd, or lower SHMEMCTL_SYMMETRIC_SIZE");
    throw system_error(memory_subject(size_bytes, kind_), "commit", error,
                       "lower SHMEMCTL_SYMMETRIC_SIZE, or run fewer PEs on this node");
  }

  /// Applies to pages that are allocated from now on. If a container forbids it, that is only
  /// logged, once.
  void prefer_numa_node(const TemporaryMapping& mapping, std::size_t size_bytes) const {
    constexpr long preferred = 1; // MPOL_PREFERRED of linux/mempolicy.h
    constexpr std::size_t max_nodes = 1024;
    constexpr std::size_t word_bits = sizeof(unsigned long) * CHAR_BIT;
    if (numa_node_ < 0 || static_cast<std::size_t>(numa_node_) >= max_nodes || !mapping.base())
      return;
    std::array<unsigned long, max_nodes / word_bits> mask{};
    const auto node = static_cast<std::size_t>(numa_node_);
    mask[node / word_bits] = 1ul << node % word_bits;
    if (::syscall(SYS_mbind, mapping.base(), size_bytes, preferred, mask.data(), max_nodes, 0) ==
            0 ||
        std::exchange(refusal_said_, true))
      return;
    log(LogLevel::info, "memory",
        fmt::format("NUMA node {} cannot be preferred: {}", numa_node_, std::strerror(errno)));
  }

  HostFileKind kind_;
  bool huge_pages_;
  int numa_node_;
  mutable bool refusal_said_ = false;
  AvailableMemory room_;
};

} // namespace

std::unique_ptr<Chunk> create_sparse(HeapBacking& backing, std::size_t size_bytes,
                                     std::size_t used_bytes) {
  constexpr HostFileKind kind = HostFileKind::memfd;
  if (backing.kind() != std::string_view(to_string(kind)))
    return backing.create_of_small_pages(size_bytes);
  require_room(AvailableMemory(), kind, size_bytes, used_bytes);
  FileDescriptor file = open_host_file(kind);
  resize_host_file(file, kind, size_bytes);
  return std::make_unique<HostChunk>(std::move(file), size_bytes, false);
}

std::unique_ptr<HeapBacking> make_host_backing(const HostBackingOptions& options) {
  return std::make_unique<HostBacking>(options);
}

} // namespace shmemctl
