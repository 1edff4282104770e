// The program's own variables in shared memory.
#include <atomic>
#include <cerrno>
#include <fmt/format.h>
#include <mutex>
#include <optional>
#include <pthread.h>
#include <sys/mman.h>
#include <utility>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/signals_blocked.h"
#include "src/base/sysroot.h"
#include "src/base/units.h"
#include "src/memory/kernel_copy.h"
#include "src/memory/program_data.h"
#include "src/memory/symmetric_region.h"

namespace shmemctl {

namespace {

constexpr const char* subject = "this program's global variables";

/// The pages of the variables while they are shared.
class SharedPages {
public:
  /// Shares them. Throws Error (unavailable).
  SharedPages(const PageRange& pages, std::unique_ptr<Chunk> chunk)
      : base_(reinterpret_cast<std::byte*>(pages.begin)), size_bytes_(pages.size_bytes()),
        chunk_(std::move(chunk)) {
    make_shared();
  }
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;
  ~SharedPages();

  int descriptor() const { return chunk_->descriptor(); }
  void before_fork() noexcept { snapshot_ = private_copy(); }
  void after_fork_in_parent() noexcept;
  void after_fork_in_child() noexcept;

private:
  void make_shared();
  std::byte* private_copy() const noexcept;
  void put_in_place(std::byte* copy) noexcept;

  std::byte* base_;
  std::size_t size_bytes_;
  std::unique_ptr<Chunk> chunk_;
  bool shared_ = false;
  std::byte* snapshot_ = nullptr; ///< while fork() runs
};

/// Those that exist, for the handlers of fork(), which take no argument.
std::atomic<SharedPages*> in_force{nullptr};

/// The step that must not be disturbed. Whatever is written to the variables after the kernel has
/// copied them and before they are mapped is lost, so nothing is: no library call that keeps
/// state, no allocation, and errno belongs to the thread.
void SharedPages::make_shared() {
  const SignalsBlocked blocked;
  if (const int error = write_to_file(descriptor(), 0, base_, size_bytes_))
    throw system_error(subject, "copy", error, "lower the size of the program's static arrays");
  chunk_->map(base_);
  shared_ = true;
  in_force.store(this);
}

SharedPages::~SharedPages() {
  if (!shared_)
    return;
  in_force.store(nullptr);
  const SignalsBlocked blocked;
  // Without memory for a copy the variables stay where they are, which only peers could notice.
  if (std::byte* copy = private_copy())
    put_in_place(copy);
}

/// What the variables hold now, in memory of this process alone; nullptr if there is too little.
std::byte* SharedPages::private_copy() const noexcept {
  void* mapped =
      ::mmap(nullptr, size_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    return nullptr;
  auto* copy = static_cast<std::byte*>(mapped);
  if (read_from_file(descriptor(), 0, copy, size_bytes_) == 0)
    return copy;
  ::munmap(mapped, size_bytes_);
  return nullptr;
}

/// Moves the copy's pages over the shared ones. Of no effect if the kernel refuses.
void SharedPages::put_in_place(std::byte* copy) noexcept {
  if (::mremap(copy, size_bytes_, size_bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, base_) == MAP_FAILED)
    ::munmap(copy, size_bytes_);
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

/// fork() gives a child copies of its parent's variables. Shared mappings would make them common,
/// so the child gets a copy that was made just before.
void handle_forks() {
  // The C library has no way to take them back, so they stay and look whether there are pages.
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
      throw system_error(subject, "share", error, "free some memory");
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
  std::size_t size_bytes() const { return program.pages.size_bytes(); }
};

StaticDataRegion::StaticDataRegion(HeapBacking& backing) : impl_(std::make_unique<Impl>(backing)) {
  if (in_force.load())
    throw Error(ExitCode::unavailable, subject, "share", "they are shared already",
                "finalize the first runtime before the next one begins");
  handle_forks();
  if (Sysroot().list("/proc/self/task").size() > 1)
    log(LogLevel::warning, "memory",
        "other threads run while global variables become symmetric: what they write to them just "
        "now may be lost; call shmem_init before threads are started");
  impl_->pages.emplace(impl_->program.pages, backing.create_of_small_pages(impl_->size_bytes()));
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
  return reinterpret_cast<std::byte*>(impl_->program.pages.begin);
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
                     program.pages.begin - program.load_address);
}

} // namespace shmemctl
