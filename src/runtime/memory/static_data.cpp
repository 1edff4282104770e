#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "src/base/error.h"
#include "src/base/file_descriptor.h"
#include "src/base/log.h"
#include "src/base/process.h"
#include "src/base/round_up.h"
#include "src/base/sysroot.h"
#include "src/base/units.h"
#include "src/runtime/memory/backing.h"
#include "src/runtime/memory/process_vm_copy.h"
#include "src/runtime/memory/siphash.h"
#include "src/runtime/memory/static_data.h"
#include "src/runtime/memory/symmetric_region.h"

namespace shmemctl {

namespace {

constexpr const char* static_data_subject = "this program's global variables";
constexpr const char* keep_private =
    "link the program with the linker's default script, and without -N";

bool overlap(const PageRange& left, const PageRange& right) {
  return left.begin < right.end && right.begin < left.end;
}

PageRange common(const PageRange& left, const PageRange& right) {
  const PageRange both{std::max(left.begin, right.begin), std::min(left.end, right.end)};
  return both.begin < both.end ? both : PageRange{};
}

/// `ranges` without `hole`.
std::vector<PageRange> without(const std::vector<PageRange>& ranges, const PageRange& hole) {
  std::vector<PageRange> rest;
  for (const PageRange& range : ranges)
    for (const PageRange& part :
         {PageRange{range.begin, std::clamp(hole.begin, range.begin, range.end)},
          PageRange{std::clamp(hole.end, range.begin, range.end), range.end}})
      if (part.size_bytes() > 0)
        rest.push_back(part);
  return rest;
}

/// The ranges sorted, with adjacent and overlapping ones merged.
std::vector<PageRange> joined(std::vector<PageRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const PageRange& left, const PageRange& right) { return left.begin < right.begin; });
  std::vector<PageRange> out;
  for (const PageRange& range : ranges)
    if (!out.empty() && range.begin <= out.back().end)
      out.back().end = std::max(out.back().end, range.end);
    else if (range.size_bytes() > 0)
      out.push_back(range);
  return out;
}

/// A hash of the executable file, for programs without a build id.
std::string hash_of_program_file() {
  const FileDescriptor file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  if (!file)
    throw system_error("/proc/self/exe", "read", errno, "mount /proc in this container");
  std::array<std::uint8_t, 16> chain{};
  std::array<std::byte, 1 << 16> block;
  while (true) {
    const ssize_t size_bytes = ::read(file.get(), block.data(), block.size());
    if (size_bytes < 0 && errno == EINTR)
      continue;
    if (size_bytes < 0)
      throw system_error("/proc/self/exe", "read", errno, "check the file system it is on");
    if (size_bytes == 0)
      break;
    const std::uint64_t hash = siphash(chain, block.data(), static_cast<std::size_t>(size_bytes));
    std::memcpy(chain.data(), &hash, sizeof hash);
  }
  std::uint64_t hash = 0;
  std::memcpy(&hash, chain.data(), sizeof hash);
  return fmt::format("contents-{:016x}", hash);
}

struct Search {
  DataLayout layout;
  std::uintptr_t load_address = 0;
  std::optional<std::string> build_id;
};

/// Callback of dl_iterate_phdr(). The first object is the main program; returns 1 to stop there.
int look_at_main_program(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  const std::span headers(info->dlpi_phdr, info->dlpi_phnum);
  search.load_address = info->dlpi_addr;
  search.layout =
      data_layout(headers, info->dlpi_addr, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  for (const ElfW(Phdr) & header : headers)
    if (header.p_type == PT_NOTE && !search.build_id)
      search.build_id = find_build_id(
          {reinterpret_cast<const std::byte*>(info->dlpi_addr + header.p_vaddr), header.p_memsz});
  return 1;
}

} // namespace

