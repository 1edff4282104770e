// Which entry of a port's GID table a connection uses. Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/archive.h"
#include "src/base/options.h"

namespace shmemctl::verbs {

using RawGid = std::array<std::uint8_t, 16>;

enum class GidType : std::uint8_t { infiniband, roce_v1, roce_v2 };

struct GidEntry {
  int index = 0;
  GidType type = GidType::roce_v2;
  RawGid raw{};
};

/// The kind of a GID, best first. Both ends of a connection must use the same kind.
enum class GidKind : std::uint8_t {
  v2_ipv4,
  v2_ipv6,
  v1_ipv4,
  v1_ipv6,
  v2_link_local,
  v1_link_local,
  infiniband
};
inline constexpr int gid_kinds = 7;

GidKind kind_of(const GidEntry& entry);
/// "RoCE v2 IPv4"
const char* to_string(GidKind kind);
/// "10.0.0.1", "fe80::1"; an InfiniBand GID like an IPv6 address
std::string gid_text(const RawGid& raw);

/// A network that a GID must belong to.
struct AddressRange {
  RawGid network{};
  int bits = 0; ///< length of the prefix, 0 to 128; for IPv4 it includes the 96 of ::ffff:0:0/96
  bool contains(const RawGid& raw) const;
};
/// Parses "10.1.0.0/16" or "fd00::/8". Returns nothing for "" and for a prefix of 0 bits: both
/// allow any address. Throws Error (usage).
std::optional<AddressRange> parse_address_range(const std::string& text);

/// Constraints set by the options. An unset member means no constraint.
struct GidRequest {
  int index = -1; ///< -1: any index
  std::optional<int> roce_version;
  std::optional<bool> ipv6; ///< true: IPv6 only, false: IPv4 only
  std::optional<AddressRange> range;
};
/// Reads IB_GID_INDEX, IB_ROCE_VERSION_NUM, IB_ADDR_FAMILY and IB_ADDR_RANGE. Throws Error (usage).
GidRequest read_gid_request(const Options& options);

/// The usable entries, at most one of each kind (that with the lowest index), best first.
/// Link-local addresses come after other RoCE addresses, since they do not reach beyond their link.
/// If the request names an index, the result is that entry only, of any kind.
std::vector<GidEntry> gid_candidates(const std::vector<GidEntry>& table, const GidRequest& request);
/// Why there are no candidates, in one clause that names the table's contents and the constraints.
std::string no_gid_reason(const std::vector<GidEntry>& table, const GidRequest& request);

/// A usable GID, as a port's PE sends it to its peers.
struct Address {
  GidKind kind = GidKind::v2_ipv4;
  RawGid raw{};
  bool operator==(const Address&) const = default;
};
void serialize(Archive& archive, Address& address);
std::vector<Address> addresses_of(const std::vector<GidEntry>& candidates);
/// "RoCE v2 IPv4 10.0.0.1, RoCE v1 IPv4 10.0.0.1", or "no address"
std::string addresses_text(const std::vector<Address>& addresses);

/// Indices into the lists of both ends: entries that they can use with each other.
struct GidPair {
  std::size_t local = 0, remote = 0;
};
/// The pairs of entries of the same kind, best first. Both ends compute the same kinds in the same
/// order.
std::vector<GidPair> common_gids(const std::vector<GidKind>& local,
                                 const std::vector<GidKind>& remote);
std::vector<GidPair> common_gids(const std::vector<Address>& local,
                                 const std::vector<Address>& remote);

} // namespace shmemctl::verbs
