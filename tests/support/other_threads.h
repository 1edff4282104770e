// The threads of this process beside the program's own: those of the runtime and of libraries.
#pragma once

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace shmemctl::test {

namespace detail {

inline std::string first_line(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

inline bool blocks(const std::filesystem::path& status, int signal) {
  std::ifstream in(status);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("SigBlk:"))
      return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
  return false;
}

} // namespace detail

struct OtherThread {
  std::string name;
  bool takes_signals = false; ///< a thread of the program: its handlers may run in it
};

/// Those that have a name of their own, by name.
inline std::vector<OtherThread> other_threads() {
  const std::string program = detail::first_line("/proc/self/comm");
  std::vector<OtherThread> threads;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    if (const std::string name = detail::first_line(task.path() / "comm"); name != program)
      threads.push_back({name, !detail::blocks(task.path() / "status", SIGALRM)});
  std::sort(threads.begin(), threads.end(),
            [](const OtherThread& a, const OtherThread& b) { return a.name < b.name; });
  return threads;
}

} // namespace shmemctl::test
