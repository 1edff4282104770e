// Copies between memory and a file, and moves of pages, by raw system calls, so that no other code
// of this process runs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shmemctl {

/// Copies by syscall(), and calls no other function of the C library: the kernel also copies memory
/// that sanitizers do not let a program touch (the gaps between variables), and unmapped memory is
/// an error instead of a signal. Returns 0 or the errno. Allocates nothing.
int write_to_file(int file, std::uint64_t offset_bytes, const void* memory,
                  std::size_t size_bytes) noexcept;
int read_from_file(int file, std::uint64_t offset_bytes, void* memory,
                   std::size_t size_bytes) noexcept;

/// Moves the pages of `from` to `to` by mremap() with a fixed address, as a raw system call: UCX
/// replaces the C library's mremap() by a function that loses the fifth argument, so that the pages
/// would move to an arbitrary address. Returns whether the call succeeded.
bool move_pages(void* from, void* to, std::size_t size_bytes) noexcept;

} // namespace shmemctl
