#include <cstring>

#include "src/abi/mlx5_format.h"
#include "src/base/error.h"
#include "transports/mlx5/hca.h"

namespace shmemctl::mlx5 {

namespace {

constexpr std::uint8_t version = 2;

template <class Number>
void put(std::string& bytes, std::size_t at, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i)
    bytes[at + i] = static_cast<char>(number >> (8 * (sizeof number - 1 - i)) & 0xff);
}

template <class Number>
Number get(const std::string& bytes, std::size_t at) {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i)
    number = static_cast<Number>(static_cast<std::uint64_t>(number) << 8 |
                                 static_cast<std::uint8_t>(bytes[at + i]));
  return number;
}

} // namespace

std::uint8_t offers_of(const HcaInfo& info) {
  return static_cast<std::uint8_t>((info.orders_writes ? PeerInfo::orders_writes : 0) |
                                   ((info.atomic_bytes & 8) != 0 ? PeerInfo::atomics_8 : 0) |
                                   ((info.atomic_bytes & 4) != 0 ? PeerInfo::atomics_4 : 0));
}

QpCapabilities abilities_of(std::uint8_t mine, std::uint8_t theirs) {
  const auto both = static_cast<unsigned>(mine & theirs);
  QpCapabilities abilities;
  abilities.atomic_bytes =
      ((both & PeerInfo::atomics_8) != 0 ? 8 : 0) + ((both & PeerInfo::atomics_4) != 0 ? 4 : 0);
  if ((both & PeerInfo::orders_writes) != 0)
    abilities.signals = SignalMethod::write;
  else if ((abilities.atomic_bytes & 8) != 0)
    abilities.signals = SignalMethod::atomic;
  return abilities;
}

std::string PeerInfo::encode() const {
  std::string bytes(encoded_bytes, '\0');
  put(bytes, 0, version);
  put(bytes, 1, mtu);
  put(bytes, 2, lid);
  put(bytes, 4, qpn);
  put(bytes, 8, first_psn);
  put(bytes, 12, ethernet);
  put(bytes, 13, offers);
  put(bytes, 16, device_id);
  std::memcpy(bytes.data() + 24, gid.data(), gid.size());
  return bytes;
}

PeerInfo PeerInfo::decode(const std::string& bytes) {
  PeerInfo info;
  if (bytes.size() == encoded_bytes && get<std::uint8_t>(bytes, 0) == version) {
    info.mtu = get<std::uint8_t>(bytes, 1);
    info.lid = get<std::uint16_t>(bytes, 2);
    info.qpn = get<std::uint32_t>(bytes, 4);
    info.first_psn = get<std::uint32_t>(bytes, 8);
    info.ethernet = get<std::uint8_t>(bytes, 12);
    info.offers = get<std::uint8_t>(bytes, 13);
    info.device_id = get<std::uint64_t>(bytes, 16);
    std::memcpy(info.gid.data(), bytes.data() + 24, info.gid.size());
    if (info.encode() == bytes && info.qpn < 1u << 24 && info.first_psn < 1u << 24 &&
        info.ethernet <= 1 && info.offers <= all_offers && info.mtu >= 1 && info.mtu <= 5)
      return info;
  }
  throw Error(ExitCode::unavailable, "mlx5 QP", "read the data of its peer", "malformed message",
              "run the same version of shmemctl on all PEs");
}

} // namespace shmemctl::mlx5
