// Both protocols of process managers: cutting a stream into frames, and reading them.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/base/error.h"
#include "src/runtime/bootstrap/kvs_bootstrap.h"
#include "src/runtime/bootstrap/pmi_wire.h"

namespace {

using shmemctl::PmiFramer;
using shmemctl::PmiMessage;

void require(bool good) {
  if (!good)
    std::abort();
}

/// What was read must be written and read again as the same.
void check_line(std::string_view line) {
  const auto message = shmemctl::parse_pmi1(line);
  if (!message)
    return;
  const std::string text = shmemctl::format_pmi1(*message);
  require(shmemctl::parse_pmi1(std::string_view(text).substr(0, text.size() - 1)) == message);
}

void check_block(std::string_view block) {
  const auto message = shmemctl::parse_pmi2(block);
  if (!message)
    return;
  const std::string text = shmemctl::format_pmi2(*message);
  require(shmemctl::parse_pmi2(std::string_view(text).substr(6)) == message);
}

/// The stream as PMI-1, or as PMI-2 after a first line, fed in portions.
void check_stream(std::string_view stream, std::size_t portion_bytes, bool blocks) {
  PmiFramer framer;
  bool first = true;
  try {
    for (std::size_t at = 0; at < stream.size(); at += portion_bytes) {
      framer.feed(stream.substr(at, portion_bytes));
      while (const auto frame = blocks && !first ? framer.next_block() : framer.next_line()) {
        require(frame->size() <= PmiFramer::max_frame_bytes);
        check_line(*frame);
        check_block(*frame);
        first = false;
      }
    }
  } catch (const shmemctl::Error&) {
    return; // what cannot become a frame
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view stream = text.substr(1);
  const std::size_t portion_bytes = std::size_t{data[0]} + 1;
  check_line(stream);
  check_block(stream);
  check_stream(stream, portion_bytes, false);
  check_stream(stream, portion_bytes, true);
  const auto bytes = shmemctl::from_base64(stream);
  require(!bytes || shmemctl::base64(bytes->data(), bytes->size()) == stream);
  return 0;
}
