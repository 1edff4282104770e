// Reduces a large library to a small ELF file with the same facts.
#pragma once

#include <string>

#include "src/instruments/libraries/elf.h"
#include "src/instruments/libraries/libraries.h"

namespace shmemctl::gather {

/// Returns a file without code for which read_elf() gives the same facts as for the library: name,
/// build ID, needed libraries and symbol versions. If texts of this kind of library are read, it
/// also contains the identifiers at the ends of the texts and the versions, and no other text.
/// Returns "" if the input is not a 64-bit little-endian ELF file.
/// @param kind nullptr for a library whose texts nobody reads
std::string elf_excerpt(const libraries::ReadAt& read_at, const libraries::LibraryKind* kind);

} // namespace shmemctl::gather
