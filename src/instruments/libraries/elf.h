// Facts about an ELF file, read without loading it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace shmemctl::libraries {

/// Returns `count` bytes at `offset`; fewer if the file ends before or cannot be read.
using ReadAt = std::function<std::string(std::uint64_t offset, std::size_t count)>;

/// Part of a file.
struct FileRange {
  std::uint64_t offset = 0, size_bytes = 0;
};

/// Symbol versions that a file needs from another file.
struct NeededVersions {
  std::string file;                  ///< soname: "libmlx5.so.1"
  std::vector<std::string> versions; ///< without weak versions, which the other file may lack
};

struct ElfFacts {
  std::string problem; ///< why it could not be read completely; "" on success
  std::string soname, build_id;
  std::vector<std::string> needed; ///< sonames
  std::vector<std::string> defined_versions;
  std::vector<NeededVersions> needed_versions;
  std::vector<FileRange> texts; ///< constants and the names of symbols (.rodata, .dynstr, .strtab)
};

/// Reads the headers and tables of a 64-bit little-endian ELF file of any size. The amount that is
/// read is bounded, whatever the file contains. Never throws.
ElfFacts read_elf(const ReadAt& read_at);

/// Calls `visit` for each text in the ranges that ends with a zero byte and has at least `least`
/// printable ASCII characters; of a text longer than 4096 bytes, only with the last 4096. Reads at
/// most `max_bytes`.
void each_text(const ReadAt& read_at, const std::vector<FileRange>& ranges, std::size_t least,
               std::uint64_t max_bytes, const std::function<void(std::string_view)>& visit);

} // namespace shmemctl::libraries
