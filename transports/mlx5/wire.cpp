#include "transports/mlx5/wire.h"

#include "transports/mlx5/hca.h"
#include "transports/rc/segment_key.h"

namespace shmemctl::mlx5 {

static void serialize(Archive& archive, Hello::Port& port) {
  archive.text(port.device, rc::max_text_bytes);
  archive(port.port);
}

void serialize(Archive& archive, Summary& summary) {
  archive.choice(summary.kind, Summary::Kind::emulated);
  archive.text(summary.reason, rc::max_text_bytes);
  archive(summary.ethernet);
  archive.text(summary.over, rc::max_text_bytes);
  archive(summary.network_namespace);
  archive.text(summary.below, rc::max_below_bytes);
  archive(summary.has_atomics);
}

void serialize(Archive& archive, Hello& hello) {
  archive.text(hello.host, rc::max_text_bytes);
  archive(hello.qp_sets, hello.ports);
  archive.require(hello.qp_sets >= 1 && hello.qp_sets <= wire_limits::qp_sets &&
                  !hello.ports.empty() && hello.ports.size() <= wire_limits::ports);
}

std::uint8_t capabilities_of(const HcaInfo& info) {
  return static_cast<std::uint8_t>((info.orders_writes ? PeerInfo::orders_writes : 0) |
                                   ((info.atomic_bytes & 8) != 0 ? PeerInfo::atomics_8 : 0) |
                                   ((info.atomic_bytes & 4) != 0 ? PeerInfo::atomics_4 : 0));
}

QpCapabilities abilities_of(std::uint8_t local, std::uint8_t remote) {
  const auto both = static_cast<unsigned>(local & remote);
  QpCapabilities abilities;
  abilities.atomic_bytes =
      ((both & PeerInfo::atomics_8) != 0 ? 8 : 0) + ((both & PeerInfo::atomics_4) != 0 ? 4 : 0);
  if ((both & PeerInfo::orders_writes) != 0)
    abilities.signals = SignalMethod::write;
  else if ((abilities.atomic_bytes & 8) != 0)
    abilities.signals = SignalMethod::atomic;
  return abilities;
}

void serialize(Archive& archive, PeerInfo& info) {
  archive(info.qpn, info.first_psn, info.lid, info.mtu, info.ethernet, info.capabilities,
          info.device_id, info.gids);
  archive.require(info.qpn < 1u << 24 && info.first_psn < 1u << 24 && info.ethernet <= 1 &&
                  info.capabilities <= PeerInfo::all_capabilities && info.mtu >= 1 &&
                  info.mtu <= 5 && info.gids.size() <= std::size_t{verbs::gid_kinds});
}

} // namespace shmemctl::mlx5
