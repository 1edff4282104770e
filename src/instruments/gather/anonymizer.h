// Replaces what tells which machine and whose job a text is about: names and addresses.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "src/base/secret.h"

namespace shmemctl::gather {

/// The same name or address becomes the same replacement wherever and however it is written: a MAC
/// address in an interface's name, in a GUID and in a GID; an IPv4 address in digits, in
/// /proc/PID/net/tcp and in a GID of RoCE v2. Addresses that share their first digits share those
/// of their replacements, so that networks stay networks. What an address is stays: loopback,
/// link-local, private, multicast and unspecified addresses remain that.
///
/// Without the key, which nobody keeps, replacements do not lead back.
class Anonymizer {
public:
  /// @param key makes replacements; the same key makes the same ones
  explicit Anonymizer(const Secret& key) : key_(key) {}

  /// Replaces a host's name by "host1", "host2", ... by order of these calls; of "a.b.c" also "a".
  /// Names of fewer than two letters, and "localhost", are not replaced.
  void add_host(const std::string& name);
  /// Replaces a user's name by "user1", ... Names of the system's own users (root, nobody) and
  /// those that are in paths on every machine (cuda, lib) are kept.
  void add_user(const std::string& name);

  /// All of it, in any text. `IPv4` addresses look like versions of four numbers: they are
  /// replaced where no word, version or path leads to them.
  std::string text(std::string_view text);
  /// Names, MAC addresses and UUIDs, in the name of a file or a path.
  std::string path(std::string_view path);

  std::uint32_t ipv4(std::uint32_t address);
  /// 48 bits.
  std::uint64_t mac(std::uint64_t address);
  /// A GUID, or the second half of a GID or an IPv6 address. One that is made of a MAC address is
  /// made of that one's replacement.
  std::uint64_t guid(std::uint64_t guid);
  /// A GID or an IPv6 address.
  std::array<std::uint8_t, 16> gid(const std::array<std::uint8_t, 16>& gid);
  /// Hexadecimal digits, of a UUID or a part of one from its first digit on.
  std::string digits(std::string_view hex, const char* domain);

private:
  class Scanner;

  /// `bits` bits of `value`, of which the first `kept` stay; each nibble depends on those before.
  std::uint64_t scramble(std::uint64_t value, int bits, int kept, const char* domain);
  unsigned nibble(const std::string& prefix);
  std::string scan(std::string_view text, bool is_path);

  Secret key_;
  std::map<std::string, std::string> names_; ///< by the name
  std::set<std::size_t> name_sizes_;
  int hosts_ = 0, users_ = 0;
  std::map<std::string, unsigned> nibbles_;
  std::map<std::uint32_t, std::uint32_t> networks_; ///< first halves of public IPv4 addresses
};

} // namespace shmemctl::gather
