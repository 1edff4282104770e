#include <cerrno>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/runtime/memory/process_vm_copy.h"

namespace shmemctl {

namespace {

/// @param call SYS_pwrite64 or SYS_pread64
int copy(long call, int file, std::uint64_t offset_bytes, void* memory,
         std::size_t size_bytes) noexcept {
  auto* bytes = static_cast<std::byte*>(memory);
  std::size_t done = 0;
  while (done < size_bytes) {
    const long step = ::syscall(call, file, bytes + done, size_bytes - done, offset_bytes + done);
    if (step <= 0 && errno != EINTR)
      return step == 0 ? EIO : errno;
    if (step > 0)
      done += static_cast<std::size_t>(step);
  }
  return 0;
}

} // namespace

int write_to_file(int file, std::uint64_t offset_bytes, const void* memory,
                  std::size_t size_bytes) noexcept {
  return copy(SYS_pwrite64, file, offset_bytes, const_cast<void*>(memory), size_bytes);
}

int read_from_file(int file, std::uint64_t offset_bytes, void* memory,
                   std::size_t size_bytes) noexcept {
  return copy(SYS_pread64, file, offset_bytes, memory, size_bytes);
}

bool move_pages(void* from, void* to, std::size_t size_bytes) noexcept {
  return ::syscall(SYS_mremap, from, size_bytes, size_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) !=
         -1;
}

} // namespace shmemctl
