#include <cerrno>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>

#include "src/base/error.h"
#include "src/runtime/buffers/registration_table.h"
#include "src/runtime/memory/host_file.h"

namespace shmemctl::buffers {

namespace {

constexpr const char* table_subject = "table of registered buffers";
constexpr std::uint32_t max_slots = 1u << 16, max_users = 1u << 14;
constexpr std::uint64_t max_stage_bytes = std::uint64_t{64} << 20;

std::size_t whole_pages(std::size_t size_bytes) {
  return (size_bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

HostFileKind kind_of(const std::string& backing_kind) {
  return backing_kind == "devshm" ? HostFileKind::devshm : HostFileKind::memfd;
}

} // namespace

void require_plausible(const TableShape& shape) {
  if (shape.slots == 0 || shape.slots > max_slots || shape.users == 0 || shape.users > max_users ||
      shape.staging_bytes == 0 || shape.staging_bytes > max_stage_bytes ||
      shape.staging_bytes % page_bytes() != 0)
    throw Error(ExitCode::unavailable, table_subject, "import",
                "its owner describes it with invalid sizes",
                "run the same version of shmemctl on all hosts");
}

RegistrationTable::RegistrationTable(const TableShape& shape, const char* backing_kind)
    : shape_(shape), file_(open_host_file(kind_of(backing_kind))) {
  require_plausible(shape);
  resize_host_file(file_, kind_of(backing_kind), size_bytes());
  map();
}

RegistrationTable::RegistrationTable(FileDescriptor descriptor, const TableShape& shape)
    : shape_(shape), file_(std::move(descriptor)) {
  require_plausible(shape);
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      static_cast<std::uint64_t>(status.st_size) != size_bytes())
    throw Error(ExitCode::unavailable, table_subject, "import",
                "its file does not have the size that its owner describes",
                "run the same version of shmemctl on all hosts");
  map();
}

RegistrationTable::~RegistrationTable() {
  ::munmap(base_, size_bytes());
}

void RegistrationTable::map() {
  void* mapped = ::mmap(nullptr, size_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (mapped == MAP_FAILED)
    throw system_error(table_subject, "map", errno, "raise the limit of address space: ulimit -v");
  base_ = static_cast<std::byte*>(mapped);
}

std::size_t RegistrationTable::table_bytes() const {
  return whole_pages(shape_.slots * slot_bytes());
}

std::uint64_t RegistrationTable::stage_offset_bytes(std::uint32_t user) const {
  return table_bytes() + user * shape_.staging_bytes;
}

void RegistrationTable::commit(std::uint64_t offset_bytes, std::size_t bytes) {
  int error = 0;
  do
    error = ::fallocate(file_.get(), 0, static_cast<off_t>(offset_bytes),
                        static_cast<off_t>(bytes)) == 0
                ? 0
                : errno;
  while (error == EINTR);
  if (error != 0)
    throw system_error(table_subject, "commit", error, "free memory, or enlarge /dev/shm");
}

void RegistrationTable::commit_slot(std::uint32_t slot) {
  commit(slot * slot_bytes(), slot_bytes());
}

void RegistrationTable::commit_stage(std::uint32_t user) {
  commit(stage_offset_bytes(user), shape_.staging_bytes);
}

} // namespace shmemctl::buffers
