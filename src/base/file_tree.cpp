#include "src/base/file_tree.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/base/units.h"
#include "src/base/zstd.h"

namespace shmemctl {

namespace {

using namespace archive_limits;

constexpr std::size_t block_bytes = 512;
/// Key in a pax header for the errno of a file that could not be read.
constexpr std::string_view error_key = "SHMEMCTL.errno";

/// A field of POSIX's ustar header: its offset and width.
struct Field {
  std::size_t at, width;
};
constexpr Field name_field{0, 100}, mode_field{100, 8}, owner_field{108, 8}, group_field{116, 8},
    size_field{124, 12}, time_field{136, 12}, sum_field{148, 8}, type_field{156, 1},
    link_field{157, 100}, magic_field{257, 8}, prefix_field{345, 155};

using Block = std::array<char, block_bytes>;

void put(Block& block, Field field, std::string_view text) {
  std::copy_n(text.begin(), std::min(text.size(), field.width),
              block.begin() + static_cast<std::ptrdiff_t>(field.at));
}

/// Writes a number as octal digits and a zero byte.
void put_number(Block& block, Field field, std::uint64_t value) {
  put(block, field, fmt::format("{:0{}o}", value, field.width - 1));
}

std::uint64_t checksum(std::string_view block) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < block_bytes; ++at)
    sum += at >= sum_field.at && at < sum_field.at + sum_field.width
               ? ' '
               : static_cast<unsigned char>(block[at]);
  return sum;
}

class TarWriter {
public:
  void add(const std::string& path, const FileEntry& entry) {
    const bool folder = entry.kind == FileEntry::Kind::folder,
               link = entry.kind == FileEntry::Kind::link;
    const std::string name = path.substr(1) + (folder ? "/" : "");
    std::string extended;
    if (name.size() > name_field.width)
      extended += record("path", name);
    if (link && entry.content.size() > link_field.width)
      extended += record("linkpath", entry.content);
    if (entry.error_number != 0)
      extended += record(error_key, std::to_string(entry.error_number));
    if (!extended.empty()) {
      header("pax", 'x', "", extended.size(), 0644);
      body(extended);
    }
    const std::string_view bytes =
        entry.kind == FileEntry::Kind::file ? std::string_view(entry.content) : std::string_view();
    header(name,
           folder ? '5'
           : link ? '2'
                  : '0',
           link ? entry.content : "", bytes.size(), folder ? 0755 : 0644);
    body(bytes);
  }

  std::string finish() {
    tar_.append(2 * block_bytes, '\0');
    return std::move(tar_);
  }

private:
  /// "LENGTH KEY=VALUE\n", where LENGTH includes its own digits.
  static std::string record(std::string_view key, std::string_view value) {
    const std::size_t rest = key.size() + value.size() + 3; // blank, =, line feed
    std::size_t length = rest + std::to_string(rest).size();
    length = rest + std::to_string(length).size();
    return fmt::format("{} {}={}\n", length, key, value);
  }

  void header(std::string_view name, char type, std::string_view link, std::size_t size,
              std::uint64_t mode) {
    Block block{};
    put(block, name_field, name);
    put_number(block, mode_field, mode);
    put_number(block, owner_field, 0);
    put_number(block, group_field, 0);
    put_number(block, size_field, size);
    put_number(block, time_field, 0);
    put(block, type_field, std::string_view(&type, 1));
    put(block, link_field, link);
    put(block, magic_field,
        std::string_view("ustar\0"
                         "00",
                         8));
    put(block, sum_field,
        fmt::format("{:06o}", checksum(std::string_view(block.data(), block.size()))));
    block[sum_field.at + 6] = '\0';
    block[sum_field.at + 7] = ' ';
    tar_.append(block.data(), block.size());
  }

  void body(std::string_view bytes) {
    tar_ += bytes;
    tar_.append((block_bytes - bytes.size() % block_bytes) % block_bytes, '\0');
  }

  std::string tar_;
};

/// What a pax header, or one of GNU tar's headers for long names, says about the next entry.
struct Extended {
  std::optional<std::string> path, link;
  int error_number = 0;
};

class TarReader {
public:
  TarReader(std::string_view tar, const std::string& subject) : tar_(tar), subject_(subject) {}

