// The cast of tokens to FP8. No CUDA header.
#pragma once

#include <cstdint>
#include <string>

#include "src/model/moe/shape.h"

namespace shmemctl::moe {

struct CastArguments {
  std::int32_t hidden; ///< a multiple of channels_per_scale
  std::int64_t tokens;
  const std::uint16_t* values; ///< [tokens][hidden] BF16, aligned to 16 bytes
  std::uint8_t* casts;         ///< [tokens][hidden] e4m3, aligned to 8 bytes
  float* scales;               ///< [tokens][hidden / channels_per_scale]
  bool power_scales;           ///< powers of two only
  int sms;
};
/// Returns "" or why the launch failed; does not wait.
std::string launch_cast(const CastArguments& arguments, void* stream);

} // namespace shmemctl::moe
