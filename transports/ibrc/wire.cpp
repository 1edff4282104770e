#include "transports/ibrc/wire.h"

namespace shmemctl::ibrc {

static void serialize(Archive& archive, AtomicsCapabilities& capabilities) {
  archive.choice(capabilities.preference, AtomicsPreference::message);
  archive(capabilities.by_device, capabilities.receives);
}

static void serialize(Archive& archive, Summary::Port& port) {
  archive(port.ethernet, port.gid_kinds);
}

static void serialize(Archive& archive, Hello::Nic& nic) {
  archive.text(nic.device, rc::max_text_bytes);
  archive(nic.port, nic.ethernet, nic.grh_required, nic.lid, nic.mtu_bytes, nic.max_message_bytes,
          nic.outstanding_reads, nic.orders_writes, nic.addresses);
  archive.require(nic.mtu_bytes >= 256 && nic.mtu_bytes <= 4096 && nic.max_message_bytes > 0 &&
                  nic.addresses.size() <= std::size_t{verbs::gid_kinds});
}

void serialize(Archive& archive, Summary& summary) {
  archive.text(summary.reason, rc::max_text_bytes);
  archive(summary.ports, summary.atomics);
  archive.require(summary.ports.size() <= wire_limits::ports);
}

void serialize(Archive& archive, Hello& hello) {
  archive.text(hello.host, rc::max_text_bytes);
  archive(hello.wanted_mtu_bytes, hello.qp_sets, hello.nics, hello.atomics);
  archive.require(hello.qp_sets >= 1 && hello.qp_sets <= wire_limits::qp_sets &&
                  !hello.nics.empty() && hello.nics.size() <= wire_limits::ports);
}

void serialize(Archive& archive, QpName& name) {
  archive(name.number, name.first_packet);
  archive.require(name.number >> 24 == 0 && name.first_packet >> 24 == 0);
}

void serialize(Archive& archive, Attempt& attempt) {
  archive(attempt.failed_somewhere, attempt.paths);
  for (const std::uint8_t path : attempt.paths)
    archive.require(path <= 1);
}

} // namespace shmemctl::ibrc
