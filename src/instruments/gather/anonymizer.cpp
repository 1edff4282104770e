#include "src/instruments/gather/anonymizer.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cctype>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <sys/socket.h>

#include "src/base/hash.h"
#include "src/base/text.h"

namespace shmemctl::gather {

namespace {

using Bytes16 = std::array<std::uint8_t, 16>;

bool is_digit(char byte) {
  return byte >= '0' && byte <= '9';
}
bool is_hex(char byte) {
  return is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}
bool is_word(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_';
}

std::uint64_t value_of(std::string_view hex) {
  std::uint64_t value = 0;
  for (const char byte : hex)
    value =
        value << 4 | static_cast<unsigned>(is_digit(byte) ? byte - '0' : (byte | 0x20) - 'a' + 10);
  return value;
}

/// The value with the same number of digits as `before`, in upper case if `before` is.
std::string hex_like(std::uint64_t value, std::string_view before) {
  const bool capitals = std::any_of(before.begin(), before.end(),
                                    [](char byte) { return byte >= 'A' && byte <= 'F'; });
  return capitals ? fmt::format("{:0{}X}", value, before.size())
                  : fmt::format("{:0{}x}", value, before.size());
}

std::uint64_t half_of(const Bytes16& bytes, std::size_t first) {
  std::uint64_t value = 0;
  for (std::size_t i = first; i < first + 8; ++i)
    value = value << 8 | bytes[i];
  return value;
}

void set_half(Bytes16& bytes, std::size_t first, std::uint64_t value) {
  for (std::size_t i = first + 8; i-- > first; value >>= 8)
    bytes[i] = static_cast<std::uint8_t>(value & 0xff);
}

/// Whether the name is a standard account of distributions or a common part of paths, which a
/// user's name may equal.
bool is_common_word(std::string_view name) {
  static const std::set<std::string_view> words = {
      "root",  "daemon", "bin",   "sys",    "nobody", "mail",   "man",     "www-data", "backup",
      "lib",   "usr",    "local", "opt",    "home",   "proc",   "dev",     "etc",      "var",
      "run",   "tmp",    "cuda",  "nvidia", "rdma",   "net",    "class",   "python",   "python3",
      "class", "slurm",  "munge", "mpi",    "ucx",    "nccl",   "nvshmem", "torch",    "data",
      "test",  "user",   "users", "admin",  "share",  "kernel", "module",  "device",   "devices"};
  return words.count(name) != 0;
}

} // namespace

void Anonymizer::add_host(const std::string& name) {
  if (name.size() < 2 || starts_with(name, "localhost") || starts_with(name, "ip6-") ||
      name == "host" || names_.count(name) != 0)
    return;
  const std::string replacement = "host" + std::to_string(++hosts_);
  names_[name] = replacement;
  name_sizes_.insert(name.size());
  const std::string first = name.substr(0, name.find('.'));
  if (first.size() >= 2 && names_.emplace(first, replacement).second)
    name_sizes_.insert(first.size());
}

void Anonymizer::add_user(const std::string& name) {
  if (name.size() < 2 || is_common_word(name) || names_.count(name) != 0)
    return;
  names_[name] = "user" + std::to_string(++users_);
  name_sizes_.insert(name.size());
}

unsigned Anonymizer::nibble(const std::string& prefix) {
  const auto known = nibbles_.find(prefix);
  if (known != nibbles_.end())
    return known->second;
  const std::string_view key(reinterpret_cast<const char*>(key_.data()), key_.size());
  const unsigned value = hmac_sha256(key, prefix)[0] & 0xfU;
  // Nibbles beyond this number are computed each time.
  constexpr std::size_t max_nibbles = 1U << 20;
  if (nibbles_.size() < max_nibbles)
    nibbles_.emplace(prefix, value);
  return value;
}

std::uint64_t Anonymizer::scramble(std::uint64_t value, int bits, int kept, const char* domain) {
  std::uint64_t result = 0;
  std::string prefix = domain;
  prefix += ':';
  for (int done = 0; done < bits; done += 4) {
    const auto original = static_cast<unsigned>(value >> (bits - done - 4) & 0xf);
    // Number of leading bits of this nibble that are preserved.
    const int staying = std::clamp(kept - done, 0, 4);
    const unsigned mask = 0xfU >> staying;
    result = result << 4 | (original ^ (mask == 0 ? 0 : nibble(prefix) & mask));
    prefix += static_cast<char>('a' + original);
  }
  return result;
}

std::string Anonymizer::digits(std::string_view hex, const char* domain) {
  std::string result, prefix = domain;
  prefix += ':';
  for (const char byte : hex) {
    const auto original = static_cast<unsigned>(value_of(std::string_view(&byte, 1)));
    result += hex_like(original ^ nibble(prefix), std::string_view(&byte, 1));
    prefix += static_cast<char>('a' + original);
  }
  return result;
}

std::uint32_t Anonymizer::ipv4(std::uint32_t address) {
  struct Range {
    std::uint32_t network;
    int bits;
    bool stays;
  };
  static constexpr Range ranges[] = {
      {0x00000000, 8, true},   // this network: 0.0.0.0
      {0x7f000000, 8, true},   // loopback
      {0xe0000000, 4, true},   // multicast
      {0xffffffff, 32, true},  // broadcast
      {0x0a000000, 8, false},  // private
      {0xac100000, 12, false}, // private
      {0xc0a80000, 16, false}, // private
      {0xa9fe0000, 16, false}, // link-local
      {0x64400000, 10, false}, // shared address space of providers (RFC 6598)
  };
  for (const Range& range : ranges)
    if ((address ^ range.network) >> (32 - range.bits) == 0)
      return range.stays ? address
                         : static_cast<std::uint32_t>(scramble(address, 32, range.bits, "ipv4"));
  // Public addresses are mapped to networks in 240.0.0.0/4, which is unused.
  const auto number = static_cast<std::uint32_t>(networks_.size());
  const std::uint32_t network = networks_.emplace(address >> 16, number).first->second;
  const auto low = static_cast<std::uint32_t>(scramble(address, 32, 16, "ipv4") & 0xffff);
  return 0xf0000000U | (network % 0x0f00U) << 16 | low;
}

std::uint64_t Anonymizer::mac(std::uint64_t address) {
  constexpr std::uint64_t all = 0xffffffffffffU, group = 0x010000000000U, local = 0x020000000000U;
  if (address == 0 || address == all || (address & group) != 0)
    return address;
  // The local bit may be inverted in a GUID that is derived from a MAC address.
  const std::uint64_t universal = address & ~local;
  const std::uint64_t changed = scramble(universal, 48, 0, "mac") & ~(local | group);
  return changed | (address & local);
}

std::uint64_t Anonymizer::guid(std::uint64_t guid) {
  if (guid < 0x10000) // none, loopback, and small numbers assigned by hand
    return guid;
  if ((guid >> 24 & 0xffff) == 0xfffe) { // EUI-64 of a MAC address
    const std::uint64_t address = mac((guid >> 40) << 24 | (guid & 0xffffff));
    return (address >> 24) << 40 | 0xfffe000000U | (address & 0xffffff);
  }
  const std::uint64_t changed = scramble(guid, 64, 0, "guid");
  // The replacement must not look derived from a MAC address by chance.
  return (changed >> 24 & 0xffff) == 0xfffe ? changed ^ 0x1000000U : changed;
}

std::array<std::uint8_t, 16> Anonymizer::gid(const Bytes16& gid) {
  Bytes16 result = gid;
  const std::uint64_t high = half_of(gid, 0), low = half_of(gid, 8);
  if (high == 0) {
    if (low >> 32 == 0xffff) // an IPv4 address in IPv6
      set_half(result, 8, 0xffff00000000U | ipv4(static_cast<std::uint32_t>(low)));
    else
      set_half(result, 8, guid(low));
    return result;
  }
  if (high >> 56 == 0xff) // multicast
    return result;
  // Of fe80::/10 and fec0::/10 the upper 64 bits are kept if all but the prefix are 0, otherwise
  // only the prefix, as for fc00::/7.
  const bool plain = (high & 0x003fffffffffffffU) == 0;
  const int kept = high >> 54 == 0x3fa || high >> 54 == 0x3fb ? (plain ? 64 : 10)
                   : high >> 57 == 0x7e                       ? 8
                                                              : 4;
  set_half(result, 0, scramble(high, 64, kept, "ipv6"));
  set_half(result, 8, guid(low));
  return result;
}

/// Scans a text once; wherever a word begins it tries all forms of names and addresses.
class Anonymizer::Scanner {
public:
  Scanner(Anonymizer& owner, std::string_view text, bool is_path)
      : owner_(owner), text_(text), is_path_(is_path) {}