DataLayout data_layout(std::span<const ElfW(Phdr)> headers, std::uintptr_t load_address,
                       std::size_t page_bytes) {
  const auto down = [&](std::uintptr_t address) { return address / page_bytes * page_bytes; };
  const auto up = [&](std::uintptr_t address) { return down(address + page_bytes - 1); };
  PageRange relro;
  std::vector<PageRange> writable, read_only, code;
  DataLayout layout;
  for (const ElfW(Phdr) & header : headers) {
    const std::uintptr_t begin = load_address + header.p_vaddr;
    // The loader protects whole pages only: a page in which RELRO ends stays writable.
    if (header.p_type == PT_GNU_RELRO)
      relro = {down(begin), down(begin + header.p_memsz)};
    if (header.p_type != PT_LOAD || header.p_memsz == 0)
      continue;
    const PageRange pages{down(begin), up(begin + header.p_memsz)};
    const bool is_writable = (header.p_flags & PF_W) != 0, is_code = (header.p_flags & PF_X) != 0;
    if (is_writable && is_code)
      layout.problem = "a segment of it is writable and executable";
    (is_code ? code : is_writable ? writable : read_only).push_back(pages);
    if (is_writable && !is_code && header.p_filesz > 0)
      layout.stored.push_back({pages.begin, up(begin + header.p_filesz)});
  }
  writable = joined(without(writable, relro));
  if (layout.problem.empty() && writable.empty())
    layout.problem = "no segment of it is writable and not executable";
  if (!layout.problem.empty())
    return layout;
  layout.pages = {writable.front().begin, writable.back().end};
  code.push_back(relro);
  for (const PageRange& range : code)
    if (overlap(range, layout.pages))
      layout.problem = "code, or what the loader protects (RELRO), lies between its writable "
                       "segments";
  std::vector<PageRange> between{layout.pages};
  for (const PageRange& range : writable)
    between = without(between, range);
  for (const PageRange& range : read_only)
    for (const PageRange& gap : between)
      if (const PageRange part = common(range, gap); part.size_bytes() > 0)
        layout.constants.push_back(part);
  layout.constants = joined(std::move(layout.constants));
  for (const PageRange& range : layout.constants)
    between = without(between, range);
  layout.gaps = std::move(between);
  layout.stored = joined(without(layout.stored, relro));
  layout.zeroed = std::move(writable);
  for (const PageRange& range : layout.stored)
    layout.zeroed = without(layout.zeroed, range);
  return layout;
}

std::optional<std::string> find_build_id(std::span<const std::byte> notes) {
  const auto padded = [](std::uint64_t size_bytes) { return round_up(size_bytes, 4); };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes.data(), sizeof note);
    const std::uint64_t name_bytes = padded(note.n_namesz), text_bytes = padded(note.n_descsz);
    if (sizeof note + name_bytes + text_bytes > notes.size())
      return std::nullopt;
    const std::byte* name = notes.data() + sizeof note;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
      std::string text;
      for (const std::byte byte : notes.subspan(sizeof note + name_bytes, note.n_descsz))
        text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
      return text;
    }
    notes = notes.subspan(sizeof note + name_bytes + text_bytes);
  }
  return std::nullopt;
}

ProgramData find_program_data() {
  Search search;
  ::dl_iterate_phdr(look_at_main_program, &search);
  if (!search.layout.problem.empty())
    throw Error(ExitCode::unavailable, static_data_subject, "share", search.layout.problem,
                keep_private);
  return {std::move(search.layout), search.load_address,
          search.build_id ? *search.build_id : hash_of_program_file()};
}

TouchedPages::TouchedPages()
    : table_(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)),
      page_bytes_(static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE))) {}

// The program's own variables in shared memory. Untouched pages of zeros are not copied and take no
// memory. If the program has several writable segments, the region spans from the first to the
// last, including read-only data in between.

namespace {

std::byte* at(std::uintptr_t address) {
  return reinterpret_cast<std::byte*>(address);
}

/// Reserves the unmapped pages between the program's segments, so that no other mapping is created
/// there, which would be replaced when the region is mapped. The destructor releases them.
class HeldGaps {
public:
  /// Throws Error (unavailable) if something is mapped in the gaps.
  explicit HeldGaps(const std::vector<PageRange>& gaps) {
    for (const PageRange& gap : gaps)
      hold(gap);
  }
  HeldGaps(const HeldGaps&) = delete;
  HeldGaps& operator=(const HeldGaps&) = delete;
  ~HeldGaps() {
    for (const PageRange& gap : held_)
      ::munmap(at(gap.begin), gap.size_bytes());
  }

private:
  void hold(const PageRange& gap) {
    held_.reserve(held_.size() + 1);
    void* mapped = ::mmap(at(gap.begin), gap.size_bytes(), PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    // Before Linux 4.17 the address is only a hint.
    if (mapped != MAP_FAILED && mapped != at(gap.begin)) {
      ::munmap(mapped, gap.size_bytes());
      errno = EEXIST;
      mapped = MAP_FAILED;
    }
    if (mapped == MAP_FAILED)
      throw system_error(
          fmt::format("{} of address space at {:#x}, between the program's variables",
                      format_size_bytes(gap.size_bytes()), gap.begin),
          "reserve", errno,
          "start the program directly, not through the loader, or allocate large arrays with "
          "shmem_malloc");
    held_.push_back(gap);
  }

  std::vector<PageRange> held_;
};

/// The pages that must be copied when the variables' pages are replaced by shared ones.
class PagesToCopy {
public:
  explicit PagesToCopy(const DataLayout& layout) : layout_(layout) {}

