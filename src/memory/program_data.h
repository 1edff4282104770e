// Where the running program's global and static variables lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <link.h>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shmemctl {

/// Whole pages.
struct PageRange {
  std::uintptr_t begin = 0, end = 0;
  std::size_t size_bytes() const { return end - begin; }
  bool operator==(const PageRange&) const = default;
};

/// Where a program's variables lie: what is writable in it once the dynamic loader has protected
/// its own tables (RELRO). Linkers lay .data and .bss out in one segment; arrays of programs that
/// are compiled for more than 2 GiB of them (-mcmodel=medium: .ldata, .lbss) are in others, so that
/// there may be something between.
struct DataLayout {
  PageRange pages;                  ///< from the first variable to the last; none: size 0
  std::vector<PageRange> stored;    ///< writable pages that the program file has contents of
  std::vector<PageRange> zeroed;    ///< writable pages that begin as zeros
  std::vector<PageRange> constants; ///< read-only segments between the writable ones
  std::vector<PageRange> gaps;      ///< pages between them in which the program has nothing
  std::string problem;              ///< why the pages cannot be shared; "" if they can
};

/// Ranges are sorted and do not overlap.
/// @param load_address what is added to the headers' addresses (0 in a program that is not PIE)
DataLayout data_layout(std::span<const ElfW(Phdr)> headers, std::uintptr_t load_address,
                       std::size_t page_bytes);

struct ProgramData {
  DataLayout layout;
  std::uintptr_t load_address = 0;
  std::string build_id; ///< hexadecimal; of the file's contents where the linker wrote none
  const PageRange& pages() const { return layout.pages; }
};
/// Of the main program. Throws Error (unavailable).
ProgramData find_program_data();

/// The GNU build id in the notes of a program (the bytes of a PT_NOTE segment), in hexadecimal.
/// Survives any bytes.
std::optional<std::string> find_build_id(std::span<const std::byte> notes);

} // namespace shmemctl