  std::string scan() {
    while (at_ < text_.size()) {
      const char byte = text_[at_];
      if (!is_word(byte) && byte != ':') {
        result_ += byte;
        ++at_;
        continue;
      }
      if (!begins_word() || !replace())
        copy_word();
    }
    return std::move(result_);
  }

private:
  char before() const { return at_ == 0 ? '\0' : text_[at_ - 1]; }
  char at(std::size_t place) const { return place < text_.size() ? text_[place] : '\0'; }
  bool begins_word() const { return !is_word(before()) && before() != ':'; }

  void copy_word() {
    const bool word = is_word(text_[at_]);
    do
      result_ += text_[at_++];
    while (at_ < text_.size() && word && is_word(text_[at_]));
  }

  bool put(std::size_t length, const std::string& replacement) {
    result_ += replacement;
    at_ += length;
    return true;
  }

  bool replace() {
    return replace_uuid() || replace_colons() || replace_ipv4() || replace_long_hex() ||
           replace_interface() || replace_name();
  }

  std::size_t hex_run(std::size_t from) const {
    std::size_t end = from;
    while (end < text_.size() && is_hex(text_[end]))
      ++end;
    return end - from;
  }

  /// Replaces a UUID, or its first 4 or more digits behind "GPU-" or "MIG-": "GPU-5a1c...".
  bool replace_uuid() {
    static constexpr std::size_t groups[] = {8, 4, 4, 4, 12};
    std::size_t place = at_;
    const bool named = text_.substr(at_, 4) == "GPU-" || text_.substr(at_, 4) == "MIG-";
    if (named)
      place += 4;
    std::string hex;
    std::size_t end = place;
    for (std::size_t i = 0; i < std::size(groups); ++i) {
      const std::size_t run = std::min(hex_run(end), groups[i]);
      hex += text_.substr(end, run);
      end += run;
      if (run < groups[i] || i + 1 == std::size(groups) || at(end) != '-')
        break;
      ++end;
    }
    const bool whole = hex.size() == 32;
    if (is_word(at(end)) || (!whole && (!named || hex.size() < 4)))
      return false;
    const std::string changed = owner_.digits(hex, "uuid");
    std::string shown(text_.substr(at_, end - at_));
    std::size_t next = 0;
    for (std::size_t i = place - at_; i < shown.size(); ++i)
      if (shown[i] != '-')
        shown[i] = changed[next++];
    return put(end - at_, shown);
  }

