// Zstandard: what it compresses, and reads with bounded memory.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shmemctl {

/// Whether the bytes begin like a frame of Zstandard.
bool is_zstd(std::string_view bytes);

/// One frame with a checksum. Throws Error (unavailable) if there is no memory for it.
std::string zstd_compressed(std::string_view bytes);

/// What the frames in `bytes` hold. Throws Error (usage) if they are cut off or damaged, or hold
/// more than `max_bytes`: then it stops there, whatever their headers announce.
/// @param subject the file's name, for the message
std::string zstd_decompressed(std::string_view bytes, const std::string& subject,
                              std::size_t max_bytes);

} // namespace shmemctl
