#include "src/runtime/buffers/open_buffer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "src/base/error.h"
#include "transports/shm/shm.h"

namespace shmemctl::buffers {

namespace {
constexpr int wait_interval_ms = 100;
}

MappingRefcounts::Entry::Entry(std::shared_ptr<MappingRefcounts> book, int owner_pe,
                               const BufferHandle& handle)
    : book_(std::move(book)), key_(owner_pe, handle.generation) {
  const std::lock_guard lock(book_->mutex_);
  ++book_->counts_[key_];
}

MappingRefcounts::Entry::~Entry() {
  const std::lock_guard lock(book_->mutex_);
  const auto found = book_->counts_.find(key_);
  if (--found->second == 0)
    book_->counts_.erase(found);
  book_->changed_.notify_all();
}

bool MappingRefcounts::wait_until_gone(int owner_pe, const BufferHandle& handle,
                                       const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  const auto gone = [&] { return counts_.count({owner_pe, handle.generation}) == 0; };
  while (!gone()) {
    if (deadline.passed())
      return false;
    changed_.wait_for(lock, std::chrono::milliseconds(deadline.poll_ms(wait_interval_ms)), gone);
  }
  return true;
}

namespace {

constexpr const char* pages_subject = "pages of a registered buffer";

/// Throws if the file does not contain the part: accesses beyond a file's end cause SIGBUS.
void require_size(const FileDescriptor& file, const FilePart& part) {
  struct stat status {};
  const bool good = ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode);
  const auto size_bytes = good ? static_cast<std::uint64_t>(status.st_size) : 0;
  if (part.size_bytes == 0 || part.size_bytes % page_bytes() != 0 ||
      part.offset_bytes % page_bytes() != 0 || part.offset_bytes > size_bytes ||
      part.size_bytes > size_bytes - part.offset_bytes)
    throw Error(ExitCode::unavailable, pages_subject, "import",
                "the file that holds them is too short",
                "avoid shrinking the file behind registered memory");
}

} // namespace

PagesView::PagesView(const std::vector<FilePart>& parts, const std::vector<FileDescriptor>& files,
                     bool writable) {
  for (const FilePart& part : parts) {
    require_size(files[part.file], part);
    if (__builtin_add_overflow(size_bytes_, part.size_bytes, &size_bytes_))
      throw Error(ExitCode::unavailable, pages_subject, "import",
                  "the sizes that the owner sent exceed the address space",
                  "run the same version of shmemctl in all PEs");
  }
  void* reserved =
      ::mmap(nullptr, size_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED)
    throw system_error(pages_subject, "map", errno, "raise the limit of address space: ulimit -v");
  base_ = static_cast<std::byte*>(reserved);
  try {
    map(parts, files, writable);
  } catch (...) {
    ::munmap(base_, size_bytes_);
    throw;
  }
}

void PagesView::map(const std::vector<FilePart>& parts, const std::vector<FileDescriptor>& files,
                    bool writable) {
  std::byte* at = base_;
  for (const FilePart& part : parts) {
    if (::mmap(at, part.size_bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED | MAP_FIXED,
               files[part.file].get(), static_cast<off_t>(part.offset_bytes)) == MAP_FAILED)
      throw system_error(pages_subject, "map", errno, "raise sysctl vm.max_map_count");
    at += part.size_bytes;
  }
}

PagesView::~PagesView() {
  ::munmap(base_, size_bytes_);
}

} // namespace shmemctl::buffers

