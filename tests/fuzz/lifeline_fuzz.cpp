// failure_detector::decode: any bytes are a frame, the beginning of one, or garbage; a frame has
// one spelling, and no beginning of it is taken for garbage or for another frame.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/runtime/failure_detector_wire.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl::failure_detector;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Decoded as_stranger = decode(bytes, max_unproven_bytes);
  if (as_stranger.state == Decoding::complete && as_stranger.size_bytes > max_unproven_bytes)
    std::abort();
  for (;;) {
    const Decoded decoded = decode(bytes, max_frame_bytes);
    if (decoded.state != Decoding::complete)
      return 0;
    const std::string_view frame = bytes.substr(0, decoded.size_bytes);
    if (frame.size() > max_frame_bytes || encode(decoded.message) != frame)
      std::abort();
    for (std::size_t length = 0; length < frame.size(); length += 1 + length / 8)
      if (decode(frame.substr(0, length), max_frame_bytes).state != Decoding::incomplete)
        std::abort();
    if (shmemctl::failure_detector::is_proven({}, {}, decoded.message)) // nobody can guess that
      std::abort();
    if (frame_size(frame.substr(0, frame_header_bytes), max_frame_bytes) != frame.size())
      std::abort();
    bytes.remove_prefix(decoded.size_bytes);
  }
}
