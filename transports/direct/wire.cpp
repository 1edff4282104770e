#include "transports/direct/wire.h"

#include <algorithm>

namespace shmemctl::direct {

namespace {

/// The first byte of every text; another layout gets another one.
constexpr std::uint8_t version = 1;
constexpr std::size_t most_queues = wire_limits::ports * wire_limits::lanes;

class Writer {
public:
  Writer() { number(version); }

  /// Little-endian.
  template <class T>
  void number(T value) {
    for (std::size_t byte = 0; byte < sizeof(T); ++byte)
      bytes_ += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * byte) & 0xff);
  }
  void text(const std::string& value, std::size_t most = wire_limits::text_bytes) {
    const std::size_t length = std::min(value.size(), most);
    number(static_cast<std::uint16_t>(length));
    bytes_.append(value, 0, length);
  }
  std::string take() { return std::move(bytes_); }

private:
  std::string bytes_;
};

/// After the first thing that is not there, everything is empty, and complete() is false.
class Reader {
public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {
    require(number<std::uint8_t>() == version);
  }

  template <class T>
  T number() {
    if (!available(sizeof(T)))
      return T{};
    std::uint64_t bits = 0;
    for (std::size_t byte = 0; byte < sizeof(T); ++byte)
      bits |= std::uint64_t{static_cast<std::uint8_t>(bytes_[at_ + byte])} << (8 * byte);
    at_ += sizeof(T);
    return static_cast<T>(bits);
  }
  std::string text(std::size_t most = wire_limits::text_bytes) {
    const std::size_t length = count<std::uint16_t>(most);
    if (!available(length))
      return {};
    at_ += length;
    return bytes_.substr(at_ - length, length);
  }
  /// A number that says how many of something follow.
  template <class T>
  std::size_t count(std::size_t most) {
    const std::size_t value = number<T>();
    require(value <= most);
    return ok_ ? value : 0;
  }
  void require(bool condition) { ok_ = ok_ && condition; }
  template <class Value>
  std::optional<Value> if_complete(Value value) const {
    return ok_ && at_ == bytes_.size() ? std::optional<Value>(std::move(value)) : std::nullopt;
  }

private:
  bool available(std::size_t size_bytes) {
    ok_ = ok_ && bytes_.size() - at_ >= size_bytes;
    return ok_;
  }

  const std::string& bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

} // namespace

std::string encode(const Summary& summary) {
  Writer writer;
  writer.number(static_cast<std::uint8_t>(summary.kind));
  writer.text(summary.reason);
  writer.number(static_cast<std::uint8_t>(summary.ethernet));
  writer.text(summary.over);
  writer.number(summary.network_namespace);
  writer.text(summary.below, wire_limits::below_bytes);
  return writer.take();
}

std::optional<Summary> decode_summary(const std::string& bytes) {
  Reader reader(bytes);
  Summary summary;
  const auto kind = reader.number<std::uint8_t>();
  reader.require(kind <= 2);
  summary.kind = static_cast<Summary::Kind>(kind);
  summary.reason = reader.text();
  const auto ethernet = reader.number<std::uint8_t>();
  reader.require(ethernet <= 1);
  summary.ethernet = ethernet == 1;
  summary.over = reader.text();
  summary.network_namespace = reader.number<std::uint64_t>();
  summary.below = reader.text(wire_limits::below_bytes);
  return reader.if_complete(std::move(summary));
}

std::string encode(const Hello& hello) {
  Writer writer;
  writer.text(hello.host);
  writer.number(hello.lanes);
  writer.number(static_cast<std::uint8_t>(hello.ports.size()));
  for (const Hello::Port& port : hello.ports) {
    writer.text(port.device);
    writer.number(port.port);
  }
  return writer.take();
}

std::optional<Hello> decode_hello(const std::string& bytes) {
  Reader reader(bytes);
  Hello hello;
  hello.host = reader.text();
  hello.lanes = reader.number<std::uint8_t>();
  reader.require(hello.lanes >= 1 && hello.lanes <= wire_limits::lanes);
  const std::size_t ports = reader.count<std::uint8_t>(wire_limits::ports);
  reader.require(ports >= 1);
  for (std::size_t i = 0; i < ports; ++i) {
    std::string device = reader.text();
    hello.ports.push_back({std::move(device), reader.number<std::uint8_t>()});
  }
  return reader.if_complete(std::move(hello));
}

std::string encode(const QueueNames& names) {
  Writer writer;
  writer.number(static_cast<std::uint16_t>(names.queues.size()));
  for (const std::string& queue : names.queues)
    writer.text(queue);
  return writer.take();
}

std::optional<QueueNames> decode_queue_names(const std::string& bytes) {
  Reader reader(bytes);
  QueueNames names;
  const std::size_t queues = reader.count<std::uint16_t>(most_queues);
  for (std::size_t i = 0; i < queues; ++i)
    names.queues.push_back(reader.text());
  return reader.if_complete(std::move(names));
}

std::string encode(const SegmentKey& key) {
  Writer writer;
  writer.number(key.offset_bytes);
  writer.number(key.size_bytes);
  writer.number(key.address);
  writer.number(static_cast<std::uint8_t>(key.keys.size()));
  for (const std::uint32_t each : key.keys)
    writer.number(each);
  writer.text(key.below, wire_limits::below_bytes);
  return writer.take();
}

std::optional<SegmentKey> decode_segment_key(const std::string& bytes) {
  Reader reader(bytes);
  SegmentKey key;
  key.offset_bytes = reader.number<std::uint64_t>();
  key.size_bytes = reader.number<std::uint64_t>();
  key.address = reader.number<std::uint64_t>();
  reader.require(key.offset_bytes + key.size_bytes >= key.size_bytes &&
                 key.address + key.size_bytes >= key.size_bytes);
  const std::size_t keys = reader.count<std::uint8_t>(wire_limits::ports);
  for (std::size_t i = 0; i < keys; ++i)
    key.keys.push_back(reader.number<std::uint32_t>());
  key.below = reader.text(wire_limits::below_bytes);
  return reader.if_complete(std::move(key));
}

} // namespace shmemctl::direct
