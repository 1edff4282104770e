#include "src/memory/buffers/mapped_file.h"

#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "src/base/error.h"
#include "src/base/sysroot.h"

namespace shmemctl {

namespace {

bool is_file_of(const struct stat& status, const MappedArea& mapping) {
  return S_ISREG(status.st_mode) && mapping.is_of_file(status.st_dev, status.st_ino);
}

/// Opened again, not duplicated: the copy's flags and position are nobody else's.
FileDescriptor open_same(const std::string& path, const MappedArea& mapping) {
  struct stat before {};
  // A device or a pipe must not even be opened.
  if (::stat(path.c_str(), &before) != 0 || !is_file_of(before, mapping))
    return FileDescriptor();
  FileDescriptor file(
      ::open(path.c_str(), (mapping.writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !is_file_of(status, mapping))
    return FileDescriptor();
  return file;
}

} // namespace

std::shared_ptr<const PageFile> make_page_file(FileDescriptor descriptor, bool adopted) {
  struct stat status {};
  if (::fstat(descriptor.get(), &status) != 0)
    throw system_error("memory of a registered buffer", "query its file", errno,
                       "report this as a bug in shmemctl, with the command line");
  return std::make_shared<const PageFile>(
      PageFile{std::move(descriptor), status.st_dev, status.st_ino, adopted});
}

FileDescriptor open_file_of(const MappedArea& mapping) {
  if (FileDescriptor file = open_same(
          fmt::format("/proc/self/map_files/{:x}-{:x}", mapping.pages.begin, mapping.pages.end),
          mapping))
    return file;
  for (const std::string& number : Sysroot().list("/proc/self/fd"))
    if (FileDescriptor file = open_same("/proc/self/fd/" + number, mapping))
      return file;
  if (mapping.name.starts_with('/'))
    return open_same(mapping.name, mapping);
  return FileDescriptor();
}

} // namespace shmemctl
