#include "src/base/sysroot.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "src/base/error.h"
#include "src/base/input.h"
#include "src/base/text.h"
#include "src/base/zstd.h"

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

/// The kind of what a path names, without following links, and the target if it is a link.
struct Step {
  fs::file_type type = fs::file_type::not_found;
  std::string target;
};

Step step_in(const FileTree& tree, const std::string& path) {
  const FileEntry* entry = tree.find(path);
  if (entry == nullptr)
    return {};
  if (entry->kind == FileEntry::Kind::link)
    return {fs::file_type::symlink, entry->content};
  return {entry->kind == FileEntry::Kind::file ? fs::file_type::regular : fs::file_type::directory,
          ""};
}

Step step_on_disk(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (error || status.type() != fs::file_type::symlink)
    return {error ? fs::file_type::not_found : status.type(), ""};
  const std::string target = fs::read_symlink(path, error).string();
  return {error ? fs::file_type::not_found : fs::file_type::symlink, target};
}

/// A descriptor of a file in memory with these bytes, for callers that read a file piece by piece.
FileDescriptor in_memory(const std::string& bytes, int& error_number) {
  FileDescriptor file(::memfd_create("shmemctl-recorded", MFD_CLOEXEC));
  std::size_t done = 0;
  while (file && done < bytes.size()) {
    const ssize_t count = ::write(file.get(), bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      break;
    done += static_cast<std::size_t>(count);
  }
  if (file && done == bytes.size() && ::lseek(file.get(), 0, SEEK_SET) == 0) {
    error_number = 0;
    return file;
  }
  error_number = errno;
  return {};
}

} // namespace

Sysroot::Sysroot(const std::string& root) {
  std::error_code error;
  const fs::path absolute = fs::canonical(root, error);
  if (!error && fs::is_regular_file(absolute, error)) {
    const std::string bytes = read_input(root, archive_limits::max_packed_bytes);
    if (is_zstd(bytes)) {
      tree_ = std::make_shared<const FileTree>(read_archive(bytes, root));
      root_ = root;
      return;
    }
  }
  if (error || !fs::is_directory(absolute, error))
    throw Error(ExitCode::usage, root, "use as a sysroot",
                error ? error.message() : "not a directory, and not an archive of shmemctl gather",
                "pass a directory that holds a copy of a machine's /sys and /proc, or an archive "
                "that shmemctl gather wrote");
  root_ = absolute.string();
}

Sysroot::Sysroot(std::shared_ptr<const FileTree> tree, std::string name)
    : root_(std::move(name)), tree_(std::move(tree)) {}

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
    const Step step = tree_ != nullptr ? step_in(*tree_, next) : step_on_disk(host_path(next));
    if (step.type == fs::file_type::not_found)
      return std::nullopt;
    if (step.type != fs::file_type::symlink) {
      done = next;
      continue;
    }
    if (++links > max_links)
      return std::nullopt;
    if (starts_with(step.target, "/"))
      done.clear();
    push_components_front(pending, step.target);
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

const FileEntry* Sysroot::resolved_entry(const std::string& path) const {
  const std::optional<std::string> real = realpath(path);
  return real ? tree_->find(*real) : nullptr;
}

FileDescriptor Sysroot::open(const std::string& path, int& error_number) const {
  error_number = ENOENT;
  if (tree_ != nullptr) {
    const FileEntry* entry = resolved_entry(path);
    if (entry == nullptr)
      return {};
    error_number = entry->kind == FileEntry::Kind::folder ? EISDIR : entry->error_number;
    return error_number == 0 ? in_memory(entry->content, error_number) : FileDescriptor();
  }
  const std::optional<std::string> host = resolved_host_path(path);
  if (!host)
    return {};
  // O_NONBLOCK: a FIFO planted in a copied tree must not hang the reader.
  FileDescriptor file(::open(host->c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) {
    error_number = errno;
    return {};
  }
  if (!S_ISREG(status.st_mode)) {
    error_number = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
    return {};
  }
  error_number = 0;
  return file;
}

FileContent Sysroot::read_or_reason(const std::string& path, std::size_t max_bytes) const {
  FileContent content;
  if (tree_ != nullptr) {
    const FileEntry* entry = resolved_entry(path);
    if (entry == nullptr)
      content.error_number = ENOENT;
    else if (entry->kind == FileEntry::Kind::folder)
      content.error_number = EISDIR;
    else if ((content.error_number = entry->error_number) == 0)
      content.bytes = entry->content.substr(0, max_bytes);
    return content;
  }
  const FileDescriptor file = open(path, content.error_number);
  if (!file)
    return content;
  char buffer[4096];
  while (content.bytes.size() < max_bytes) {
    const ssize_t count =
        ::read(file.get(), buffer, std::min(sizeof buffer, max_bytes - content.bytes.size()));
    if (count < 0)
      return {{}, errno};
    if (count == 0)
      break;
    content.bytes.append(buffer, static_cast<std::size_t>(count));
  }
  return content;
}

std::optional<std::string> Sysroot::read(const std::string& path, std::size_t max_bytes) const {
  FileContent content = read_or_reason(path, max_bytes);
  if (content.error_number != 0)
    return std::nullopt;
  return std::move(content.bytes);
}

std::optional<std::string> Sysroot::read_link(const std::string& path) const {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return std::nullopt;
  errno = ENOENT;
  if (tree_ != nullptr) {
    const std::optional<std::string> above = realpath(path.substr(0, slash));
    const std::string place = (above && *above != "/" ? *above : "") + path.substr(slash);
    const FileEntry* entry = above ? tree_->find(place) : nullptr;
    if (entry == nullptr)
      return std::nullopt;
    errno = entry->error_number != 0 ? entry->error_number : EINVAL;
    return entry->kind == FileEntry::Kind::link && entry->error_number == 0
               ? std::optional(entry->content)
               : std::nullopt;
  }
  const std::optional<std::string> folder =
      slash == 0 ? std::optional<std::string>("/") : resolved_host_path(path.substr(0, slash));
  if (!folder)
    return std::nullopt;
  char target[4096];
  const std::string host = (slash == 0 ? host_path("") : *folder) + path.substr(slash);
  const ssize_t length = ::readlink(host.c_str(), target, sizeof target);
  if (length < 0)
    return std::nullopt;
  return std::string(target, static_cast<std::size_t>(length));
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
  if (tree_ != nullptr)
    return resolved_entry(path) != nullptr;
  const std::optional<std::string> host = resolved_host_path(path);
  std::error_code error;
  return host && fs::exists(*host, error);
}

bool Sysroot::is_directory(const std::string& path) const {
  if (tree_ != nullptr) {
    const FileEntry* entry = resolved_entry(path);
    return entry != nullptr && entry->kind == FileEntry::Kind::folder;
  }
  const std::optional<std::string> host = resolved_host_path(path);
  std::error_code error;
  return host && fs::is_directory(*host, error);
}

std::vector<std::string> Sysroot::list(const std::string& path) const {
  std::vector<std::string> names;
  if (tree_ != nullptr) {
    if (const FileEntry* entry = resolved_entry(path))
      names = entry->names;
    std::sort(names.begin(), names.end(), natural_less);
    return names;
  }
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
