// What this process and its children write to stdout and stderr, as text.
#pragma once

#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "src/base/text.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl::test {

/// While it exists, descriptors 1 and 2 are files.
class Capture {
public:
  Capture() {
    std::fflush(nullptr);
    for (const int standard : {1, 2}) {
      saved_[standard - 1] = ::fcntl(standard, F_DUPFD_CLOEXEC, 10);
      const std::string path = folder_.path() + "/" + std::to_string(standard);
      const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
      ::dup2(file, standard);
      ::close(file);
    }
  }
  ~Capture() {
    std::fflush(nullptr);
    for (const int standard : {1, 2}) {
      ::dup2(saved_[standard - 1], standard);
      ::close(saved_[standard - 1]);
    }
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  std::string out() const { return folder_.read("1"); }
  std::string err() const { return folder_.read("2"); }

private:
  TemporaryFolder folder_;
  int saved_[2]{};
};

inline std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty())
    lines.pop_back();
  std::sort(lines.begin(), lines.end());
  return lines;
}

inline std::size_t open_descriptors() {
  const std::filesystem::directory_iterator folder("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(folder), end(folder)));
}

} // namespace shmemctl::test
