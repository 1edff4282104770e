// Any bytes as what comes over a connection of the uid bootstrap: frames, their contents, and the
// rendezvous' decisions about them. The first byte is the size of the pieces in which they come.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "src/runtime/bootstrap/frame.h"
#include "src/runtime/bootstrap/rendezvous.h"

namespace {

using namespace shmemctl;

void require(bool holds) {
  if (!holds)
    std::abort();
}

template <class Content>
std::optional<Content> decode(const Bytes& payload) {
  std::optional<Content> content = Content::decode(payload);
  if (content)
    require(Content::decode(content->encode()).has_value());
  return content;
}

void take_part(Membership& members, const Join& join) {
  const int before = members.joined();
  const Membership::Decision answer = members.add(join);
  require(members.joined() <= before + 1);
  require((answer.verdict == Membership::Verdict::conflict) == !answer.problem.text.empty());
  require(members.joined() <= std::max(members.size(), 0));
  if (!members.complete())
    require(members.missing().size() < 300);
  if (members.joined() > 0)
    require(!members.name(join.rank).empty());
  for (int rank = 0; members.complete() && rank < members.size(); ++rank)
    require(Neighbours::decode(members.neighbours_of(rank).encode()).has_value());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0)
    return 0;
  const std::size_t step = 1 + data[0] % 64;
  const auto* at = reinterpret_cast<const std::byte*>(data) + 1;
  const std::byte* const end = reinterpret_cast<const std::byte*>(data) + size;
  FrameReader reader;
  Membership members;
  while (at < end) {
    const FrameReader::Room room = reader.room();
    if (room.size_bytes == 0)
      return 0;
    const std::size_t count = std::min({step, room.size_bytes, static_cast<std::size_t>(end - at)});
    std::copy_n(at, count, room.at);
    at += count;
    reader.filled(count);
    if (!reader.complete())
      continue;
    require(reader.payload().size() == reader.header().size_bytes);
    require(reader.payload().size() <= max_control_bytes);
    if (const std::optional<Nonce> nonce = decode_nonce(reader.payload()))
      require(encode_nonce(*nonce) == reader.payload());
    if (const std::optional<Proven> proven = decode_proven(reader.payload())) {
      require(encode_proven(proven->proof, proven->contents) == reader.payload());
      require(
          !same_proof(proven->proof, dialer_proof({}, {}, reader.header().kind, proven->contents)));
      decode<Hello>(proven->contents);
      if (const std::optional<Join> join = decode<Join>(proven->contents))
        take_part(members, *join);
    }
    decode<Hello>(reader.payload());
    decode<Neighbours>(reader.payload());
    decode<FailureReport>(reader.payload());
    if (const std::optional<Join> join = decode<Join>(reader.payload()))
      take_part(members, *join);
    reader.reset();
  }
  return 0;
}