  FileTree read() {
    if (tar_.size() < block_bytes)
      throw damaged("it contains no tar archive");
    for (;;) {
      const std::string_view block = take(block_bytes, "the tar file is cut off");
      if (block.find_first_not_of('\0') == std::string_view::npos)
        return std::move(tree_);
      if (!read_entry(block))
        extended_ = {};
    }
  }

private:
  Error damaged(const std::string& cause) const {
    return Error(ExitCode::usage, subject_, "read", cause,
                 "copy the archive again, or record the node again with shmemctl gather");
  }
  /// For archives that are not damaged, but contain what a recording does not.
  Error refused(const std::string& name, const std::string& problem) const {
    return Error(ExitCode::usage, subject_, "read",
                 fmt::format("entry {} \"{}\" {}", entries_, printable(name, 200), problem),
                 "record the node with shmemctl gather");
  }

  std::string_view take(std::size_t size, const char* problem) {
    if (size > tar_.size() - at_)
      throw damaged(problem);
    const std::string_view bytes = tar_.substr(at_, size);
    at_ += size;
    return bytes;
  }

  static std::string_view text(std::string_view block, Field field) {
    const std::string_view whole = block.substr(field.at, field.width);
    return whole.substr(0, std::min(whole.find('\0'), whole.size()));
  }

  std::uint64_t number(std::string_view block, Field field) const {
    std::uint64_t value = 0;
    for (const char digit : trim(text(block, field))) {
      if (digit < '0' || digit > '7')
        throw damaged(fmt::format("entry {} has an invalid tar header", entries_));
      value = value * 8 + static_cast<std::uint64_t>(digit - '0');
    }
    return value; // 12 digits at most
  }

  /// Reads one entry. Returns whether it only describes the next entry or the archive.
  bool read_entry(std::string_view block) {
    if (++entries_ > max_entries)
      throw damaged(fmt::format("it has more than {} entries", max_entries));
    if (checksum(block) != number(block, sum_field))
      throw damaged(fmt::format("entry {} has an invalid tar header", entries_));
    const std::uint64_t size = number(block, size_field);
    const char type = block[type_field.at];
    if (size > max_unpacked_bytes)
      throw damaged(fmt::format("entry {} is larger than {}B", entries_,
                                format_size_bytes(max_unpacked_bytes)));
    // The size field of a link or folder does not mean that data follows.
    const bool has_body = type != '2' && type != '5';
    const auto length = has_body ? static_cast<std::size_t>(size) : 0;
    const std::string_view body = take(length, "the tar file is cut off");
    take((block_bytes - length % block_bytes) % block_bytes, "the tar file is cut off");
    switch (type) {
    case 'g': // describes the archive as a whole
      return true;
    case 'x':
      read_pax(body);
      return true;
    case 'L':
      extended_.path = body.substr(0, std::min(body.find('\0'), body.size()));
      return true;
    case 'K':
      extended_.link = body.substr(0, std::min(body.find('\0'), body.size()));
      return true;
    default:
      break;
    }
    add(block, type, body);
    return false;
  }

  void read_pax(std::string_view records) {
    while (!records.empty()) {
      const std::size_t blank = records.find(' ');
      const auto length =
          blank == std::string_view::npos ? std::nullopt : parse_integer(records.substr(0, blank));
      if (!length || *length < static_cast<long long>(blank) + 3 ||
          static_cast<std::size_t>(*length) > records.size())
        throw damaged(fmt::format("entry {} has a pax header that is damaged", entries_));
      const std::string_view record =
          records.substr(blank + 1, static_cast<std::size_t>(*length) - blank - 2);
      records.remove_prefix(static_cast<std::size_t>(*length));
      const std::size_t equals = record.find('=');
      if (equals == std::string_view::npos)
        continue;
      const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
      if (key == "path")
        extended_.path = value;
      else if (key == "linkpath")
        extended_.link = value;
      else if (key == "size")
        throw damaged(fmt::format("entry {} is larger than 8 GiB", entries_));
      else if (key == error_key)
        extended_.error_number =
            static_cast<int>(std::clamp<long long>(parse_integer(value).value_or(0), 0, 4095));
    }
  }

