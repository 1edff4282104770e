#include "src/base/sysroot.h"

#include <algorithm>
#include <deque>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file_descriptor.h"
#include "src/base/text.h"

namespace shmemctl {

namespace fs = std::filesystem;

namespace {

constexpr int max_links = 40; // as the kernel's own limit

void push_components_front(std::deque<std::string>& pending, const std::string& path) {
  std::vector<std::string> parts;
  for (std::string& part : split(path, '/'))
    if (!part.empty() && part != ".")
      parts.push_back(std::move(part));
  pending.insert(pending.begin(), parts.begin(), parts.end());
}

} // namespace

Sysroot::Sysroot(const std::string& root) {
  std::error_code error;
  const fs::path absolute = fs::canonical(root, error);
  if (error || !fs::is_directory(absolute, error))
    throw Error(ExitCode::usage, root, "use as --sysroot",
                error ? error.message() : "not a directory",
                "pass a directory that holds a copy of a machine's /sys and /proc");
  root_ = absolute.string();
}

std::string Sysroot::host_path(const std::string& path) const {
  return live() ? path : root_ + path;
}

std::optional<std::string> Sysroot::realpath(const std::string& path) const {
  std::deque<std::string> pending;
  push_components_front(pending, path);
  std::string done;
  int links = 0;
  while (!pending.empty()) {
    const std::string part = pending.front();
    pending.pop_front();
    if (part == "..") {
      done.erase(std::min(done.rfind('/'), done.size()));
      continue;
    }
    const std::string next = done + "/" + part;
    std::error_code error;
    const fs::file_status status = fs::symlink_status(host_path(next), error);
    if (error || status.type() == fs::file_type::not_found)
      return std::nullopt;
    if (status.type() != fs::file_type::symlink) {
      done = next;
      continue;
    }
    if (++links > max_links)
      return std::nullopt;
    const std::string target = fs::read_symlink(host_path(next), error).string();
    if (error)
      return std::nullopt;
    if (starts_with(target, "/"))
      done.clear();
    push_components_front(pending, target);
  }
  return done.empty() ? "/" : done;
}

std::optional<std::string> Sysroot::resolved_host_path(const std::string& path) const {
  if (live()) // the kernel resolves faster, with the same result
    return path;
  const std::optional<std::string> real = realpath(path);
  if (!real)
    return std::nullopt;
  return host_path(*real);
}

std::optional<std::string> Sysroot::read(const std::string& path, std::size_t max_bytes) const {
  const std::optional<std::string> host = resolved_host_path(path);
  if (!host)
    return std::nullopt;
  // O_NONBLOCK: a FIFO planted in a copied tree must not hang the reader.
  const FileDescriptor file(::open(host->c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return std::nullopt;
  std::string text;
  char buffer[4096];
  while (text.size() < max_bytes) {
    const ssize_t count =
        ::read(file.get(), buffer, std::min(sizeof buffer, max_bytes - text.size()));
    if (count < 0)
      return std::nullopt;
    if (count == 0)
      break;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return text;
}

std::optional<std::string> Sysroot::read_line(const std::string& path) const {
  const std::optional<std::string> text = read(path);
  if (!text)
    return std::nullopt;
  return std::string(trim(*text));
}

std::optional<long long> Sysroot::read_integer(const std::string& path, int base) const {
  const std::optional<std::string> text = read_line(path);
  return text ? parse_integer(*text, base) : std::nullopt;
}

bool Sysroot::exists(const std::string& path) const {
  const std::optional<std::string> host = resolved_host_path(path);
  std::error_code error;
  return host && fs::exists(*host, error);
}

bool Sysroot::is_directory(const std::string& path) const {
  const std::optional<std::string> host = resolved_host_path(path);
  std::error_code error;
  return host && fs::is_directory(*host, error);
}

std::vector<std::string> Sysroot::list(const std::string& path) const {
  std::vector<std::string> names;
  const std::optional<std::string> host = resolved_host_path(path);
  if (!host)
    return names;
  std::error_code error;
  for (fs::directory_iterator it(*host, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end(), natural_less);
  return names;
}

} // namespace shmemctl
