#include "transports/ibrc/wire.h"

#include <algorithm>
#include <type_traits>

namespace shmemctl::ibrc {

namespace {

/// The first byte of every text; another layout gets another one.
constexpr std::uint8_t version = 2;

class Writer {
public:
  Writer() { number(version); }

  /// Little-endian.
  template <class T>
  void number(T value) {
    const auto bits = static_cast<std::uint64_t>(value);
    for (std::size_t byte = 0; byte < sizeof(T); ++byte)
      bytes_ += static_cast<char>(bits >> (8 * byte) & 0xff);
  }
  void flag(bool value) { number(static_cast<std::uint8_t>(value)); }
  void text(const std::string& value) {
    const std::size_t length = std::min(value.size(), wire_limits::text_bytes);
    number(static_cast<std::uint8_t>(length));
    bytes_.append(value, 0, length);
  }
  void raw(const verbs::RawGid& value) { bytes_.append(value.begin(), value.end()); }
  template <class Items, class Each>
  void list(const Items& items, Each each) {
    number(static_cast<std::uint8_t>(items.size()));
    for (const auto& item : items)
      each(item);
  }
  std::string take() { return std::move(bytes_); }

private:
  std::string bytes_;
};

/// After the first thing that is not there, everything is zero, and ok() is false.
class Reader {
public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {
    if (number<std::uint8_t>() != version)
      ok_ = false;
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
  bool flag() {
    const auto value = number<std::uint8_t>();
    ok_ = ok_ && value <= 1;
    return value == 1;
  }
  std::string text() {
    const std::size_t length = number<std::uint8_t>();
    if (!available(length))
      return {};
    at_ += length;
    return bytes_.substr(at_ - length, length);
  }
  verbs::RawGid raw() {
    verbs::RawGid value{};
    for (std::uint8_t& byte : value)
      byte = number<std::uint8_t>();
    return value;
  }
  /// A number that says how many of something follow.
  std::size_t count(std::size_t most) {
    const std::size_t value = number<std::uint8_t>();
    ok_ = ok_ && value <= most;
    return ok_ ? value : 0;
  }
  void require(bool condition) { ok_ = ok_ && condition; }
  /// Whether everything was there, and nothing else.
  bool complete() const { return ok_ && at_ == bytes_.size(); }

private:
  bool available(std::size_t size_bytes) {
    ok_ = ok_ && bytes_.size() - at_ >= size_bytes;
    return ok_;
  }

  const std::string& bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

template <class T>
std::optional<T> if_complete(const Reader& reader, T value) {
  return reader.complete() ? std::optional<T>(std::move(value)) : std::nullopt;
}

void write(Writer& writer, const AtomicsOffer& offer) {
  writer.number(static_cast<std::uint8_t>(offer.wish));
  writer.flag(offer.by_device);
  writer.number(offer.receives);
}

AtomicsOffer read_offer(Reader& reader) {
  AtomicsOffer offer;
  const auto wish = reader.number<std::uint8_t>();
  reader.require(wish <= static_cast<std::uint8_t>(AtomicsWish::message));
  offer.wish = static_cast<AtomicsWish>(wish);
  offer.by_device = reader.flag();
  offer.receives = reader.number<std::uint32_t>();
  return offer;
}

Hello::Nic read_nic(Reader& reader) {
  Hello::Nic nic;
  nic.device = reader.text();
  nic.port = reader.number<std::uint8_t>();
  nic.ethernet = reader.flag();
  nic.grh_required = reader.flag();
  nic.lid = reader.number<std::uint16_t>();
  nic.mtu_bytes = reader.number<std::uint16_t>();
  nic.max_message_bytes = reader.number<std::uint64_t>();
  nic.outstanding_reads = reader.number<std::uint8_t>();
  reader.require(nic.mtu_bytes >= 256 && nic.mtu_bytes <= 4096 && nic.max_message_bytes > 0);
  const std::size_t addresses = reader.count(verbs::gid_kinds);
  for (std::size_t i = 0; i < addresses; ++i) {
    const auto kind = reader.number<std::uint8_t>();
    reader.require(kind < verbs::gid_kinds);
    nic.addresses.push_back({static_cast<verbs::GidKind>(kind), reader.raw()});
  }
  return nic;
}

} // namespace

std::string encode(const Summary& summary) {
  Writer writer;
  writer.text(summary.reason);
  writer.list(summary.ports, [&](const Summary::Port& port) {
    writer.flag(port.ethernet);
    writer.number(port.gid_kinds);
  });
  write(writer, summary.atomics);
  return writer.take();
}

std::optional<Summary> decode_summary(const std::string& bytes) {
  Reader reader(bytes);
  Summary summary;
  summary.reason = reader.text();
  const std::size_t ports = reader.count(wire_limits::ports);
  for (std::size_t i = 0; i < ports; ++i) {
    Summary::Port port;
    port.ethernet = reader.flag();
    port.gid_kinds = reader.number<std::uint8_t>();
    summary.ports.push_back(port);
  }
  summary.atomics = read_offer(reader);
  return if_complete(reader, std::move(summary));
}

std::string encode(const Hello& hello) {
  Writer writer;
  writer.text(hello.host);
  writer.number(hello.wanted_mtu_bytes);
  writer.number(hello.lanes);
  writer.list(hello.nics, [&](const Hello::Nic& nic) {
    writer.text(nic.device);
    writer.number(nic.port);
    writer.flag(nic.ethernet);
    writer.flag(nic.grh_required);
    writer.number(nic.lid);
    writer.number(nic.mtu_bytes);
    writer.number(nic.max_message_bytes);
    writer.number(nic.outstanding_reads);
    writer.list(nic.addresses, [&](const Hello::Address& address) {
      writer.number(static_cast<std::uint8_t>(address.kind));
      writer.raw(address.raw);
    });
  });
  write(writer, hello.atomics);
  return writer.take();
}

std::optional<Hello> decode_hello(const std::string& bytes) {
  Reader reader(bytes);
  Hello hello;
  hello.host = reader.text();
  hello.wanted_mtu_bytes = reader.number<std::uint16_t>();
  hello.lanes = reader.number<std::uint8_t>();
  reader.require(hello.lanes >= 1 && hello.lanes <= wire_limits::lanes);
  const std::size_t nics = reader.count(wire_limits::ports);
  reader.require(nics >= 1);
  for (std::size_t i = 0; i < nics; ++i)
    hello.nics.push_back(read_nic(reader));
  hello.atomics = read_offer(reader);
  return if_complete(reader, std::move(hello));
}

std::string encode(const QueuePairNames& names) {
  Writer writer;
  writer.list(names.rails, [&](const std::vector<QueuePairNames::Name>& lanes) {
    writer.list(lanes, [&](const QueuePairNames::Name& name) {
      writer.number(name.number);
      writer.number(name.first_packet);
    });
  });
  return writer.take();
}

std::optional<QueuePairNames> decode_queue_pair_names(const std::string& bytes) {
  Reader reader(bytes);
  QueuePairNames names;
  const std::size_t rails = reader.count(wire_limits::ports);
  for (std::size_t rail = 0; rail < rails; ++rail) {
    std::vector<QueuePairNames::Name> list(reader.count(wire_limits::lanes));
    for (QueuePairNames::Name& name : list) {
      name.number = reader.number<std::uint32_t>();
      name.first_packet = reader.number<std::uint32_t>();
      reader.require(name.number >> 24 == 0 && name.first_packet >> 24 == 0);
    }
    names.rails.push_back(std::move(list));
  }
  return if_complete(reader, std::move(names));
}

std::string encode(const Attempt& attempt) {
  Writer writer;
  writer.flag(attempt.failed_somewhere);
  writer.list(attempt.rails, [&](bool ready) { writer.flag(ready); });
  return writer.take();
}

std::optional<Attempt> decode_attempt(const std::string& bytes) {
  Reader reader(bytes);
  Attempt attempt;
  attempt.failed_somewhere = reader.flag();
  const std::size_t rails = reader.count(wire_limits::ports);
  for (std::size_t i = 0; i < rails; ++i)
    attempt.rails.push_back(reader.flag());
  return if_complete(reader, std::move(attempt));
}

std::string encode(const SegmentKey& key) {
  Writer writer;
  writer.number(key.offset_bytes);
  writer.number(key.size_bytes);
  writer.number(key.address);
  writer.list(key.keys, [&](std::uint32_t each) { writer.number(each); });
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
  const std::size_t keys = reader.count(wire_limits::ports);
  for (std::size_t i = 0; i < keys; ++i)
    key.keys.push_back(reader.number<std::uint32_t>());
  return if_complete(reader, std::move(key));
}

} // namespace shmemctl::ibrc