  std::string name_of(std::string_view block) const {
    if (extended_.path)
      return *extended_.path;
    const std::string name(text(block, name_field));
    const bool posix = block.substr(magic_field.at, 6) == std::string_view("ustar\0", 6);
    const std::string prefix(posix ? text(block, prefix_field) : std::string_view());
    return prefix.empty() ? name : prefix + "/" + name;
  }

  /// "/sys/class" for "./sys//class/". Empty for the root.
  std::string path_of(const std::string& name) const {
    if (name.size() > max_path_bytes)
      throw refused(name, fmt::format("has a path of more than {} bytes", max_path_bytes));
    if (starts_with(name, "/") || name.find('\0') != std::string::npos)
      throw refused(name, "is an absolute path, or contains a NUL byte");
    std::string path;
    std::size_t depth = 0;
    for (const std::string& part : split(name, '/')) {
      if (part.empty() || part == ".")
        continue;
      if (part == "..")
        throw refused(name, "leaves the archive");
      if (part.size() > max_name_bytes || depth++ > max_depth)
        throw refused(name, fmt::format("has a name of more than {} bytes, or more than {} folders "
                                        "above it",
                                        max_name_bytes, max_depth));
      path += "/" + part;
    }
    return path;
  }

  void add(std::string_view block, char type, std::string_view body) {
    const std::string name = name_of(block);
    const std::string path = path_of(name);
    FileEntry entry;
    entry.error_number = extended_.error_number;
    if (type == '5') {
      entry.kind = FileEntry::Kind::folder;
    } else if (type == '2') {
      entry.kind = FileEntry::Kind::link;
      entry.content = extended_.link ? *extended_.link : std::string(text(block, link_field));
      if (entry.content.size() > max_path_bytes || entry.content.empty())
        throw refused(name, "is a link with an invalid target");
    } else if (type == '0' || type == '\0' || type == '7') {
      entry.kind = FileEntry::Kind::file;
      entry.content = body;
    } else {
      throw refused(name,
                    type == '1' ? "is a hard link" : "is neither a file, a folder nor a link");
    }
    if (path.empty() && type == '5') // tar also writes the folder that it was given
      return;
    if (path.empty() || !tree_.add(path, std::move(entry)))
      throw refused(name, "occurs twice, or is below something that is not a folder");
    if (tree_.entries().size() > max_entries)
      throw damaged(fmt::format("it has more than {} entries", max_entries));
  }

  std::string_view tar_;
  const std::string& subject_;
  std::size_t at_ = 0, entries_ = 0;
  Extended extended_;
  FileTree tree_;
};

} // namespace

FileTree::FileTree() {
  entries_.emplace("/", FileEntry());
}

bool FileTree::add(const std::string& path, FileEntry entry) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash + 1 == path.size())
    return false;
  if (const auto known = entries_.find(path); known != entries_.end()) {
    const FileEntry& there = known->second;
    return there.kind == entry.kind && (entry.kind == FileEntry::Kind::folder);
  }
  const std::string above = slash == 0 ? "/" : path.substr(0, slash);
  auto folder = entries_.find(above);
  if (folder == entries_.end()) {
    if (!add(above, FileEntry())) // the callers limit the depth of paths
      return false;
    folder = entries_.find(above);
  }
  if (folder->second.kind != FileEntry::Kind::folder)
    return false;
  folder->second.names.push_back(path.substr(slash + 1));
  entry.names.clear();
  entries_.emplace(path, std::move(entry));
  return true;
}

const FileEntry* FileTree::find(const std::string& path) const {
  const auto found = entries_.find(path);
  return found == entries_.end() ? nullptr : &found->second;
}

std::string write_tar(const FileTree& tree) {
  TarWriter writer;
  for (const auto& [path, entry] : tree.entries())
    if (path != "/")
      writer.add(path, entry);
  return writer.finish();
}

FileTree read_tar(std::string_view bytes, const std::string& subject) {
  return TarReader(bytes, subject).read();
}

std::string write_archive(const FileTree& tree) {
  return zstd_compressed(write_tar(tree));
}

FileTree read_archive(std::string_view bytes, const std::string& subject) {
  return read_tar(zstd_decompressed(bytes, subject, archive_limits::max_unpacked_bytes), subject);
}

} // namespace shmemctl
