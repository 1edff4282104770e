// Unnamed files that provide host memory, and the kind of their pages.
#pragma once

#include <cstddef>
#include <string>

#include "src/base/file_descriptor.h"

namespace shmemctl {

inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

enum class HostFileKind { memfd, memfd_of_huge_pages, devshm };
const char* to_string(HostFileKind kind);

/// An empty file, close-on-exec. Throws Error (unavailable).
FileDescriptor open_host_file(HostFileKind kind);
/// Whether the system supports memfd files.
bool memfd_works() noexcept;

/// Sets the file's size. If the file supports seals, it can then neither shrink nor grow. Throws
/// Error (unavailable); never causes a SIGXFSZ.
void resize_host_file(const FileDescriptor& file, HostFileKind kind, std::size_t size_bytes);

/// The subject for messages: "64M of shared memory (memfd)".
std::string memory_subject(std::size_t size_bytes, HostFileKind kind);

} // namespace shmemctl
