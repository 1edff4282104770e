// Replaces the names and addresses in a text that identify the machine and the job's owner.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "src/base/secret.h"

namespace shmemctl::gather {

/// The same name or address gets the same replacement wherever and however it is written: a MAC
/// address in an interface name, in a GUID and in a GID; an IPv4 address in dotted form, in
/// /proc/PID/net/tcp and in a GID of RoCE v2. Addresses with the same leading digits (public IPv4
/// addresses: at least 16 bits) get replacements with the same leading digits, so that networks are
/// preserved. So is an address's type: loopback, link-local, private, multicast and unspecified.
///
/// Nobody keeps the key, and without it the replacements cannot be reversed.
class Anonymizer {
public:
  /// @param key determines the replacements; the same key gives the same ones
  explicit Anonymizer(const Secret& key) : key_(key) {}

  /// Replaces a host's name by "host1", "host2", ... in the order of these calls; for "a.b.c" also
  /// "a". Names of one character and names that every machine has (localhost, ip6-...) are not
  /// replaced.
  void add_host(const std::string& name);
  /// Replaces a user's name by "user1", ... System users (root, nobody) and names that occur in the
  /// paths of every machine (cuda, lib) are kept.
  void add_user(const std::string& name);

  /// Replaces names and addresses of all types in any text. Versions may look like IPv4 addresses,
  /// so a dotted quad after "version" or one "/", or joined to text by ".", "-" or "+", is kept.
  std::string text(std::string_view text);
  /// As text(), for a file name or path, but keeps IPv4 addresses: versions look like them.
  std::string path(std::string_view path);

  std::uint32_t ipv4(std::uint32_t address);
  /// A MAC address of 48 bits.
  std::uint64_t mac(std::uint64_t address);
  /// A GUID, or the second half of a GID or IPv6 address. If it is derived from a MAC address, its
  /// replacement is derived from that address's replacement.
  std::uint64_t guid(std::uint64_t guid);
  /// A GID or an IPv6 address.
  std::array<std::uint8_t, 16> gid(const std::array<std::uint8_t, 16>& gid);
  /// Replaces hexadecimal digits: a UUID, or a part of one that starts with its first digit.
  std::string digits(std::string_view hex, const char* domain);

private:
  class Scanner;

  /// Replaces the `bits` low bits of `value`, of which the first `kept` are preserved. The
  /// replacement of each nibble depends on the nibbles before it.
  std::uint64_t scramble(std::uint64_t value, int bits, int kept, const char* domain);
  unsigned nibble(const std::string& prefix);
  std::string scan(std::string_view text, bool is_path);

  Secret key_;
  std::map<std::string, std::string> names_; ///< by name: the replacement
  std::set<std::size_t> name_sizes_;
  int hosts_ = 0, users_ = 0;
  std::map<std::string, unsigned> nibbles_;
  std::map<std::uint32_t, std::uint32_t> networks_; ///< number of each /16 of public addresses
};

} // namespace shmemctl::gather