  /// Replaces groups of hexadecimal digits between colons: MAC addresses (6 groups of 2 digits),
  /// hardware addresses of IPoIB (20 of 2), GUIDs (4 of 4, or 8 of 2) and IPv6 addresses.
  bool replace_colons() {
    std::size_t end = at_;
    while (end < text_.size() && (is_hex(text_[end]) || text_[end] == ':'))
      ++end;
    // "fe80::1%eth0", "::ffff:10.0.0.1"
    std::size_t dotted = end;
    while (dotted < text_.size() && (is_digit(text_[dotted]) || text_[dotted] == '.'))
      ++dotted;
    std::string_view run = text_.substr(at_, end - at_);
    if (run.find(':') == std::string_view::npos)
      return false;
    if (run.find("::") != std::string_view::npos && dotted > end)
      if (const auto changed = ipv6(text_.substr(at_, dotted - at_)))
        return put(dotted - at_, *changed);
    if (is_word(at(end)) || at(end) == '.') // "0000:18:00.0" is a PCI address
      return false;
    while (ends_with(run, ":") && !ends_with(run, "::"))
      run.remove_suffix(1); // "MAC:"
    const std::vector<std::string> groups = split(run, ':');
    const auto all_of_size = [&groups](std::size_t size) {
      return std::all_of(groups.begin(), groups.end(),
                         [size](const std::string& group) { return group.size() == size; });
    };
    const std::string digits = join(groups, "");
    if (all_of_size(2) && groups.size() == 6)
      return put(run.size(), with_colons(hex_like(owner_.mac(value_of(digits)), digits), 2));
    if ((all_of_size(2) && groups.size() == 8) || (all_of_size(4) && groups.size() == 4))
      return put(run.size(), with_colons(hex_like(owner_.guid(value_of(digits)), digits),
                                         digits.size() / groups.size()));
    if (all_of_size(2) && groups.size() == 20) // flags and QPN, then the GID
      return put(run.size(), with_colons(digits.substr(0, 8) + gid_digits(digits.substr(8)), 2));
    if (all_of_size(4) && groups.size() == 8)
      return put(run.size(), with_colons(gid_digits(digits), 4));
    if (const auto changed = ipv6(run))
      return put(run.size(), *changed);
    return false;
  }

  std::string gid_digits(std::string_view hex) const {
    Bytes16 bytes{};
    set_half(bytes, 0, value_of(hex.substr(0, 16)));
    set_half(bytes, 8, value_of(hex.substr(16)));
    const Bytes16 changed = owner_.gid(bytes);
    return hex_like(half_of(changed, 0), hex.substr(0, 16)) +
           hex_like(half_of(changed, 8), hex.substr(16));
  }

  static std::string with_colons(const std::string& digits, std::size_t group) {
    std::string text;
    for (std::size_t i = 0; i < digits.size(); ++i) {
      if (i > 0 && i % group == 0)
        text += ':';
      text += digits[i];
    }
    return text;
  }

  std::optional<std::string> ipv6(std::string_view text) const {
    Bytes16 bytes{};
    if (std::count(text.begin(), text.end(), ':') < 2 ||
        ::inet_pton(AF_INET6, std::string(text).c_str(), bytes.data()) != 1)
      return std::nullopt;
    const Bytes16 changed = owner_.gid(bytes);
    char shown[INET6_ADDRSTRLEN] = "";
    ::inet_ntop(AF_INET6, changed.data(), shown, sizeof shown);
    return shown;
  }

