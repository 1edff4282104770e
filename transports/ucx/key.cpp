#include "transports/ucx/key.h"

#include <cstring>

#include "src/base/error.h"

namespace shmemctl {

namespace {

Error bad_key(const std::string& problem) {
  return input_error("a UCX key of a peer", "", problem,
                     "start all PEs with the same version of this tool");
}

void append(std::string& text, std::uint64_t number) {
  text.append(reinterpret_cast<const char*>(&number), sizeof number);
}

class Reader {
public:
  explicit Reader(std::string_view text) : rest_(text) {}
  std::uint64_t number() {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view bytes(std::uint64_t count) {
    if (count > rest_.size())
      throw bad_key("it ends too early");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  bool empty() const { return rest_.empty(); }

private:
  std::string_view rest_;
};

} // namespace

std::string to_key(const std::vector<UcxPiece>& pieces) {
  std::string key;
  append(key, pieces.size());
  for (const UcxPiece& piece : pieces) {
    append(key, piece.size_bytes);
    append(key, piece.address);
    append(key, piece.packed.size());
    key += piece.packed;
  }
  return key;
}

std::vector<UcxPiece> parse_key(std::string_view key) {
  Reader reader(key);
  const std::uint64_t count = reader.number();
  if (count > max_ucx_pieces)
    throw bad_key("it has " + std::to_string(count) + " pieces");
  std::vector<UcxPiece> pieces;
  std::uint64_t end = 0;
  for (std::uint64_t at = 0; at < count; ++at) {
    UcxPiece piece;
    piece.offset_bytes = end;
    piece.size_bytes = reader.number();
    piece.address = reader.number();
    piece.packed = reader.bytes(reader.number());
    if (piece.size_bytes == 0 || piece.size_bytes > UINT64_MAX - end ||
        piece.size_bytes > UINT64_MAX - piece.address || piece.packed.empty())
      throw bad_key("piece " + std::to_string(at) + " is empty or too long");
    end += piece.size_bytes;
    pieces.push_back(std::move(piece));
  }
  if (!reader.empty())
    throw bad_key("bytes follow its last piece");
  return pieces;
}

} // namespace shmemctl