namespace shmemctl {

const char* to_string(BufferPathKind kind) {
  switch (kind) {
  case BufferPathKind::zero_copy:
    return "zero-copy";
  case BufferPathKind::attach:
    return "attach";
  case BufferPathKind::staged:
    return "staged";
  }
  return "";
}

namespace buffers {

namespace {
constexpr std::size_t max_bounce_bytes = std::size_t{1} << 20;
}

OpenBuffer::OpenBuffer(int my_pe, const RegisteredBuffer& buffer,
                       std::shared_ptr<const RegistrationTable> table, const Opener& opener)
    : owner_pe_(my_pe), handle_(buffer.handle), opener_(opener), table_(std::move(table)),
      pages_(reinterpret_cast<std::byte*>(buffer.extent.pages.begin)),
      page_gap_bytes_(buffer.extent.page_gap_bytes()), address_(buffer.extent.address),
      size_bytes_(buffer.extent.size_bytes), writable_(buffer.writable),
      on_gpu_(buffer.gpu != nullptr), path_{BufferPathKind::zero_copy,
                                            "it is this PE's own memory"} {}

OpenBuffer::OpenBuffer(std::shared_ptr<OwnerConnection> owner, const BufferHandle& handle,
                       const Opener& opener)
    : owner_pe_(owner->owner_pe()), handle_(handle), opener_(opener), owner_(std::move(owner)),
      table_(owner_, &owner_->table()) {
  const Reply reply = owner_->open(handle);
  address_ = reply.response.address;
  size_bytes_ = reply.response.size_bytes;
  writable_ = reply.response.writable;
  on_gpu_ = reply.response.memory != BufferMemory::host;
  choose_path(reply);
}

void OpenBuffer::choose_path(const Reply& reply) {
  const std::string unmapped = on_gpu_ ? why_gpu_not_mapped(reply) : why_not_mapped(reply);
  if (unmapped.empty()) {
    path_ = {BufferPathKind::zero_copy, "mapped here: " + reply.response.reason};
    return;
  }
  const std::string unattached = why_not_attached();
  if (unattached.empty()) {
    path_ = {BufferPathKind::attach, "not mapped here: " + unmapped};
    return;
  }
  owner_->require_stage();
  path_ = {BufferPathKind::staged, "not mapped here: " + unmapped + "; no attach: " + unattached};
}

std::string OpenBuffer::why_not_mapped(const Reply& reply) {
  if (!opener_.allowed.zero_copy)
    return "mapping is switched off";
  const Response& response = reply.response;
  if (response.parts.empty())
    return response.reason;
  try {
    view_.emplace(response.parts, reply.descriptors, writable_);
  } catch (const Error& error) {
    return error.message();
  }
  const std::size_t room_bytes = view_->size_bytes();
  if (response.page_gap_bytes >= page_bytes() || response.size_bytes > room_bytes ||
      response.page_gap_bytes > room_bytes - response.size_bytes) {
    view_.reset();
    return "its pages do not hold all of it";
  }
  pages_ = view_->base();
  page_gap_bytes_ = response.page_gap_bytes;
  return {};
}

std::string OpenBuffer::why_gpu_not_mapped(const Reply& reply) {
  const Response& response = reply.response;
  if (!opener_.allowed.zero_copy)
    return "mapping is switched off";
  if (response.memory == BufferMemory::gpu_unshared)
    return response.reason;
  if (!opener_.gpu)
    return "this PE has no GPU";
  if (response.memory == BufferMemory::gpu_descriptors && response.parts.empty())
    return response.reason; // descriptors were lost in transit
  GpuImport import{owner_pe_, response.memory, response.device, response.handle, {}};
  std::uint64_t room_bytes = 0;
  for (const FilePart& part : response.parts) {
    import.pieces.push_back({reply.descriptors[part.file].get(), part.size_bytes});
    if (__builtin_add_overflow(room_bytes, part.size_bytes, &room_bytes))
      return "its allocations do not fit the address space";
  }
  if (response.memory == BufferMemory::gpu_descriptors &&
      (response.size_bytes > room_bytes ||
       response.page_gap_bytes > room_bytes - response.size_bytes))
    return "its allocations do not hold all of it";
  try {
    entry_.emplace(opener_.book, owner_pe_, handle_);
    mapping_ = opener_.gpu->map(import);
  } catch (const Error& error) {
    entry_.reset();
    return error.message();
  }
  pages_ = mapping_->base();
  page_gap_bytes_ = response.page_gap_bytes;
  return {};
}

/// Tries the system call with one byte; "" if it works, else why not.
std::string OpenBuffer::why_not_attached() const {
  if (on_gpu_)
    return "system calls do not reach memory of a GPU";
  if (!opener_.allowed.attach)
    return "it is switched off";
  if (owner_->process() <= 0)
    return "the owner is in another PID namespace";
  std::byte byte{};
  const iovec local{&byte, 1}, remote{reinterpret_cast<void*>(address_), 1};
  if (::process_vm_readv(owner_->process(), &local, 1, &remote, 1, 0) == 1)
    return {};
  return std::string("process_vm_readv: ") + std::strerror(errno);
}

void OpenBuffer::attach(bool put, std::uint64_t offset_bytes, void* local,
                        std::size_t size_bytes) const {
  const auto fail = [&](const std::string& why, const char* fix) {
    return Error(ExitCode::unavailable, "buffer of PE " + std::to_string(owner_pe_),
                 put ? "write to it (put)" : "read from it (get)", why, fix);
  };
  // The process number may have been reused if the process has ended.
  if (!owner_->alive())
    throw fail("that PE has closed the connection", "check the output of that PE");
  auto* bytes = static_cast<std::byte*>(local);
  for (std::size_t done = 0; done < size_bytes;) {
    const iovec here{bytes + done, size_bytes - done};
    const iovec there{reinterpret_cast<void*>(address_ + offset_bytes + done), size_bytes - done};
    const ssize_t step = put ? ::process_vm_writev(owner_->process(), &here, 1, &there, 1, 0)
                             : ::process_vm_readv(owner_->process(), &here, 1, &there, 1, 0);
    if (step > 0)
      done += static_cast<std::size_t>(step);
    else if (errno == EFAULT)
      throw fail("memory on one side was freed", "unregister a buffer before freeing its memory");
    else if (errno != EINTR)
      throw fail(std::strerror(errno), "run again; if it persists, report it as a bug in shmemctl");
  }
}

/// Copies in pieces, through host memory, because system calls cannot access GPU memory.
void OpenBuffer::attach_gpu(bool put, std::uint64_t offset_bytes, void* local,
                            std::size_t size_bytes) const {
  auto* const bytes = static_cast<std::byte*>(local);
  std::vector<std::byte> piece(std::min(size_bytes, max_bounce_bytes));
  for (std::size_t done = 0; done < size_bytes;) {
    const std::size_t step = std::min(size_bytes - done, piece.size());
    if (put)
      opener_.gpu->copy(piece.data(), bytes + done, step);
    attach(put, offset_bytes + done, piece.data(), step);
    if (!put)
      opener_.gpu->copy(bytes + done, piece.data(), step);
    done += step;
  }
}

LocalCopy OpenBuffer::copy_of(const void* local) const {
  if (is_gpu_local(local))
    return [gpu = opener_.gpu](void* to, const void* from, std::size_t size_bytes) {
      gpu->copy(to, from, size_bytes);
    };
  return
      [](void* to, const void* from, std::size_t size_bytes) { std::memcpy(to, from, size_bytes); };
}

void OpenBuffer::require_writable() const {
  if (!writable_)
    throw Error(ExitCode::usage, "buffer of PE " + std::to_string(owner_pe_), "write to it (put)",
                "its memory is read-only", "use get only, or register writable memory");
}

void OpenBuffer::put(std::uint64_t offset_bytes, const void* source, std::size_t size_bytes) const {
  require_writable();
  const bool by_gpu = on_gpu_ || is_gpu_local(source);
  if (path_.kind == BufferPathKind::staged)
    owner_->staged_put(handle_, offset_bytes, source, size_bytes, opener_.user, copy_of(source));
  else if (path_.kind == BufferPathKind::attach)
    (this->*(by_gpu ? &OpenBuffer::attach_gpu : &OpenBuffer::attach))(
        true, offset_bytes, const_cast<void*>(source), size_bytes);
  else if (by_gpu)
    opener_.gpu->copy(at(offset_bytes), source, size_bytes);
  else
    copy_to_shared(at(offset_bytes), source, size_bytes);
}

void OpenBuffer::get(void* target, std::uint64_t offset_bytes, std::size_t size_bytes) const {
  const bool by_gpu = on_gpu_ || is_gpu_local(target);
  if (path_.kind == BufferPathKind::staged)
    owner_->staged_get(target, handle_, offset_bytes, size_bytes, opener_.user, copy_of(target));
  else if (path_.kind == BufferPathKind::attach)
    (this->*(by_gpu ? &OpenBuffer::attach_gpu : &OpenBuffer::attach))(false, offset_bytes, target,
                                                                      size_bytes);
  else if (by_gpu)
    opener_.gpu->copy(target, at(offset_bytes), size_bytes);
  else
    std::memmove(target, at(offset_bytes), size_bytes);
}

} // namespace buffers

} // namespace shmemctl

