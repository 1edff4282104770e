#include "src/runtime/memory/buffers/address_map.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/sysroot.h"
#include "src/base/text.h"

namespace shmemctl {

std::size_t page_bytes() {
  static const auto size_bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size_bytes;
}

BufferText text_of(std::uintptr_t address, std::size_t size_bytes) {
  BufferText out;
  std::snprintf(out.text, sizeof out.text, "the buffer of %zu bytes at %#zx", size_bytes,
                static_cast<std::size_t>(address));
  return out;
}

BufferExtent extent_of(const void* address, std::size_t size_bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const auto refuse = [&](const char* why) {
    return Error(ExitCode::usage, text_of(begin, size_bytes).text, "register", why,
                 "register memory that the program owns, with its size in bytes");
  };
  if (!address)
    throw refuse("the address is NULL");
  if (size_bytes == 0)
    throw refuse("its size is 0");
  const std::size_t page = page_bytes();
  if (size_bytes > UINTPTR_MAX - page - begin)
    throw refuse("it ends beyond the address space");
  const std::uintptr_t end = begin + size_bytes;
  return {begin, size_bytes, {begin / page * page, (end + page - 1) / page * page}};
}

void require_inside(std::uint64_t offset_bytes, std::size_t bytes, std::uint64_t buffer_bytes) {
  if (offset_bytes > buffer_bytes || bytes > buffer_bytes - offset_bytes)
    throw Error(ExitCode::usage,
                "transfer of " + std::to_string(bytes) + " bytes at offset " +
                    std::to_string(offset_bytes),
                "", "out of bounds: the buffer has " + std::to_string(buffer_bytes) + " bytes",
                "transfer less, or register a larger buffer");
}

namespace {

/// Parses a line from left to right.
class Words {
public:
  explicit Words(std::string_view line) : rest_(line) {}

  /// Parses a number and the character `end` after it.
  bool number(std::uint64_t& value, int base, char end) {
    const char* last = rest_.data() + rest_.size();
    const auto [stop, problem] = std::from_chars(rest_.data(), last, value, base);
    if (problem != std::errc() || stop == last || *stop != end)
      return false;
    rest_.remove_prefix(static_cast<std::size_t>(stop - rest_.data()) + 1);
    return true;
  }
  bool permissions(MappedArea& mapping) {
    if (rest_.size() < 5 || rest_[4] != ' ')
      return false;
    mapping.readable = rest_[0] == 'r';
    mapping.writable = rest_[1] == 'w';
    mapping.executable = rest_[2] == 'x';
    mapping.shared = rest_[3] == 's';
    rest_.remove_prefix(5);
    return true;
  }
  std::string name() const {
    const std::size_t begin = rest_.find_first_not_of(' ');
    return begin == std::string_view::npos ? std::string() : std::string(rest_.substr(begin));
  }

private:
  std::string_view rest_;
};

std::optional<MappedArea> parse_line(std::string_view line) {
  Words words(line);
  MappedArea mapping;
  std::uint64_t begin = 0, end = 0, major = 0, minor = 0, inode = 0;
  if (!words.number(begin, 16, '-') || !words.number(end, 16, ' ') || !words.permissions(mapping) ||
      !words.number(mapping.offset_bytes, 16, ' ') || !words.number(major, 16, ':') ||
      !words.number(minor, 16, ' ') || !words.number(inode, 10, ' ') || begin >= end)
    return std::nullopt;
  mapping.pages = {begin, end};
  mapping.device = ::makedev(static_cast<unsigned>(major), static_cast<unsigned>(minor));
  mapping.inode = inode;
  mapping.name = words.name();
  return mapping;
}

} // namespace

std::vector<MappedArea> parse_address_map(std::string_view text) {
  std::vector<MappedArea> mappings;
  while (!text.empty()) {
    // The line of a mapping without a name ends after the inode, on some kernels without a blank.
    const std::string line = std::string(take_line(text)) + ' ';
    if (auto mapping = parse_line(line)) {
      while (mapping->name.ends_with(' '))
        mapping->name.pop_back();
      mappings.push_back(std::move(*mapping));
    }
  }
  return mappings;
}

std::vector<MappedArea> read_address_map() {
  constexpr const char* path = "/proc/self/maps";
  constexpr std::size_t max_bytes = std::size_t{64} << 20;
  const std::optional<std::string> text = Sysroot().read(path, max_bytes);
  if (!text)
    throw Error(ExitCode::unavailable, path, "read", "unreadable, or above 64 MiB",
                "mount /proc in this container");
  return parse_address_map(*text);
}

std::vector<MappedArea> mappings_of(const std::vector<MappedArea>& all, const PageSpan& pages) {
  std::vector<MappedArea> parts;
  for (MappedArea part : all) {
    if (part.pages.end <= pages.begin || part.pages.begin >= pages.end)
      continue;
    if (part.pages.begin < pages.begin) {
      part.offset_bytes += pages.begin - part.pages.begin;
      part.pages.begin = pages.begin;
    }
    part.pages.end = std::min(part.pages.end, pages.end);
    parts.push_back(std::move(part));
  }
  return parts;
}

bool covers(const std::vector<MappedArea>& parts, const PageSpan& pages) {
  std::uintptr_t at = pages.begin;
  for (const MappedArea& part : parts) {
    if (part.pages.begin > at)
      return false;
    at = std::max(at, part.pages.end);
  }
  return at >= pages.end;
}

} // namespace shmemctl
