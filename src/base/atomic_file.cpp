#include "src/base/atomic_file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "src/base/deadline.h"
#include "src/base/error.h"
#include "src/base/file_descriptor.h"
#include "src/base/status_line.h"

namespace shmemctl {

namespace {

/// How long a pipe or a device may make no progress.
constexpr std::chrono::seconds timeout{10};
constexpr std::chrono::milliseconds look_again{20};
constexpr std::size_t piece_bytes = std::size_t{1} << 20;

std::atomic<std::uint64_t> progress{0};

Error exists_error(const std::string& path) {
  return Error(ExitCode::usage, path, "write", "the file exists",
               "pass --force to overwrite it, or choose another name");
}

/// Waits until a descriptor accepts more data. Returns false when the timeout passes.
bool wait_writable(int descriptor) {
  pollfd waiting{descriptor, POLLOUT, 0};
  const Deadline deadline = Deadline::after(timeout);
  int ready = 0;
  do
    ready = ::poll(&waiting, 1, deadline.poll_ms());
  while ((ready < 0 && errno == EINTR) || (ready == 0 && !deadline.passed()));
  return ready > 0;
}

void write_all(int descriptor, const std::string& content, const std::string& path) {
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t count =
        ::write(descriptor, content.data() + done, std::min(content.size() - done, piece_bytes));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (wait_writable(descriptor))
        continue;
      throw Error(ExitCode::unavailable, path, "write", "its reader has read nothing for 10 s",
                  "check the process that reads it, or choose a regular file");
    }
    if (count < 0)
      throw system_error(path, "write", errno, "check its disk or reader, or choose another file");
    done += static_cast<std::size_t>(count);
    ++progress;
  }
}

/// A file that is removed on destruction, unless it was renamed.
class TemporaryFile {
public:
  /// Created with mode 0666, so that the kernel applies the umask: a process cannot read its umask
  /// without changing it for all of its threads.
  explicit TemporaryFile(const std::string& path) {
    constexpr int max_tries = 100;
    for (int i = 0; i < max_tries && !descriptor_; ++i) {
      path_ = path + ".tmp." + random_letters();
      descriptor_ = FileDescriptor(
          ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
      if (!descriptor_ && errno != EEXIST)
        break;
    }
    if (!descriptor_) {
      const int error_number = errno;
      path_.clear(); // the file is not ours
      throw system_error(path, "write", error_number, "choose a writable directory");
    }
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (!path_.empty())
      ::unlink(path_.c_str());
  }
  int descriptor() const { return descriptor_.get(); }
  const std::string& path() const { return path_; }

private:
  static std::string random_letters() {
    unsigned char bytes[6] = {};
    // If there are no random bytes, two writers try the same name, and O_EXCL still separates them.
    static_cast<void>(!::getrandom(bytes, sizeof bytes, 0));
    std::string letters;
    for (const unsigned char byte : bytes)
      letters += static_cast<char>('a' + byte % 26);
    return letters;
  }

  std::string path_;
  FileDescriptor descriptor_;
};

/// Opens a pipe or a device (/dev/null, /dev/full), which cannot be replaced by a rename. The
/// opened file is checked again: the path may have changed meanwhile if somebody else can write to
/// the folder.
FileDescriptor open_in_place(const std::string& path, bool pipe) {
  const Deadline deadline = Deadline::after(timeout);
  FileDescriptor file;
  for (;;) {
    file = FileDescriptor(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (file || errno != ENXIO || !pipe || deadline.passed())
      break;
    std::this_thread::sleep_for(look_again); // a pipe that has no reader yet
  }
  if (!file && errno == ENXIO && pipe)
    throw Error(ExitCode::unavailable, path, "write", "no process has opened it for reading",
                "start its reader first, or choose a regular file");
  if (!file)
    throw system_error(path, "write", errno, "choose a writable file");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || S_ISREG(status.st_mode))
    throw Error(ExitCode::unavailable, path, "write",
                "it was a pipe or device and was replaced by a regular file",
                "choose a path that no other process modifies");
  return file;
}

} // namespace

std::uint64_t write_progress() {
  return progress.load();
}

void check_output_path(const std::string& path, bool force) {
  struct stat status {};
  if (path == "-" || ::stat(path.c_str(), &status) != 0)
    return;
  if (S_ISDIR(status.st_mode))
    throw system_error(path, "write", EISDIR, "choose a file, not a directory");
  if (!force && S_ISREG(status.st_mode))
    throw exists_error(path);
}

void write_file_atomically(const std::string& path, const std::string& content, bool force) {
  ++progress;
  if (path == "-") {
    const StatusPause pause; // stdout and stderr may be the same terminal
    write_all(STDOUT_FILENO, content, "stdout");
    return;
  }
  check_output_path(path, force);
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    write_all(open_in_place(path, S_ISFIFO(status.st_mode)).get(), content, path);
    return;
  }
  const TemporaryFile temporary(path);
  write_all(temporary.descriptor(), content, path);
  if (::fsync(temporary.descriptor()) != 0)
    throw system_error(path, "write", errno, "free disk space, or choose another file");
  ++progress;
  if (!force && ::link(temporary.path().c_str(), path.c_str()) == 0)
    return;
  if (!force && errno == EEXIST)
    throw exists_error(path);
  if (::rename(temporary.path().c_str(), path.c_str()) != 0) // also if links are not supported
    throw system_error(path, "write", errno, "choose a writable file");
}

} // namespace shmemctl
