#include "src/runtime/buffers/pages_view.h"

#include <cerrno>
#include <sys/mman.h>
#include <sys/stat.h>

#include "src/base/error.h"

namespace shmemctl::buffers {

namespace {

constexpr const char* subject = "a buffer's pages";

/// Beyond a file's end there is SIGBUS.
void require_size(const FileDescriptor& file, const FilePart& part) {
  struct stat status {};
  const bool good = ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode);
  const auto size_bytes = good ? static_cast<std::uint64_t>(status.st_size) : 0;
  if (part.size_bytes == 0 || part.size_bytes % page_bytes() != 0 ||
      part.offset_bytes % page_bytes() != 0 || part.offset_bytes > size_bytes ||
      part.size_bytes > size_bytes - part.offset_bytes)
    throw Error(ExitCode::unavailable, subject, "import", "their file is smaller than they are",
                "avoid shrinking the file behind registered memory");
}

} // namespace

PagesView::PagesView(const std::vector<FilePart>& parts, const std::vector<FileDescriptor>& files,
                     bool writable) {
  for (const FilePart& part : parts) {
    require_size(files[part.file], part);
    if (__builtin_add_overflow(size_bytes_, part.size_bytes, &size_bytes_))
      throw Error(ExitCode::unavailable, subject, "import", "they exceed the address space",
                  "run the same version of shmemctl on all hosts");
  }
  void* reserved =
      ::mmap(nullptr, size_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED)
    throw system_error(subject, "map", errno, "raise the limit of address space: ulimit -v");
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
      throw system_error(subject, "map", errno, "raise sysctl vm.max_map_count");
    at += part.size_bytes;
  }
}

PagesView::~PagesView() {
  ::munmap(base_, size_bytes_);
}

} // namespace shmemctl::buffers
