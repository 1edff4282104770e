#include "transports/ibrc/wire.h"

#include "src/base/wire_bytes.h"

namespace shmemctl::ibrc {

namespace {

/// Of every text.
constexpr std::uint8_t version = 3;

void write_text(WireWriter& writer, const std::string& value) {
  writer.text<std::uint8_t>(value, wire_limits::text_bytes);
}

std::string read_text(WireReader& reader) {
  return reader.text<std::uint8_t>(wire_limits::text_bytes);
}

template <class Items, class Each>
void write_list(WireWriter& writer, const Items& items, Each each) {
  writer.number(static_cast<std::uint8_t>(items.size()));
  for (const auto& item : items)
    each(item);
}

void write(WireWriter& writer, const AtomicsCapabilities& capabilities) {
  writer.number(capabilities.preference);
  writer.flag(capabilities.by_device);
  writer.number(capabilities.receives);
}

AtomicsCapabilities read_capabilities(WireReader& reader) {
  AtomicsCapabilities capabilities;
  capabilities.preference = reader.choice(AtomicsPreference::message);
  capabilities.by_device = reader.flag();
  capabilities.receives = reader.number<std::uint32_t>();
  return capabilities;
}

Hello::Nic read_nic(WireReader& reader) {
  Hello::Nic nic;
  nic.device = read_text(reader);
  nic.port = reader.number<std::uint8_t>();
  nic.ethernet = reader.flag();
  nic.grh_required = reader.flag();
  nic.lid = reader.number<std::uint16_t>();
  nic.mtu_bytes = reader.number<std::uint16_t>();
  nic.max_message_bytes = reader.number<std::uint64_t>();
  nic.outstanding_reads = reader.number<std::uint8_t>();
  nic.orders_writes = reader.flag();
  reader.require(nic.mtu_bytes >= 256 && nic.mtu_bytes <= 4096 && nic.max_message_bytes > 0);
  const std::size_t addresses = reader.count<std::uint8_t>(verbs::gid_kinds);
  for (std::size_t i = 0; i < addresses; ++i) {
    const auto kind = reader.choice(verbs::GidKind{verbs::gid_kinds - 1});
    nic.addresses.push_back({kind, reader.array<sizeof(verbs::RawGid)>()});
  }
  return nic;
}

} // namespace

std::string encode(const Summary& summary) {
  WireWriter writer(version);
  write_text(writer, summary.reason);
  write_list(writer, summary.ports, [&](const Summary::Port& port) {
    writer.flag(port.ethernet);
    writer.number(port.gid_kinds);
  });
  write(writer, summary.atomics);
  return writer.take();
}

std::optional<Summary> decode_summary(const std::string& bytes) {
  WireReader reader(bytes, version);
  Summary summary;
  summary.reason = read_text(reader);
  const std::size_t ports = reader.count<std::uint8_t>(wire_limits::ports);
  for (std::size_t i = 0; i < ports; ++i) {
    Summary::Port port;
    port.ethernet = reader.flag();
    port.gid_kinds = reader.number<std::uint8_t>();
    summary.ports.push_back(port);
  }
  summary.atomics = read_capabilities(reader);
  return reader.if_complete(std::move(summary));
}

std::string encode(const Hello& hello) {
  WireWriter writer(version);
  write_text(writer, hello.host);
  writer.number(hello.wanted_mtu_bytes);
  writer.number(hello.qp_sets);
  write_list(writer, hello.nics, [&](const Hello::Nic& nic) {
    write_text(writer, nic.device);
    writer.number(nic.port);
    writer.flag(nic.ethernet);
    writer.flag(nic.grh_required);
    writer.number(nic.lid);
    writer.number(nic.mtu_bytes);
    writer.number(nic.max_message_bytes);
    writer.number(nic.outstanding_reads);
    writer.flag(nic.orders_writes);
    write_list(writer, nic.addresses, [&](const Hello::Address& address) {
      writer.number(address.kind);
      writer.array(address.raw);
    });
  });
  write(writer, hello.atomics);
  return writer.take();
}

std::optional<Hello> decode_hello(const std::string& bytes) {
  WireReader reader(bytes, version);
  Hello hello;
  hello.host = read_text(reader);
  hello.wanted_mtu_bytes = reader.number<std::uint16_t>();
  hello.qp_sets = reader.number<std::uint8_t>();
  reader.require(hello.qp_sets >= 1 && hello.qp_sets <= wire_limits::qp_sets);
  const std::size_t nics = reader.count<std::uint8_t>(wire_limits::ports);
  reader.require(nics >= 1);
  for (std::size_t i = 0; i < nics; ++i)
    hello.nics.push_back(read_nic(reader));
  hello.atomics = read_capabilities(reader);
  return reader.if_complete(std::move(hello));
}

std::string encode(const QueuePairNames& names) {
  WireWriter writer(version);
  write_list(writer, names.paths, [&](const std::vector<QueuePairNames::Name>& qp_sets) {
    write_list(writer, qp_sets, [&](const QueuePairNames::Name& name) {
      writer.number(name.number);
      writer.number(name.first_packet);
    });
  });
  return writer.take();
}

std::optional<QueuePairNames> decode_queue_pair_names(const std::string& bytes) {
  WireReader reader(bytes, version);
  QueuePairNames names;
  const std::size_t paths = reader.count<std::uint8_t>(wire_limits::ports);
  for (std::size_t path = 0; path < paths; ++path) {
    std::vector<QueuePairNames::Name> list(reader.count<std::uint8_t>(wire_limits::qp_sets));
    for (QueuePairNames::Name& name : list) {
      name.number = reader.number<std::uint32_t>();
      name.first_packet = reader.number<std::uint32_t>();
      reader.require(name.number >> 24 == 0 && name.first_packet >> 24 == 0);
    }
    names.paths.push_back(std::move(list));
  }
  return reader.if_complete(std::move(names));
}

std::string encode(const Attempt& attempt) {
  WireWriter writer(version);
  writer.flag(attempt.failed_somewhere);
  write_list(writer, attempt.paths, [&](bool ready) { writer.flag(ready); });
  return writer.take();
}

std::optional<Attempt> decode_attempt(const std::string& bytes) {
  WireReader reader(bytes, version);
  Attempt attempt;
  attempt.failed_somewhere = reader.flag();
  const std::size_t paths = reader.count<std::uint8_t>(wire_limits::ports);
  for (std::size_t i = 0; i < paths; ++i)
    attempt.paths.push_back(reader.flag());
  return reader.if_complete(std::move(attempt));
}

} // namespace shmemctl::ibrc
