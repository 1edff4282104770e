// Copies between memory and a file, and moves of pages, by raw system calls that run no other code
// of this process.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shmemctl {

/// By the kernel: it copies what sanitizers would not let a program touch (the gaps between
/// variables), no function of the C library can take part, and memory that is not there is an
/// error and no signal. Returns 0, or the error's number. Allocates nothing.
int write_to_file(int file, std::uint64_t offset_bytes, const void* memory,
                  std::size_t size_bytes) noexcept;
int read_from_file(int file, std::uint64_t offset_bytes, void* memory,
                   std::size_t size_bytes) noexcept;

/// Moves the pages of `from` to `to`: mremap() with a fixed address, by a raw system call. UCX
/// replaces the C library's mremap() by a function that loses the fifth argument, so the pages
/// would move to an arbitrary address. Returns whether the kernel did it.
bool move_pages(void* from, void* to, std::size_t size_bytes) noexcept;

} // namespace shmemctl
