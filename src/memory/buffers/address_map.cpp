#include "src/memory/buffers/address_map.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <sys/sysmacros.h>

#include "src/base/error.h"
#include "src/base/sysroot.h"

namespace shmemctl {

namespace {

/// Takes a line apart from the left.
class Words {
public:
  explicit Words(std::string_view line) : rest_(line) {}

  /// A number that `end` follows, which is taken too.
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
    const std::size_t end = std::min(text.find('\n'), text.size());
    // A mapping without a name ends behind the inode, in some kernels without a blank.
    const std::string line = std::string(text.substr(0, end)) + ' ';
    if (auto mapping = parse_line(line)) {
      while (mapping->name.ends_with(' '))
        mapping->name.pop_back();
      mappings.push_back(std::move(*mapping));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return mappings;
}

std::vector<MappedArea> read_address_map() {
  constexpr const char* path = "/proc/self/maps";
  constexpr std::size_t most_bytes = std::size_t{64} << 20;
  const std::optional<std::string> text = Sysroot().read(path, most_bytes);
  if (!text)
    throw Error(ExitCode::unavailable, path, "read", "unexpected content",
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
