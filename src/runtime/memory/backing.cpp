#include "src/runtime/memory/backing.h"

#include <cerrno>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <utility>

#include "src/base/error.h"
#include "src/base/round_up.h"
#include "src/base/units.h"

namespace shmemctl {

namespace {

constexpr int reserve_only = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

[[noreturn]] void throw_no_address_space(std::size_t size_bytes, int error) {
  const std::string subject = format_size_bytes(size_bytes) + " of address space";
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    throw Error(ExitCode::unavailable, subject, "reserve",
                "the address space limit is " + format_size_bytes(limit.rlim_cur),
                "run ulimit -v unlimited, or lower SHMEMCTL_SYMMETRIC_SIZE");
  throw system_error(subject, "reserve", error,
                     "lower SHMEMCTL_SYMMETRIC_SIZE, or run fewer PEs on this node");
}

} // namespace

Reservation::Reservation(std::size_t size_bytes, std::size_t alignment_bytes) {
  const auto page_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  // mmap() aligns only to a page, so more is mapped, and the excess before and after is unmapped.
  const std::size_t spare_bytes = alignment_bytes > page_bytes ? alignment_bytes - page_bytes : 0;
  if (size_bytes > SIZE_MAX - spare_bytes)
    throw_no_address_space(size_bytes, ENOMEM);
  void* mapped = ::mmap(nullptr, size_bytes + spare_bytes, PROT_NONE, reserve_only, -1, 0);
  if (mapped == MAP_FAILED)
    throw_no_address_space(size_bytes, errno);
  auto* begin = static_cast<std::byte*>(mapped);
  const std::size_t beyond = reinterpret_cast<std::uintptr_t>(begin) % alignment_bytes;
  const std::size_t before_bytes = beyond == 0 ? 0 : alignment_bytes - beyond;
  base_ = begin + before_bytes;
  size_bytes_ = size_bytes;
  if (before_bytes > 0)
    ::munmap(begin, before_bytes);
  if (spare_bytes > before_bytes)
    ::munmap(base_ + round_up(size_bytes, page_bytes), spare_bytes - before_bytes);
}

Reservation::Reservation(Reservation&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), size_bytes_(std::exchange(other.size_bytes_, 0)) {
}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

Reservation::~Reservation() {
  if (base_)
    ::munmap(base_, size_bytes_);
}

void Reservation::clear(std::byte* at, std::size_t size_bytes) noexcept {
  // If the kernel refuses (too many mappings), the memory stays allocated, but inaccessible.
  if (::mmap(at, size_bytes, PROT_NONE, reserve_only | MAP_FIXED, -1, 0) == MAP_FAILED)
    ::mprotect(at, size_bytes, PROT_NONE);
}

} // namespace shmemctl
