#include "transports/ucx/key.h"

#include "src/base/error.h"
#include "src/base/wire_bytes.h"

namespace shmemctl {

namespace {

Error bad_key(const std::string& problem) {
  return input_error("UCX rkey of a peer", "", problem,
                     "run the same version of shmemctl on all hosts");
}

} // namespace

std::string to_key(const std::vector<UcxPiece>& pieces) {
  WireWriter writer;
  writer.number(std::uint64_t{pieces.size()});
  for (const UcxPiece& piece : pieces) {
    writer.number(piece.size_bytes);
    writer.number(piece.address);
    writer.text<std::uint64_t>(piece.packed, piece.packed.size());
  }
  return writer.take();
}

std::vector<UcxPiece> parse_key(std::string_view key) {
  WireReader reader(key);
  const auto count = reader.number<std::uint64_t>();
  if (count > max_ucx_pieces)
    throw bad_key("it has " + std::to_string(count) + " pieces");
  std::vector<UcxPiece> pieces;
  std::uint64_t end = 0;
  for (std::uint64_t at = 0; at < count; ++at) {
    UcxPiece piece;
    piece.offset_bytes = end;
    piece.size_bytes = reader.number<std::uint64_t>();
    piece.address = reader.number<std::uint64_t>();
    piece.packed = reader.text<std::uint64_t>(key.size());
    if (!reader.good())
      break;
    if (piece.size_bytes == 0 || piece.size_bytes > UINT64_MAX - end ||
        piece.size_bytes > UINT64_MAX - piece.address || piece.packed.empty())
      throw bad_key("piece " + std::to_string(at) + " is empty or too long");
    end += piece.size_bytes;
    pieces.push_back(std::move(piece));
  }
  if (!reader.good())
    throw bad_key("it ends too early");
  if (!reader.at_end())
    throw bad_key("bytes follow its last piece");
  return pieces;
}

} // namespace shmemctl
