// Zstandard: compression, and decompression with bounded memory.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shmemctl {

/// Whether the bytes begin with a Zstandard frame.
bool is_zstd(std::string_view bytes);

/// Compresses to one frame with a checksum. Throws Error (unavailable) if there is no memory for
/// it.
std::string zstd_compressed(std::string_view bytes);

/// Decompresses the frames in `bytes`. Throws Error (usage) if they are cut off or damaged, or
/// contain more than `max_bytes`: decompression stops there, whatever their headers announce.
/// @param subject the file's name, for the message
std::string zstd_decompressed(std::string_view bytes, const std::string& subject,
                              std::size_t max_bytes);

} // namespace shmemctl
