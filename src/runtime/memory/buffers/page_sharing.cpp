#include "src/runtime/memory/buffers/page_sharing.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/rseq.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file_descriptor.h"
#include "src/base/log.h"
#include "src/base/process.h"
#include "src/runtime/memory/process_vm_copy.h"

namespace shmemctl {

namespace {

// Constants of Linux 5.19 and 5.14, which older kernel headers do not define.
constexpr std::uint64_t hold_on_shared_memory = std::uint64_t{1} << 12;
constexpr int populate_read = 22;

void* pointer(const PageSpan& pages) {
  return reinterpret_cast<void*>(pages.begin);
}

FileDescriptor open_fault_file() noexcept {
  // Without O_NONBLOCK poll() would report an error; it is never polled.
  FileDescriptor file(static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC)));
  uffdio_api api{UFFD_API, UFFD_FEATURE_PAGEFAULT_FLAG_WP | hold_on_shared_memory, 0};
  if (file && ::ioctl(file.get(), UFFDIO_API, &api) != 0)
    file.reset();
  return file;
}

/// From hold() to the destructor every write to the pages blocks, and is then executed on the pages
/// that are mapped there by then. Meanwhile the thread itself must not allocate, because the
/// allocator's memory may be in these pages.
class WriterHold {
public:
  explicit WriterHold(const PageSpan& pages) noexcept : range_{pages.begin, pages.size_bytes()} {}
  WriterHold(const WriterHold&) = delete;
  WriterHold& operator=(const WriterHold&) = delete;
  ~WriterHold() {
    if (!file_)
      return;
    // Makes pages that were not replaced writable again; no effect on replaced ones.
    uffdio_writeprotect writable{range_, 0};
    ::ioctl(file_.get(), UFFDIO_WRITEPROTECT, &writable);
    ::ioctl(file_.get(), UFFDIO_UNREGISTER, &range_);
    ::ioctl(file_.get(), UFFDIO_WAKE, &range_);
  }

  int hold() noexcept {
    FileDescriptor file = open_fault_file();
    uffdio_register wanted{range_, UFFDIO_REGISTER_MODE_WP, 0};
    if (!file || ::ioctl(file.get(), UFFDIO_REGISTER, &wanted) != 0)
      return ENOTSUP;
    file_ = std::move(file);
    // Only pages with a page table entry can be protected, so all pages are touched first.
    if (::madvise(reinterpret_cast<void*>(range_.start), range_.len, populate_read) != 0)
      return errno;
    uffdio_writeprotect held{range_, UFFDIO_WRITEPROTECT_MODE_WP};
    return ::ioctl(file_.get(), UFFDIO_WRITEPROTECT, &held) == 0 ? 0 : errno;
  }

private:
  uffdio_range range_;
  FileDescriptor file_;
};

bool overlap(const PageSpan& pages, std::uintptr_t begin, std::uintptr_t end) {
  return begin < pages.end && end > pages.begin;
}

} // namespace

bool writers_can_be_held() {
  static const bool can = static_cast<bool>(open_fault_file());
  return can;
}

bool holds_own_stack(const PageSpan& pages) {
  // Size of the part of the thread's control block to which the kernel writes. It must not exceed
  // the control block, since other memory may follow directly.
  constexpr std::uintptr_t control_block_bytes = 2048;
  const auto control = reinterpret_cast<std::uintptr_t>(::pthread_self());
  const auto error_word = reinterpret_cast<std::uintptr_t>(&errno);
  if (overlap(pages, control, control + control_block_bytes) ||
      overlap(pages, error_word, error_word + sizeof errno))
    return true;
  // glibc since 2.35 has an rseq area; the symbol is looked up, because the binary may run with an
  // older glibc.
  static const auto* const rseq_offset =
      static_cast<const std::ptrdiff_t*>(::dlsym(RTLD_DEFAULT, "__rseq_offset"));
  if (rseq_offset) {
    const auto restartable = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer()) +
                             static_cast<std::uintptr_t>(*rseq_offset);
    if (overlap(pages, restartable, restartable + sizeof(struct rseq)))
      return true;
  }
  pthread_attr_t attributes;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0)
    return true;
  void* base = nullptr;
  std::size_t size_bytes = 0;
  ::pthread_attr_getstack(&attributes, &base, &size_bytes);
  ::pthread_attr_destroy(&attributes);
  const auto begin = reinterpret_cast<std::uintptr_t>(base);
  return overlap(pages, begin, begin + size_bytes);
}