  /// Calls take(PageRange) for each range until a call does not return 0; returns that result, or
  /// 0. Allocates nothing.
  template <class Take>
  int for_each(const Take& take) const {
    for (const std::vector<PageRange>* whole : {&layout_.stored, &layout_.constants})
      for (const PageRange& range : *whole)
        if (const int result = take(range))
          return result;
    for (const PageRange& range : layout_.zeroed)
      if (const int result = touched_.for_each_run(range, take))
        return result;
    return 0;
  }

  std::size_t size_bytes() const {
    std::size_t sum = 0;
    for_each([&sum](const PageRange& range) {
      sum += range.size_bytes();
      return 0;
    });
    return sum;
  }

private:
  const DataLayout& layout_;
  TouchedPages touched_;
};

/// The pages of the variables while they are shared.
class SharedPages {
public:
  /// Shares the pages. Throws Error (unavailable).
  SharedPages(const DataLayout& layout, HeapBacking& backing)
      : base_(at(layout.pages.begin)), size_bytes_(layout.pages.size_bytes()),
        constants_(layout.constants), gaps_(layout.gaps) {
    const PagesToCopy pages(layout);
    chunk_ = create_sparse(backing, size_bytes_, pages.size_bytes());
    make_shared(pages);
  }
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;
  ~SharedPages();

  int descriptor() const { return chunk_->descriptor(); }
  void before_fork() noexcept { snapshot_ = private_copy(); }
  void after_fork_in_parent() noexcept;
  void after_fork_in_child() noexcept;

private:
  void make_shared(const PagesToCopy& pages);
  int copy_to(std::byte* memory) const noexcept;
  std::byte* private_copy() const noexcept;
  void put_in_place(std::byte* copy) noexcept;

  std::byte* base_;
  std::size_t size_bytes_;
  /// Read-only data, writable while the pages are shared, because NICs register only writable
  /// memory.
  std::vector<PageRange> constants_;
  HeldGaps gaps_;
  std::unique_ptr<Chunk> chunk_;
  bool shared_ = false;
  std::byte* snapshot_ = nullptr; ///< while fork() runs
};

/// The existing object, if any, for the handlers of fork(), which take no argument.
std::atomic<SharedPages*> in_force{nullptr};

/// Writes to the variables between the kernel's copy and the mapping are lost, so this function
/// must not cause any: it makes no allocation and no call of a library that keeps state. errno is a
/// variable of the thread, so it is not affected.
void SharedPages::make_shared(const PagesToCopy& pages) {
  const SignalsBlocked blocked;
  const int error = pages.for_each([this](const PageRange& range) {
    return write_to_file(descriptor(), range.begin - reinterpret_cast<std::uintptr_t>(base_),
                         at(range.begin), range.size_bytes());
  });
  if (error != 0)
    throw system_error(static_data_subject, "copy", error, "reduce the program's static arrays");
  chunk_->map(base_);
  shared_ = true;
  in_force.store(this);
}

SharedPages::~SharedPages() {
  if (!shared_)
    return;
  in_force.store(nullptr);
  const SignalsBlocked blocked;
  // If there is no memory for a copy, the variables stay in shared memory, which only peers could
  // notice.
  if (std::byte* copy = private_copy())
    put_in_place(copy);
}

/// Copies the file's pages to `memory`, which is zeroed; returns 0 or the errno. A page that no PE
/// has touched is a hole in the file, and is skipped.
int SharedPages::copy_to(std::byte* memory) const noexcept {
  const auto seek = [this](std::size_t from, int whence) {
    return ::syscall(SYS_lseek, descriptor(), static_cast<off_t>(from), whence);
  };
  for (std::size_t from = 0; from < size_bytes_;) {
    const long data = seek(from, SEEK_DATA);
    if (data < 0 && errno == ENXIO) // from there on the file has only holes
      return 0;
    // If the kernel does not report holes, the whole rest is copied.
    const auto begin = data < 0 ? from : static_cast<std::size_t>(data);
    const long hole = data < 0 ? -1 : seek(begin, SEEK_HOLE);
    const std::size_t end =
        hole < 0 ? size_bytes_ : std::min(static_cast<std::size_t>(hole), size_bytes_);
    if (begin >= end)
      return 0;
    if (const int error = read_from_file(descriptor(), begin, memory + begin, end - begin))
      return error;
    from = end;
  }
  return 0;
}

/// A private copy of the variables; nullptr if there is not enough memory.
std::byte* SharedPages::private_copy() const noexcept {
  void* mapped = ::mmap(nullptr, size_bytes_, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    return nullptr;
  auto* copy = static_cast<std::byte*>(mapped);
  if (copy_to(copy) == 0)
    return copy;
  ::munmap(mapped, size_bytes_);
  return nullptr;
}

/// Moves the copy's pages to the address of the shared ones. No effect if the kernel refuses.
void SharedPages::put_in_place(std::byte* copy) noexcept {
  if (!move_pages(copy, base_, size_bytes_)) {
    ::munmap(copy, size_bytes_);
    return;
  }
  for (const PageRange& range : constants_)
    ::mprotect(at(range.begin), range.size_bytes(), PROT_READ);
}

void SharedPages::after_fork_in_parent() noexcept {
  if (snapshot_)
    ::munmap(std::exchange(snapshot_, nullptr), size_bytes_);
}

void SharedPages::after_fork_in_child() noexcept {
  if (!snapshot_)
    return;
  put_in_place(std::exchange(snapshot_, nullptr));
  shared_ = false;
  in_force.store(nullptr);
}

/// Installs handlers of fork(). A child must have its own copy of the parent's variables; with
/// shared mappings it would share them, so it gets a copy that is made just before the fork.
void handle_forks() {
  // The C library cannot unregister handlers, so they stay and check whether the pages are shared.
  static std::once_flag once;
  std::call_once(once, [] {
    const auto before = [] {
      if (SharedPages* pages = in_force.load())
        pages->before_fork();
    };
    const auto in_parent = [] {
      if (SharedPages* pages = in_force.load())
        pages->after_fork_in_parent();
    };
    const auto in_child = [] {
      if (SharedPages* pages = in_force.load())
        pages->after_fork_in_child();
    };
    if (const int error = ::pthread_atfork(before, in_parent, in_child))
      throw system_error(static_data_subject, "share", error, "free some memory");
  });
}

} // namespace

struct StaticDataRegion::Impl {
  HeapBacking& backing;
  ProgramData program = find_program_data();
  std::optional<SharedPages> pages;
  Reservation peers_space;
  std::size_t my_slot = 0;

