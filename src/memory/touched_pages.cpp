#include "src/memory/touched_pages.h"

#include <fcntl.h>
#include <unistd.h>

namespace shmemctl {

TouchedPages::TouchedPages()
    : table_(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)),
      page_bytes_(static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE))) {}

} // namespace shmemctl
