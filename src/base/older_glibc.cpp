// Only in the portable build (cmake/portable.cmake): functions that glibc 2.28 lacks but that the
// C++ runtime, expat and the CUDA runtime require, because they were compiled with a newer glibc.
// The functions are hidden: the C library and libraries that are opened at run time use their own.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#define HIDDEN extern "C" [[gnu::visibility("hidden")]]

namespace {

/// struct dl_find_object of glibc 2.35, for x86-64.
struct FoundObject {
  unsigned long long dlfo_flags;
  void* dlfo_map_start;
  void* dlfo_map_end;
  link_map* dlfo_link_map;
  void* dlfo_eh_frame;
  unsigned long long reserved[7];
};

constexpr std::int64_t second_ns = 1'000'000'000;

std::int64_t nanoseconds(const timespec& time) {
  return time.tv_sec * second_ns + time.tv_nsec;
}

std::int64_t now_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return nanoseconds(now);
}

struct Wanted {
  std::uintptr_t address;
  FoundObject* found;
};

int look_into(dl_phdr_info* info, std::size_t, void* argument) {
  const auto& wanted = *static_cast<const Wanted*>(argument);
  void* eh_frame = nullptr;
  bool inside = false;
  std::uintptr_t begin = UINTPTR_MAX, end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const std::uintptr_t from = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_GNU_EH_FRAME)
      eh_frame = reinterpret_cast<void*>(from);
    if (part.p_type != PT_LOAD)
      continue;
    begin = std::min(begin, from);
    end = std::max(end, from + part.p_memsz);
    inside = inside || (wanted.address >= from && wanted.address < from + part.p_memsz);
  }
  if (!inside || !eh_frame)
    return 0;
  *wanted.found = {};
  wanted.found->dlfo_map_start = reinterpret_cast<void*>(begin);
  wanted.found->dlfo_map_end = reinterpret_cast<void*>(end);
  wanted.found->dlfo_eh_frame = eh_frame;
  return 1;
}

/// Sets `path` to "/dev/shm/NAME". Returns false and sets errno for a name that POSIX does not
/// allow.
bool shared_memory_path(const char* name, char (&path)[NAME_MAX + 16]) {
  while (*name == '/')
    ++name;
  const std::size_t length = std::strlen(name);
  if (length == 0 || length > NAME_MAX || std::strchr(name, '/')) {
    errno = length > NAME_MAX ? ENAMETOOLONG : EINVAL;
    return false;
  }
  std::strcpy(path, "/dev/shm/");
  std::strcat(path, name);
  return true;
}

} // namespace

/// In glibc since 2.32. Never true here, so that reference counts of shared pointers are always
/// atomic.
HIDDEN char __libc_single_threaded;
char __libc_single_threaded = 0;

/// In glibc since 2.36.
HIDDEN void arc4random_buf(void* bytes, std::size_t size) {
  auto* at = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t got = ::getrandom(at, size, 0);
    if (got < 0 && errno != EINTR)
      std::abort(); // as in glibc: there is no way to report the failure
    if (got > 0) {
      at += got;
      size -= static_cast<std::size_t>(got);
    }
  }
}

/// In glibc since 2.36.
HIDDEN std::uint32_t arc4random() {
  std::uint32_t number = 0;
  arc4random_buf(&number, sizeof number);
  return number;
}

/// In glibc since 2.35: where the unwinder finds the tables of the code at an address.
HIDDEN int _dl_find_object(void* address, FoundObject* result) {
  Wanted wanted{reinterpret_cast<std::uintptr_t>(address), result};
  return ::dl_iterate_phdr(look_into, &wanted) == 1 ? 0 : -1;
}

/// In glibc since 2.30; glibc's function is used if it exists. Otherwise this waits on the wall
/// clock for at most a second and returns like after a spurious wakeup, so that setting the clock
/// cannot prolong the wait.
HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                  clockid_t clock, const timespec* until) {
  using Function = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
  static std::atomic<void*> own{nullptr};
  static std::atomic<bool> looked{false};
  if (!looked.load(std::memory_order_acquire)) {
    own.store(::dlsym(RTLD_DEFAULT, "pthread_cond_clockwait"), std::memory_order_relaxed);
    looked.store(true, std::memory_order_release);
  }
  if (void* const function = own.load(std::memory_order_relaxed))
    return reinterpret_cast<Function>(function)(condition, mutex, clock, until);
  const std::int64_t left_ns = nanoseconds(*until) - now_ns(clock);
  const std::int64_t wall_ns =
      now_ns(CLOCK_REALTIME) + std::clamp<std::int64_t>(left_ns, 0, second_ns);
  const timespec wall{static_cast<time_t>(wall_ns / second_ns),
                      static_cast<long>(wall_ns % second_ns)};
  const int result = ::pthread_cond_timedwait(condition, mutex, &wall);
  return result == ETIMEDOUT && now_ns(clock) < nanoseconds(*until) ? 0 : result;
}

/// This function is in librt before glibc 2.34, and the binary would need librt only for it.
HIDDEN int shm_open(const char* name, int flags, mode_t mode) {
  char path[NAME_MAX + 16];
  return shared_memory_path(name, path) ? ::open(path, flags | O_NOFOLLOW | O_CLOEXEC, mode) : -1;
}

HIDDEN int shm_unlink(const char* name) {
  char path[NAME_MAX + 16];
  return shared_memory_path(name, path) ? ::unlink(path) : -1;
}
