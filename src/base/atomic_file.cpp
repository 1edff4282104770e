#include "src/base/atomic_file.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file_descriptor.h"

namespace shmemctl {

namespace {

Error exists_error(const std::string& path) {
  return Error(ExitCode::usage, path, "write", "the file exists",
               "give --force to overwrite it, or another name");
}

void write_all(int descriptor, const std::string& content, const std::string& path) {
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t count = ::write(descriptor, content.data() + done, content.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      throw system_error(path, "write", errno, "free room on that disk, or name another file");
    done += static_cast<std::size_t>(count);
  }
}

/// Removes the temporary file unless it was renamed.
class TemporaryFile {
public:
  explicit TemporaryFile(const std::string& path) : path_(path + ".tmp.XXXXXX") {
    descriptor_ = FileDescriptor(::mkostemp(path_.data(), O_CLOEXEC));
    if (!descriptor_)
      throw system_error(path, "write", errno, "name a folder that exists and is writable");
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  int descriptor() const { return descriptor_.get(); }
  const std::string& path() const { return path_; }

private:
  std::string path_;
  FileDescriptor descriptor_;
};

mode_t default_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

} // namespace

void check_output_path(const std::string& path, bool force) {
  struct stat status {};
  if (path == "-" || ::stat(path.c_str(), &status) != 0)
    return;
  if (S_ISDIR(status.st_mode))
    throw system_error(path, "write", EISDIR, "name a file, not a folder");
  if (!force && S_ISREG(status.st_mode))
    throw exists_error(path);
}

void write_file_atomically(const std::string& path, const std::string& content, bool force) {
  if (path == "-") {
    write_all(STDOUT_FILENO, content, "stdout");
    return;
  }
  check_output_path(path, force);
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    // A device or pipe (/dev/null, /dev/full) cannot be replaced by rename.
    const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file)
      throw system_error(path, "write", errno, "name a writable file");
    write_all(file.get(), content, path);
    return;
  }
  const TemporaryFile temporary(path);
  write_all(temporary.descriptor(), content, path);
  if (::fchmod(temporary.descriptor(), default_mode()) != 0 || ::fsync(temporary.descriptor()) != 0)
    throw system_error(path, "write", errno, "free room on that disk, or name another file");
  if (!force && ::link(temporary.path().c_str(), path.c_str()) == 0)
    return;
  if (!force && errno == EEXIST)
    throw exists_error(path);
  if (::rename(temporary.path().c_str(), path.c_str()) != 0) // also where links are not supported
    throw system_error(path, "write", errno, "name a writable file");
}

} // namespace shmemctl
