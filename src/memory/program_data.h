// Where the running program's global and static variables lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <link.h>
#include <optional>
#include <span>
#include <string>

namespace shmemctl {

/// Whole pages.
struct PageRange {
  std::uintptr_t begin = 0, end = 0;
  std::size_t size_bytes() const { return end - begin; }
  bool operator==(const PageRange&) const = default;
};

/// The pages of .data and .bss: what is writable in the program once the dynamic loader has
/// protected its own tables (RELRO). Linkers lay them out in one piece; if there are several, it
/// is the largest. Nothing if there is none, or it is executable too.
/// @param load_address what is added to the headers' addresses (0 in a program that is not PIE)
std::optional<PageRange> writable_pages(std::span<const ElfW(Phdr)> headers,
                                        std::uintptr_t load_address, std::size_t page_bytes);

struct ProgramData {
  PageRange pages;
  std::uintptr_t load_address = 0;
  std::string build_id; ///< hexadecimal; of the file's contents where the linker wrote none
};
/// Of the main program. Throws Error (unavailable).
ProgramData find_program_data();

/// The GNU build id in the notes of a program (the bytes of a PT_NOTE segment), in hexadecimal.
/// Survives any bytes.
std::optional<std::string> find_build_id(std::span<const std::byte> notes);

} // namespace shmemctl
