#include "transports/verbs/gid.h"

#include <algorithm>
#include <arpa/inet.h>

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl::verbs {

namespace {

constexpr RawGid ipv4_prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::size_t ipv4_prefix_bytes = 12;

bool is_ipv4(const RawGid& raw) {
  return std::equal(raw.begin(), raw.begin() + ipv4_prefix_bytes, ipv4_prefix.begin());
}
bool is_link_local(const RawGid& raw) {
  return raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80;
}
bool is_zero(const RawGid& raw) {
  return std::all_of(raw.begin(), raw.end(), [](std::uint8_t byte) { return byte == 0; });
}

/// ibv_ah_attr has one byte for the index.
constexpr int last_usable_index = 255;

bool wanted(const GidEntry& entry, const GidRequest& request) {
  if (is_zero(entry.raw) || entry.index > last_usable_index)
    return false;
  if (request.index >= 0)
    return entry.index == request.index;
  if (entry.type == GidType::infiniband)
    return true; // the version and address constraints apply to RoCE only
  if (request.roce_version && (entry.type == GidType::roce_v2) != (*request.roce_version == 2))
    return false;
  if (request.ipv6 && is_ipv4(entry.raw) == *request.ipv6)
    return false;
  return !request.range || request.range->contains(entry.raw);
}

Error bad_range(const std::string& text, const std::string& problem) {
  return {ExitCode::usage, "SHMEMCTL_IB_ADDR_RANGE \"" + text + "\"", "", problem,
          "write a network as address/bits, for example 10.1.0.0/16 or fd00::/8"};
}

} // namespace

GidKind kind_of(const GidEntry& entry) {
  if (entry.type == GidType::infiniband)
    return GidKind::infiniband;
  const bool v2 = entry.type == GidType::roce_v2;
  if (is_ipv4(entry.raw))
    return v2 ? GidKind::v2_ipv4 : GidKind::v1_ipv4;
  if (is_link_local(entry.raw))
    return v2 ? GidKind::v2_link_local : GidKind::v1_link_local;
  return v2 ? GidKind::v2_ipv6 : GidKind::v1_ipv6;
}

const char* to_string(GidKind kind) {
  switch (kind) {
  case GidKind::v2_ipv4:
    return "RoCE v2 IPv4";
  case GidKind::v2_ipv6:
    return "RoCE v2 IPv6";
  case GidKind::v1_ipv4:
    return "RoCE v1 IPv4";
  case GidKind::v1_ipv6:
    return "RoCE v1 IPv6";
  case GidKind::v2_link_local:
    return "RoCE v2 link-local";
  case GidKind::v1_link_local:
    return "RoCE v1 link-local";
  case GidKind::infiniband:
    return "InfiniBand";
  }
  return "unknown";
}

std::string gid_text(const RawGid& raw) {
  char text[INET6_ADDRSTRLEN];
  if (is_ipv4(raw))
    ::inet_ntop(AF_INET, raw.data() + ipv4_prefix_bytes, text, sizeof text);
  else
    ::inet_ntop(AF_INET6, raw.data(), text, sizeof text);
  return text;
}

bool AddressRange::contains(const RawGid& raw) const {
  const auto whole = static_cast<std::size_t>(bits / 8);
  if (!std::equal(raw.begin(), raw.begin() + static_cast<std::ptrdiff_t>(whole), network.begin()))
    return false;
  const int rest = bits % 8;
  return rest == 0 || (raw[whole] ^ network[whole]) >> (8 - rest) == 0;
}

std::optional<AddressRange> parse_address_range(const std::string& text) {
  if (text.empty())
    return std::nullopt;
  const std::vector<std::string> parts = split(text, '/');
  const auto bits = parts.size() == 2 ? parse_integer(parts[1]) : std::nullopt;
  if (!bits)
    throw bad_range(text, "not address/bits");
  AddressRange range;
  long long most = 128;
  if (::inet_pton(AF_INET, parts[0].c_str(), range.network.data() + ipv4_prefix_bytes) == 1) {
    std::copy_n(ipv4_prefix.begin(), ipv4_prefix_bytes, range.network.begin());
    most = 32;
  } else if (::inet_pton(AF_INET6, parts[0].c_str(), range.network.data()) != 1) {
    throw bad_range(text, "\"" + parts[0] + "\" is not an address");
  }
  if (*bits < 0 || *bits > most)
    throw bad_range(text, "the prefix must have 0 to " + std::to_string(most) + " bits");
  if (*bits == 0)
    return std::nullopt;
  range.bits = static_cast<int>(128 - most + *bits);
  return range;
}

GidRequest read_gid_request(const Options& options) {
  GidRequest request;
  request.index = static_cast<int>(options.integer("IB_GID_INDEX"));
  // The defaults of these options do not restrict the choice of GIDs; values that are set do.
  if (options.value("IB_ROCE_VERSION_NUM").set())
    request.roce_version = static_cast<int>(options.integer("IB_ROCE_VERSION_NUM"));
  if (options.value("IB_ADDR_FAMILY").set())
    request.ipv6 = options.text("IB_ADDR_FAMILY") == "AF_INET6";
  request.range = parse_address_range(options.text("IB_ADDR_RANGE"));
  return request;
}

std::vector<GidEntry> gid_candidates(const std::vector<GidEntry>& table,
                                     const GidRequest& request) {
  std::vector<GidEntry> fit;
  for (const GidEntry& entry : table)
    if (wanted(entry, request))
      fit.push_back(entry);
  std::sort(fit.begin(), fit.end(), [](const GidEntry& left, const GidEntry& right) {
    const GidKind left_kind = kind_of(left), right_kind = kind_of(right);
    return left_kind != right_kind ? left_kind < right_kind : left.index < right.index;
  });
  const auto same_kind = [](const GidEntry& left, const GidEntry& right) {
    return kind_of(left) == kind_of(right);
  };
  fit.erase(std::unique(fit.begin(), fit.end(), same_kind), fit.end());
  return fit;
}

std::string no_gid_reason(const std::vector<GidEntry>& table, const GidRequest& request) {
  std::vector<std::string> has;
  for (const GidEntry& entry : table)
    if (!is_zero(entry.raw))
      has.push_back(std::to_string(entry.index) + " is " + to_string(kind_of(entry)) + " " +
                    gid_text(entry.raw));
  std::string reason = "its GID table has " + (has.empty() ? "no entry" : join(has, ", "));
  std::vector<std::string> asked;
  if (request.index >= 0) {
    asked.push_back("index " + std::to_string(request.index));
  } else {
    if (request.roce_version)
      asked.push_back("RoCE v" + std::to_string(*request.roce_version));
    if (request.ipv6)
      asked.push_back(*request.ipv6 ? "IPv6" : "IPv4");
    if (request.range)
      asked.push_back("the network of " + gid_text(request.range->network));
  }
  if (!asked.empty())
    reason += "; the options ask for " + join(asked, ", ");
  return reason;
}

void serialize(Archive& archive, Address& address) {
  archive.choice(address.kind, GidKind{gid_kinds - 1});
  archive(address.raw);
}

std::vector<Address> addresses_of(const std::vector<GidEntry>& candidates) {
  std::vector<Address> addresses;
  for (const GidEntry& entry : candidates)
    addresses.push_back({kind_of(entry), entry.raw});
  return addresses;
}

std::string addresses_text(const std::vector<Address>& addresses) {
  std::vector<std::string> texts;
  for (const Address& address : addresses)
    texts.push_back(std::string(to_string(address.kind)) + " " + gid_text(address.raw));
  return texts.empty() ? "no address" : join(texts, ", ");
}

std::vector<GidPair> common_gids(const std::vector<GidKind>& local,
                                 const std::vector<GidKind>& remote) {
  std::vector<GidPair> pairs;
  for (std::size_t left = 0; left < local.size(); ++left)
    for (std::size_t right = 0; right < remote.size(); ++right)
      if (local[left] == remote[right])
        pairs.push_back({left, right});
  std::sort(pairs.begin(), pairs.end(), [&](const GidPair& left, const GidPair& right) {
    return local[left.local] < local[right.local];
  });
  return pairs;
}

std::vector<GidPair> common_gids(const std::vector<Address>& local,
                                 const std::vector<Address>& remote) {
  const auto kinds = [](const std::vector<Address>& addresses) {
    std::vector<GidKind> list;
    for (const Address& address : addresses)
      list.push_back(address.kind);
    return list;
  };
  return common_gids(kinds(local), kinds(remote));
}

} // namespace shmemctl::verbs
