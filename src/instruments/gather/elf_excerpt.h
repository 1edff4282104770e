// A small ELF file that says about itself what a large library says.
#pragma once

#include <string>

#include "src/instruments/libraries/elf.h"
#include "src/instruments/libraries/libraries.h"

namespace shmemctl::gather {

/// Of a library of any size, a file without code that read_elf() understands as the same: its name,
/// build ID, needed libraries and symbol versions; and of its texts, if its kind's are read, the
/// identifiers at their ends, the versions, and nothing else. "" for what is not a 64-bit
/// little-endian ELF file.
/// @param kind null for a library whose texts nobody reads
std::string elf_excerpt(const libraries::ReadAt& read_at, const libraries::LibraryKind* kind);

} // namespace shmemctl::gather
