// The program's global and static variables: where they are, and which of their pages were touched.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <link.h>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/file_descriptor.h"
#include "src/runtime/memory/process_vm_copy.h"

namespace shmemctl {

/// Addresses from `begin` up to, but not including, `end`: whole pages.
struct PageRange {
  std::uintptr_t begin = 0, end = 0;
  std::size_t size_bytes() const { return end - begin; }
  bool operator==(const PageRange&) const = default;
};

/// The address ranges of a program's variables: all that is writable once the dynamic loader has
/// protected its own tables (RELRO). Linkers place .data and .bss in one segment. Programs that are
/// compiled for more than 2 GiB of variables (-mcmodel=medium) have large arrays in other segments
/// (.ldata, .lbss), and there may be read-only segments or gaps in between.
struct DataLayout {
  PageRange pages;                  ///< from the first variable to the last; size 0: no variables
  std::vector<PageRange> stored;    ///< writable pages whose contents come from the program file
  std::vector<PageRange> zeroed;    ///< writable pages that begin as zeros
  std::vector<PageRange> constants; ///< read-only segments between the writable ones
  std::vector<PageRange> gaps;      ///< pages between the segments that the program does not use
  std::string problem;              ///< why the pages cannot be shared; "" if they can
};

/// Computes the layout; its ranges are sorted and do not overlap.
/// @param load_address added to the headers' addresses (0 in a program that is not PIE)
DataLayout data_layout(std::span<const ElfW(Phdr)> headers, std::uintptr_t load_address,
                       std::size_t page_bytes);

struct ProgramData {
  DataLayout layout;
  std::uintptr_t load_address = 0;
  std::string build_id; ///< hexadecimal; a hash of the file if the linker wrote no build id
  const PageRange& pages() const { return layout.pages; }
};
/// The static data of the main program. Throws Error (unavailable).
ProgramData find_program_data();

/// The GNU build id in the notes of a program (the bytes of a PT_NOTE segment), in hexadecimal.
/// Accepts any bytes.
std::optional<std::string> find_build_id(std::span<const std::byte> notes);

// Which pages of this process have been touched: the others are zero and need not be copied.

class TouchedPages {
public:
  /// Opens the kernel's table of this process's pages. If it cannot be opened (/proc is not
  /// mounted), all pages count as touched.
  TouchedPages();

  /// Calls take(PageRange) for each run of pages in `range` (private anonymous memory) that is in
  /// memory or in swap. Allocates nothing and calls only syscall() of the C library. Returns the
  /// first non-zero result of `take`, or 0.
  template <class Take>
  int for_each_run(const PageRange& range, const Take& take) const {
    constexpr std::size_t at_once = 512;
    std::array<std::uint64_t, at_once> entries;
    PageRange run{range.begin, range.begin};
    for (std::uintptr_t begin = range.begin; begin < range.end;) {
      const std::size_t count = std::min<std::size_t>((range.end - begin) / page_bytes_, at_once);
      const bool known =
          table_ && read_from_file(table_.get(), begin / page_bytes_ * sizeof(std::uint64_t),
                                   entries.data(), count * sizeof(std::uint64_t)) == 0;
      for (std::size_t i = 0; i < count; ++i, begin += page_bytes_) {
        if (known && (entries[i] & in_memory_or_swap) == 0)
          continue;
        if (run.end != begin) {
          if (run.size_bytes() > 0)
            if (const int result = take(run))
              return result;
          run.begin = begin;
        }
        run.end = begin + page_bytes_;
      }
    }
    return run.size_bytes() > 0 ? take(run) : 0;
  }

private:
  /// Bits 63 and 62 of an entry (Documentation/admin-guide/mm/pagemap.rst of Linux).
  static constexpr std::uint64_t in_memory_or_swap = std::uint64_t{3} << 62;

  FileDescriptor table_;
  std::uintptr_t page_bytes_;
};

} // namespace shmemctl