  explicit Impl(HeapBacking& its_backing) : backing(its_backing) {}
  std::size_t size_bytes() const { return program.pages().size_bytes(); }
};

StaticDataRegion::StaticDataRegion(HeapBacking& backing) : impl_(std::make_unique<Impl>(backing)) {
  if (in_force.load())
    throw Error(ExitCode::unavailable, static_data_subject, "share", "they are already shared",
                "finalize the first runtime before starting the next one");
  handle_forks();
  if (Sysroot().list("/proc/self/task").size() > 1)
    log(LogLevel::warning, "memory",
        "other threads run while global variables become symmetric: their writes to these "
        "variables may be lost; call shmem_init before starting threads");
  impl_->pages.emplace(impl_->program.layout, backing);
}

StaticDataRegion::~StaticDataRegion() = default;

void StaticDataRegion::share(LocalPeers& peers, const Deadline& deadline) {
  Impl& own = *impl_;
  const auto slots = static_cast<std::size_t>(peers.slots());
  own.my_slot = static_cast<std::size_t>(peers.my_slot());
  const std::size_t size_bytes = own.size_bytes();
  if (slots == 1)
    return;
  Reservation space(slots * size_bytes);
  std::vector<FileDescriptor> theirs = peers.exchange(own.pages->descriptor(), deadline);
  for (std::size_t slot = 0; slot < slots; ++slot)
    if (slot != own.my_slot)
      own.backing.import(std::move(theirs[slot]), size_bytes)
          ->map(space.base() + slot * size_bytes);
  own.peers_space = std::move(space);
  peers.exchange(-1, deadline);
}

std::byte* StaticDataRegion::base() const {
  return reinterpret_cast<std::byte*>(impl_->program.pages().begin);
}

std::size_t StaticDataRegion::size_bytes() const {
  return impl_->size_bytes();
}

std::byte* StaticDataRegion::slot_base(int slot) const {
  const auto index = static_cast<std::size_t>(slot);
  if (index == impl_->my_slot)
    return base();
  std::byte* space = impl_->peers_space.base();
  return space ? space + index * impl_->size_bytes() : nullptr;
}

std::string StaticDataRegion::fingerprint() const {
  const ProgramData& program = impl_->program;
  return fmt::format("build {}, data of {} bytes at {:#x}", program.build_id, impl_->size_bytes(),
                     program.pages().begin - program.load_address);
}

} // namespace shmemctl