namespace {

/// Libraries that cache memory registrations (UCX, libfabric, MPI) hook the C library's mapping
/// functions to detect unmapped pages. The hooks allocate memory, perhaps in these pages, so the
/// replacement itself bypasses them; this call, which changes nothing, notifies them afterwards.
void tell_memory_hooks(const PageSpan& pages) {
  static_cast<void>(::mremap(pointer(pages), pages.size_bytes(), pages.size_bytes(), 0));
}

} // namespace

int share_pages(const PageSpan& pages, int file, std::uint64_t offset_bytes, bool hold) noexcept {
  {
    const SignalsBlocked blocked;
    WriterHold writers(pages);
    if (const int error = hold ? writers.hold() : 0)
      return error;
    if (const int error = write_to_file(file, offset_bytes, pointer(pages), pages.size_bytes()))
      return error;
    // A raw system call: a sanitizer would take a call of the C library for a write to the pages.
    const long mapped = ::syscall(SYS_mmap, pages.begin, pages.size_bytes(), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_FIXED, file, offset_bytes);
    if (mapped == -1)
      return errno;
  }
  tell_memory_hooks(pages);
  return 0;
}

int make_pages_private(const PageSpan& pages, int file, std::uint64_t offset_bytes, int protection,
                       bool hold) noexcept {
  const std::size_t size_bytes = pages.size_bytes();
  void* copy =
      ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED)
    return errno;
  int error = 0;
  {
    const SignalsBlocked blocked;
    WriterHold writers(pages);
    error = hold ? writers.hold() : 0;
    if (error == 0)
      error = read_from_file(file, offset_bytes, copy, size_bytes);
    if (error == 0 && protection != (PROT_READ | PROT_WRITE))
      error = ::mprotect(copy, size_bytes, protection) == 0 ? 0 : errno;
    if (error == 0 && ::syscall(SYS_mremap, copy, size_bytes, size_bytes,
                                MREMAP_MAYMOVE | MREMAP_FIXED, pages.begin) == -1)
      error = errno;
  }
  if (error != 0)
    ::munmap(copy, size_bytes);
  else
    tell_memory_hooks(pages);
  return error;
}

namespace {

/// Whether these pages contain nothing but the buffer.
bool alone_in(const PageSpan& pages, const BufferExtent& buffer) {
  return pages.begin >= buffer.address && pages.end <= buffer.end();
}

std::optional<std::string> why_not_replaceable(const MappedArea& part,
                                               const SharingRequest& request) {
  if (!request.may_replace_pages)
    return "its pages must stay (asked for at registration)";
  if (!part.writable)
    return "read-only memory is not replaced";
  if (part.executable)
    return "executable memory is not replaced";
  if (part.name == "[stack]" || holds_own_stack(part.pages))
    return "a stack is not replaced";
  if (!writers_can_be_held() && !alone_in(part.pages, request.buffer))
    return "it shares a page with other data, to which threads may write at this moment "
           "(userfaultfd is not permitted here): align it to whole pages";
  return std::nullopt;
}

void adopt(const PageSpan& pages, const BufferExtent& buffer, HeapBacking& backing,
           std::vector<SharedPiece>& pieces) {
  const std::unique_ptr<Chunk> chunk = backing.create_of_small_pages(pages.size_bytes());
  FileDescriptor copy(::fcntl(chunk->descriptor(), F_DUPFD_CLOEXEC, 0));
  if (!copy)
    throw system_error("memory of a registered buffer", "duplicate its descriptor", errno,
                       "raise the limit of open files: ulimit -n");
  auto file = make_page_file(std::move(copy), true);
  pieces.reserve(pieces.size() + 1); // push_back() must not fail once the pages are replaced
  const bool hold = writers_can_be_held();
  int error = share_pages(pages, file->descriptor.get(), 0, hold);
  // Writers to a private mapping of a file cannot be blocked.
  if (error == ENOTSUP && hold && alone_in(pages, buffer))
    error = share_pages(pages, file->descriptor.get(), 0, false);
  if (error != 0)
    throw system_error("pages of a registered buffer", "replace", error,
                       "register memory from mmap or aligned_alloc, in whole pages");
  pieces.push_back({pages, std::move(file), 0, 0});
}

} // namespace

