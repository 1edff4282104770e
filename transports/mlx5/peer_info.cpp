#include "transports/mlx5/hca.h"

namespace shmemctl::mlx5 {

std::uint8_t offers_of(const HcaInfo& info) {
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
  archive(info.qpn, info.first_psn, info.lid, info.mtu, info.ethernet, info.offers, info.device_id,
          info.gid);
  archive.require(info.qpn < 1u << 24 && info.first_psn < 1u << 24 && info.ethernet <= 1 &&
                  info.offers <= PeerInfo::all_offers && info.mtu >= 1 && info.mtu <= 5);
}

} // namespace shmemctl::mlx5
