// Which pages of this process were ever touched: the others are zero, and nobody has to copy them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "src/base/file_descriptor.h"
#include "src/memory/kernel_copy.h"
#include "src/memory/program_data.h"

namespace shmemctl {

class TouchedPages {
public:
  /// Opens the kernel's table of this process' pages. Where it has none (/proc is not mounted), all
  /// pages count as touched.
  TouchedPages();

  /// Calls take(PageRange) for the runs of pages in `range`, which is private memory without a file
  /// behind it, that are in memory or in swap. Allocates nothing and calls no function of the C
  /// library. Returns the first number other than 0 that `take` gives, or 0.
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
