#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "src/base/error.h"
#include "src/base/sysroot.h"
#include "src/runtime/memory/buffers/page_refcounts.h"

namespace shmemctl {

namespace {

bool is_file_of(const struct stat& status, const MappedArea& mapping) {
  return S_ISREG(status.st_mode) && mapping.is_of_file(status.st_dev, status.st_ino);
}

/// Opens the file again instead of duplicating a descriptor, so that the new file description has
/// its own flags and offset.
FileDescriptor open_same(const std::string& path, const MappedArea& mapping) {
  struct stat before {};
  // Checked before it is opened: opening a device or a pipe may have side effects.
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

namespace {

/// The part of `piece` from `begin` to `end`.
SharedPiece cut(SharedPiece piece, std::uintptr_t begin, std::uintptr_t end) {
  begin = std::max(begin, piece.pages.begin);
  piece.offset_bytes += begin - piece.pages.begin;
  piece.pages = {begin, std::min(end, piece.pages.end)};
  return piece;
}

bool goes_on(const SharedPiece& left, const SharedPiece& right) {
  return left.pages.end == right.pages.begin && left.file == right.file &&
         left.offset_bytes + left.pages.size_bytes() == right.offset_bytes;
}

} // namespace

void PageRefcounts::split(std::uintptr_t at) {
  auto behind = pieces_.upper_bound(at);
  if (behind == pieces_.begin())
    return;
  SharedPiece& piece = std::prev(behind)->second;
  if (piece.pages.begin == at || piece.pages.end <= at)
    return;
  pieces_.emplace_hint(behind, at, cut(piece, at, piece.pages.end));
  piece.pages.end = at;
}

std::vector<PageSpan> PageRefcounts::missing(const PageSpan& pages) const {
  std::vector<PageSpan> gaps;
  std::uintptr_t at = pages.begin;
  for (const SharedPiece& piece : this->pieces(pages)) {
    if (piece.pages.begin > at)
      gaps.push_back({at, piece.pages.begin});
    at = piece.pages.end;
  }
  if (at < pages.end)
    gaps.push_back({at, pages.end});
  return gaps;
}

void PageRefcounts::insert(SharedPiece piece) {
  piece.uses = 0;
  const std::uintptr_t begin = piece.pages.begin;
  pieces_.emplace(begin, std::move(piece));
}

void PageRefcounts::add_use(const PageSpan& pages) {
  split(pages.begin);
  split(pages.end);
  for (auto at = pieces_.lower_bound(pages.begin); at != pieces_.end() && at->first < pages.end;
       ++at)
    ++at->second.uses;
}

void PageRefcounts::drop_use(const PageSpan& pages) {
  split(pages.begin);
  split(pages.end);
  for (auto at = pieces_.lower_bound(pages.begin); at != pieces_.end() && at->first < pages.end;
       ++at)
    --at->second.uses;
}

std::vector<SharedPiece> PageRefcounts::take_unused() {
  std::vector<SharedPiece> unused;
  for (auto at = pieces_.begin(); at != pieces_.end();) {
    if (at->second.uses != 0) {
      ++at;
      continue;
    }
    unused.push_back(std::move(at->second));
    at = pieces_.erase(at);
  }
  return unused;
}

std::vector<SharedPiece> PageRefcounts::pieces(const PageSpan& pages) const {
  std::vector<SharedPiece> found;
  auto at = pieces_.upper_bound(pages.begin);
  if (at != pieces_.begin())
    --at;
  for (; at != pieces_.end() && at->first < pages.end; ++at) {
    if (at->second.pages.end <= pages.begin)
      continue;
    SharedPiece piece = cut(at->second, pages.begin, pages.end);
    if (!found.empty() && goes_on(found.back(), piece))
      found.back().pages.end = piece.pages.end;
    else
      found.push_back(std::move(piece));
  }
  return found;
}

} // namespace shmemctl