namespace shmemctl::buffers {

OpenCache::Entries::iterator OpenCache::position(int owner_pe, std::uint32_t slot) {
  return std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
    return entry->owner_pe() == owner_pe && entry->handle().slot == slot;
  });
}

std::shared_ptr<const OpenBuffer> OpenCache::find(int owner_pe, const BufferHandle& handle) {
  const std::lock_guard lock(mutex_);
  const auto found = position(owner_pe, handle.slot);
  if (found == entries_.end() || (*found)->handle() != handle)
    return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return entries_.front();
}

void OpenCache::insert(std::shared_ptr<const OpenBuffer> opened) {
  Entries gone; // declared before the lock: unmapped after the lock is released
  const std::lock_guard lock(mutex_);
  const auto same = position(opened->owner_pe(), opened->handle().slot);
  if (same != entries_.end()) {
    if ((*same)->handle().generation > opened->handle().generation)
      return;
    gone.splice(gone.end(), entries_, same);
  }
  entries_.push_front(std::move(opened));
  for (auto entry = std::next(entries_.begin()); entry != entries_.end();) {
    const auto current = entry++;
    if (!(*current)->live())
      gone.splice(gone.end(), entries_, current);
  }
  while (entries_.size() > limit_)
    gone.splice(gone.end(), entries_, std::prev(entries_.end()));
}

void OpenCache::erase(int owner_pe, const BufferHandle& handle) {
  Entries gone;
  const std::lock_guard lock(mutex_);
  const auto found = position(owner_pe, handle.slot);
  if (found != entries_.end() && (*found)->handle() == handle)
    gone.splice(gone.end(), entries_, found);
}

std::size_t OpenCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

} // namespace shmemctl::buffers
