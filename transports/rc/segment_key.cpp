#include "transports/rc/segment_key.h"

#include "src/base/wire_bytes.h"

namespace shmemctl::rc {

namespace {

constexpr std::uint8_t version = 4;

} // namespace

std::string encode(const SegmentKey& key) {
  WireWriter writer(version);
  writer.number(key.offset_bytes);
  writer.number(key.size_bytes);
  writer.number(key.address);
  writer.number(static_cast<std::uint8_t>(key.keys.size()));
  for (const std::uint32_t each : key.keys)
    writer.number(each);
  writer.text(key.below, max_below_bytes);
  return writer.take();
}

std::optional<SegmentKey> decode_segment_key(const std::string& bytes, std::size_t max_keys) {
  WireReader reader(bytes, version);
  SegmentKey key;
  key.offset_bytes = reader.number<std::uint64_t>();
  key.size_bytes = reader.number<std::uint64_t>();
  key.address = reader.number<std::uint64_t>();
  reader.require(key.offset_bytes + key.size_bytes >= key.size_bytes &&
                 key.address + key.size_bytes >= key.size_bytes);
  const std::size_t keys = reader.count<std::uint8_t>(max_keys);
  for (std::size_t i = 0; i < keys; ++i)
    key.keys.push_back(reader.number<std::uint32_t>());
  key.below = reader.text(max_below_bytes);
  return reader.if_complete(std::move(key));
}

} // namespace shmemctl::rc
