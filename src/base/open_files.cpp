#include "src/base/open_files.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <limits>
#include <string>
#include <sys/resource.h>

#include "src/base/error.h"

namespace shmemctl {

namespace {
/// The limit that a medium-sized job needs: a few files for each peer.
constexpr std::size_t usual_limit = 4096;
} // namespace

bool raise_open_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max)
    return false;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

std::size_t open_file_limit() {
  constexpr std::size_t longest = std::numeric_limits<int>::max();
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return longest;
  return std::min(static_cast<std::size_t>(limit.rlim_cur), longest);
}

std::size_t free_descriptors(std::size_t enough) {
  const std::size_t limit = open_file_limit();
  std::size_t free = 0;
  // Tests each number instead of reading /proc/self/fd, which would need a descriptor itself.
  for (std::size_t number = 0; number < limit && free < enough; ++number)
    if (::fcntl(static_cast<int>(number), F_GETFD) < 0 && errno == EBADF)
      ++free;
  return free;
}

void require_descriptors(std::size_t needed, const char* subject, const char* attempted) {
  if (free_descriptors(needed) >= needed)
    return;
  raise_open_file_limit();
  const std::size_t free = free_descriptors(needed);
  if (free >= needed)
    return;
  const std::size_t limit = open_file_limit();
  throw Error(
      ExitCode::unavailable, subject, attempted,
      "the limit of open files is " + std::to_string(limit) + ", which leaves room for " +
          std::to_string(free) + " more, and up to " + std::to_string(needed) + " are needed",
      "raise the hard limit: ulimit -n " + std::to_string(std::max(usual_limit, limit + needed)));
}

} // namespace shmemctl
