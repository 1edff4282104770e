#include "src/instruments/launch/processes.h"

#include <cerrno>
#include <csignal>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/file_descriptor.h"
#include "src/base/text.h"
#include "src/base/unique_handle.h"

namespace shmemctl {

namespace {

constexpr std::size_t max_environment_bytes = std::size_t{4} << 20;

std::optional<std::string> read_proc(pid_t pid, const char* name, std::size_t max_bytes) {
  const std::string path = "/proc/" + std::to_string(pid) + "/" + name;
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file)
    return std::nullopt;
  std::string text;
  char part[4096];
  while (text.size() < max_bytes) {
    const ssize_t count = ::read(file.get(), part, sizeof part);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      break;
    text.append(part, static_cast<std::size_t>(count));
  }
  return text;
}

std::optional<ProcessName> read_process(pid_t pid) {
  ProcessName process;
  const std::optional<std::string> text = read_proc(pid, "stat", 4096);
  if (!text || !parse_stat(*text, process) || process.pid != pid)
    return std::nullopt;
  return process;
}

void for_each_process(const std::function<void(const ProcessName&)>& visit) {
  const CHandle<DIR, ::closedir> folder(::opendir("/proc"));
  if (!folder)
    return;
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::optional<long long> pid = parse_integer(entry->d_name);
    if (!pid || *pid <= 0)
      continue;
    if (const auto process = read_process(static_cast<pid_t>(*pid)))
      visit(*process);
  }
}

} // namespace

bool parse_stat(const std::string& text, ProcessName& process) {
  constexpr std::size_t start_field = 19; // field 22 of proc(5), counted from the state (field 3)
  const std::size_t open = text.find(" (");
  const std::size_t close = text.rfind(") ");
  if (open == std::string::npos || close == std::string::npos || close < open)
    return false;
  const std::optional<long long> pid = parse_integer(text.substr(0, open));
  const std::vector<std::string> fields = split_blanks(text.substr(close + 2));
  if (!pid || fields.size() <= start_field || fields[0].size() != 1)
    return false;
  const std::optional<long long> parent = parse_integer(fields[1]);
  const std::optional<long long> start = parse_integer(fields[start_field]);
  constexpr long long most = 1LL << 30;
  if (!parent || !start || *pid <= 0 || *pid > most || *parent < 0 || *parent > most || *start < 0)
    return false;
  process = {static_cast<pid_t>(*pid), static_cast<pid_t>(*parent),
             static_cast<std::uint64_t>(*start), fields[0][0]};
  return true;
}

std::vector<ProcessName> descendants(pid_t root, const std::set<pid_t>& excluded) {
  std::vector<ProcessName> all;
  for_each_process([&all](const ProcessName& process) { all.push_back(process); });
  std::set<pid_t> below = {root};
  std::vector<ProcessName> found;
  for (bool grown = true; grown;) {
    grown = false;
    for (const ProcessName& process : all) {
      if (below.count(process.parent) == 0 || below.count(process.pid) != 0)
        continue;
      if (process.parent == root && excluded.count(process.pid) != 0)
        continue;
      below.insert(process.pid);
      grown = true;
      if (process.state != 'Z' && process.state != 'X')
        found.push_back(process);
    }
  }
  return found;
}

std::set<pid_t> children(pid_t root) {
  std::set<pid_t> found;
  for_each_process([&](const ProcessName& process) {
    if (process.parent == root)
      found.insert(process.pid);
  });
  return found;
}

std::vector<ProcessName> processes_with(const std::string& entry) {
  std::vector<ProcessName> found;
  for_each_process([&](const ProcessName& process) {
    const auto text = read_proc(process.pid, "environ", max_environment_bytes);
    if (!text || process.state == 'Z')
      return;
    for (std::size_t at = text->find(entry); at != std::string::npos;
         at = text->find(entry, at + 1)) {
      const bool begins = at == 0 || (*text)[at - 1] == '\0';
      const std::size_t end = at + entry.size();
      if (begins && (end == text->size() || (*text)[end] == '\0')) {
        found.push_back(process);
        return;
      }
    }
  });
  return found;
}

void signal_process(const ProcessName& process, int signal) {
  const auto same = [&process] {
    const auto now = read_process(process.pid);
    return now && now->start == process.start;
  };
#if defined(SYS_pidfd_open) && defined(SYS_pidfd_send_signal)
  const FileDescriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0U)));
  if (handle) {
    if (same()) // the pidfd was opened before, so it refers to the process that is checked here
      ::syscall(SYS_pidfd_send_signal, handle.get(), signal, nullptr, 0U);
    return;
  }
#endif
  if (same())
    ::kill(process.pid, signal);
}

Subreaper::Subreaper() {
  ::prctl(PR_GET_CHILD_SUBREAPER, &before_, 0, 0, 0);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

Subreaper::~Subreaper() {
  ::prctl(PR_SET_CHILD_SUBREAPER, before_, 0, 0, 0);
}

} // namespace shmemctl
