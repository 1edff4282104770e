// What an ELF file says about itself, read without loading it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace shmemctl::libraries {

/// `count` bytes at `offset`; fewer where the file ends before, or cannot be read.
using ReadAt = std::function<std::string(std::uint64_t offset, std::size_t count)>;

/// Part of a file.
struct FileRange {
  std::uint64_t offset = 0, size_bytes = 0;
};

/// Symbol versions that a file needs of another one.
struct NeededVersions {
  std::string file;                  ///< soname: "libmlx5.so.1"
  std::vector<std::string> versions; ///< without weak versions, which may be missing
};

struct ElfFacts {
  std::string problem; ///< why it could not be read, or not to its end; "" if all was understood
  std::string soname, build_id;
  std::vector<std::string> needed; ///< sonames
  std::vector<std::string> defined_versions;
  std::vector<NeededVersions> needed_versions;
  std::vector<FileRange> texts; ///< constants and the names of symbols (.rodata, .dynstr, .strtab)
};

/// Reads a 64-bit little-endian file: headers and tables, whatever its size is, and never beyond
/// fixed bounds, whatever the file says. Never throws.
ElfFacts read_elf(const ReadAt& read_at);

/// Calls `visit` for each text in the ranges that ends with a zero byte and has at least
/// `least` printable ASCII characters; of a longer one the last 4096. At most `max_bytes` are read.
void each_text(const ReadAt& read_at, const std::vector<FileRange>& ranges, std::size_t least,
               std::uint64_t max_bytes, const std::function<void(std::string_view)>& visit);

} // namespace shmemctl::libraries