std::optional<std::string> why_not_shareable(const std::vector<MappedArea>& map,
                                             const PageSpan& pages, const SharingRequest& request) {
  for (const MappedArea& whole : map) {
    const std::vector<MappedArea> part = mappings_of({whole}, pages);
    if (part.empty())
      continue;
    if (whole.shared) {
      if (!open_file_of(whole))
        return "the file of this shared mapping cannot be opened again: keep its descriptor open";
    } else if (auto reason = why_not_replaceable(part[0], request)) {
      return reason;
    }
  }
  return std::nullopt;
}

void share(const std::vector<MappedArea>& map, const PageSpan& pages, const SharingRequest& request,
           HeapBacking& backing, std::vector<SharedPiece>& pieces) {
  if (const auto reason = why_not_shareable(map, pages, request))
    throw Error(ExitCode::unavailable, "pages of a registered buffer", "share", *reason,
                "copy through the symmetric heap instead");
  PageSpan run{pages.begin, pages.begin}; // adjacent ranges of private memory
  for (const MappedArea& whole : map) {
    for (const MappedArea& part : mappings_of({whole}, pages)) {
      if (!part.shared) {
        run.end = part.pages.end;
        continue;
      }
      if (run.size_bytes() > 0)
        adopt(run, request.buffer, backing, pieces);
      run = {part.pages.end, part.pages.end};
      pieces.push_back(
          {part.pages, make_page_file(open_file_of(whole), false), part.offset_bytes, 0});
    }
  }
  if (run.size_bytes() > 0)
    adopt(run, request.buffer, backing, pieces);
}

std::vector<MappedArea> still_mapped(const std::vector<MappedArea>& map, const SharedPiece& piece) {
  std::vector<MappedArea> parts = mappings_of(map, piece.pages);
  std::erase_if(parts, [&](const MappedArea& part) {
    return !part.shared || !part.is_of_file(piece.file->device, piece.file->inode) ||
           part.offset_bytes != piece.offset_bytes + (part.pages.begin - piece.pages.begin);
  });
  return parts;
}

std::size_t unshare(const std::vector<MappedArea>& map, const SharedPiece& piece) noexcept {
  std::size_t gone_bytes = piece.pages.size_bytes();
  bool all_private = piece.file->adopted;
  for (const MappedArea& part : still_mapped(map, piece)) {
    gone_bytes -= part.pages.size_bytes();
    if (!piece.file->adopted)
      continue;
    const int protection = (part.readable ? PROT_READ : 0) | (part.writable ? PROT_WRITE : 0);
    // Unreadable memory cannot be write-protected, and has no writers.
    const bool hold = writers_can_be_held() && part.readable;
    const int error = make_pages_private(part.pages, piece.file->descriptor.get(),
                                         part.offset_bytes, protection, hold);
    if (error == 0)
      continue;
    all_private = false;
    log(LogLevel::warning, "memory",
        fmt::format("{} bytes of an unregistered buffer stay shared memory: {}",
                    part.pages.size_bytes(), std::strerror(error)));
  }
  // Memory that the program has moved to another address may still be in use.
  if (all_private && gone_bytes == 0)
    ::fallocate(piece.file->descriptor.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                static_cast<off_t>(piece.offset_bytes),
                static_cast<off_t>(piece.pages.size_bytes()));
  return gone_bytes;
}

} // namespace shmemctl
