#include "transports/rc/pages.h"

#include <cerrno>
#include <sys/mman.h>

#include "src/base/error.h"

namespace shmemctl::rc {

Pages::Pages(std::size_t size_bytes, const char* what) : size_bytes_(size_bytes) {
  void* memory =
      ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    throw system_error(what, "map", errno, "free host memory");
  data_ = static_cast<std::byte*>(memory);
}

Pages::~Pages() {
  if (data_)
    ::munmap(data_, size_bytes_);
}

} // namespace shmemctl::rc
