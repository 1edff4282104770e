#include "transports/mlx5/wire.h"

#include "src/base/wire_bytes.h"

namespace shmemctl::mlx5 {

namespace {

/// Of every text.
constexpr std::uint8_t version = 2;
constexpr std::size_t max_queues = wire_limits::ports * wire_limits::qp_sets;

} // namespace

std::string encode(const Summary& summary) {
  WireWriter writer(version);
  writer.number(summary.kind);
  writer.text(summary.reason, wire_limits::text_bytes);
  writer.flag(summary.ethernet);
  writer.text(summary.over, wire_limits::text_bytes);
  writer.number(summary.network_namespace);
  writer.text(summary.below, wire_limits::below_bytes);
  writer.flag(summary.has_atomics);
  return writer.take();
}

std::optional<Summary> decode_summary(const std::string& bytes) {
  WireReader reader(bytes, version);
  Summary summary;
  summary.kind = reader.choice(Summary::Kind::emulated);
  summary.reason = reader.text(wire_limits::text_bytes);
  summary.ethernet = reader.flag();
  summary.over = reader.text(wire_limits::text_bytes);
  summary.network_namespace = reader.number<std::uint64_t>();
  summary.below = reader.text(wire_limits::below_bytes);
  summary.has_atomics = reader.flag();
  return reader.if_complete(std::move(summary));
}

std::string encode(const Hello& hello) {
  WireWriter writer(version);
  writer.text(hello.host, wire_limits::text_bytes);
  writer.number(hello.qp_sets);
  writer.number(static_cast<std::uint8_t>(hello.ports.size()));
  for (const Hello::Port& port : hello.ports) {
    writer.text(port.device, wire_limits::text_bytes);
    writer.number(port.port);
  }
  return writer.take();
}

std::optional<Hello> decode_hello(const std::string& bytes) {
  WireReader reader(bytes, version);
  Hello hello;
  hello.host = reader.text(wire_limits::text_bytes);
  hello.qp_sets = reader.number<std::uint8_t>();
  reader.require(hello.qp_sets >= 1 && hello.qp_sets <= wire_limits::qp_sets);
  const std::size_t ports = reader.count<std::uint8_t>(wire_limits::ports);
  reader.require(ports >= 1);
  for (std::size_t i = 0; i < ports; ++i) {
    std::string device = reader.text(wire_limits::text_bytes);
    hello.ports.push_back({std::move(device), reader.number<std::uint8_t>()});
  }
  return reader.if_complete(std::move(hello));
}

std::string encode(const QueueNames& names) {
  WireWriter writer(version);
  writer.number(static_cast<std::uint16_t>(names.queues.size()));
  for (const std::string& queue : names.queues)
    writer.text(queue, wire_limits::text_bytes);
  return writer.take();
}

std::optional<QueueNames> decode_queue_names(const std::string& bytes) {
  WireReader reader(bytes, version);
  QueueNames names;
  const std::size_t queues = reader.count<std::uint16_t>(max_queues);
  for (std::size_t i = 0; i < queues; ++i)
    names.queues.push_back(reader.text(wire_limits::text_bytes));
  return reader.if_complete(std::move(names));
}

} // namespace shmemctl::mlx5