  /// Replaces an IPv4 address, but not a version of four numbers: "libcublas.so.12.4.5.8",
  /// "MLNX_OFED-5.8-3.0.7.0".
  bool replace_ipv4() {
    if (is_path_ || !is_digit(text_[at_]) || before() == '.' || before() == '-' ||
        before() == '+' || (before() == '/' && (at_ < 2 || text_[at_ - 2] != '/')))
      return false;
    std::size_t end = at_;
    std::uint32_t address = 0;
    for (int part = 0; part < 4; ++part) {
      if (part > 0 && at(end++) != '.')
        return false;
      std::uint32_t value = 0;
      std::size_t length = 0;
      for (; is_digit(at(end)) && length < 4; ++end, ++length)
        value = value * 10 + static_cast<std::uint32_t>(at(end) - '0');
      if (length == 0 || length > 3 || value > 255)
        return false;
      address = address << 8 | value;
    }
    if (is_word(at(end)) || at(end) == '-' || at(end) == '+' ||
        (at(end) == '.' && is_digit(at(end + 1))) || version_leads())
      return false;
    const std::uint32_t changed = owner_.ipv4(address);
    return put(end - at_, fmt::format("{}.{}.{}.{}", changed >> 24, changed >> 16 & 0xff,
                                      changed >> 8 & 0xff, changed & 0xff));
  }

  /// Whether the word "version" precedes the numbers: "version 9.1.0.70", "Version: 9.1.0.70".
  bool version_leads() const {
    std::size_t end = at_;
    while (end > 0 && (text_[end - 1] == ' ' || text_[end - 1] == ':' || text_[end - 1] == '='))
      --end;
    const std::string_view word = "version";
    return end >= word.size() && lower(text_.substr(end - word.size(), word.size())) == word;
  }

  /// "0x0c42a10300657a36": a GUID; 32 digits: a GID or a UUID without dashes.
  bool replace_long_hex() {
    const bool marked = text_.substr(at_, 2) == "0x" || text_.substr(at_, 2) == "0X";
    const std::size_t from = at_ + (marked ? 2 : 0), run = hex_run(from);
    if (is_word(at(from + run)))
      return false;
    const std::string_view hex = text_.substr(from, run);
    const std::string start(text_.substr(at_, from - at_));
    if (run == 16 && marked)
      return put(start.size() + run, start + hex_like(owner_.guid(value_of(hex)), hex));
    if (run == 32 && (starts_with(hex, "fe80") || starts_with(hex, "fec0") ||
                      starts_with(hex, "00000000000000000000ffff")))
      return put(start.size() + run, start + gid_digits(hex));
    if (run == 32)
      return put(start.size() + run, start + owner_.digits(hex, "uuid"));
    return false;
  }

  /// Replaces names of interfaces and RDMA devices that contain their address: "enx0c42a1657a36".
  bool replace_interface() {
    for (const std::string_view prefix : {"enx", "wlx", "ibx", "rocex", "iwx", "opax"}) {
      if (text_.substr(at_, prefix.size()) != prefix)
        continue;
      const std::size_t from = at_ + prefix.size(), run = hex_run(from);
      // The name may continue: "rocex0c42a1657a36p1s0".
      const std::string_view hex = text_.substr(from, run);
      if (run == 12)
        return put(prefix.size() + run,
                   std::string(prefix) + hex_like(owner_.mac(value_of(hex)), hex));
      if (run == 16)
        return put(prefix.size() + run,
                   std::string(prefix) + hex_like(owner_.guid(value_of(hex)), hex));
    }
    return false;
  }

  /// Replaces the longest known name of a host or user that is a whole word here: "ann" is not
  /// found in "anna" or "ann_1".
  bool replace_name() {
    for (auto size = owner_.name_sizes_.rbegin(); size != owner_.name_sizes_.rend(); ++size) {
      if (*size > text_.size() - at_ || is_word(at(at_ + *size)))
        continue;
      const auto name = owner_.names_.find(std::string(text_.substr(at_, *size)));
      if (name != owner_.names_.end())
        return put(*size, name->second);
    }
    return false;
  }

  Anonymizer& owner_;
  std::string_view text_;
  bool is_path_;
  std::size_t at_ = 0;
  std::string result_;
};

std::string Anonymizer::scan(std::string_view text, bool is_path) {
  return Scanner(*this, text, is_path).scan();
}

std::string Anonymizer::text(std::string_view text) {
  return scan(text, false);
}

std::string Anonymizer::path(std::string_view path) {
  return scan(path, true);
}

} // namespace shmemctl::gather
