#include <algorithm>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/bootstrap/interfaces.h"
#include "src/bootstrap/uid.h"

namespace shmemctl {

namespace {

constexpr std::size_t max_addresses = 32, max_text_bytes = 8192;
constexpr std::string_view prefix = "shmemctl-uid-";
constexpr const char* digits = "0123456789abcdef";

/// The text itself is never part of the message: it holds the secret.
[[noreturn]] void refuse(const std::string& problem) {
  throw Error(ExitCode::usage, "unique id", "", problem,
              "pass the id exactly as the creating PE printed it: shmemctl-uid-1:<32 hex "
              "digits>:<address>[,<address>...]");
}

std::string hex(const std::uint8_t* bytes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9')
    return digit - '0';
  return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

Secret parse_secret(std::string_view hex) {
  Secret secret{};
  if (hex.size() != 2 * secret.size())
    refuse("its secret has " + std::to_string(hex.size()) + " digits, not 32");
  for (std::size_t i = 0; i < secret.size(); ++i) {
    const int high = hex_value(hex[2 * i]), low = hex_value(hex[2 * i + 1]);
    if (high < 0 || low < 0)
      refuse("its secret is not of the digits 0-9 and a-f");
    secret[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return secret;
}

/// The part is not shown: an id that was pasted twice has its secret in there.
SocketAddress parse_address(const std::string& part, std::size_t number) {
  try {
    return parse_foreign_address(part);
  } catch (const Error&) {
    refuse("its address " + std::to_string(number) +
           " is not written as 10.0.0.1:4711, [fd00::1]:4711 or unix:NAME");
  }
}

void check_together(const std::vector<SocketAddress>& addresses) {
  for (const SocketAddress& address : addresses) {
    if (address.family() == AF_UNIX && addresses.size() > 1)
      refuse("a Unix name next to other addresses");
    if (address.family() != AF_UNIX && address.port() == 0)
      refuse("an address has port 0");
    if (address.port() != addresses.front().port())
      refuse("its addresses have different ports");
  }
}

} // namespace

std::string UniqueId::text() const {
  std::string text =
      std::string(prefix) + std::to_string(version) + ":" + hex(secret.data(), secret.size()) + ":";
  for (std::size_t i = 0; i < addresses.size(); ++i)
    text += (i > 0 ? "," : "") + addresses[i].text();
  return text;
}

UniqueId UniqueId::parse(const std::string& text) {
  if (text.size() > max_text_bytes)
    refuse("it is longer than " + std::to_string(max_text_bytes) + " bytes");
  if (!starts_with(text, prefix))
    refuse("it does not begin with " + std::string(prefix));
  const std::size_t version_end = text.find(':', prefix.size());
  if (version_end == std::string::npos)
    refuse("it ends after its version");
  const std::string its_version = text.substr(prefix.size(), version_end - prefix.size());
  if (its_version != std::to_string(version))
    refuse("it is of version \"" + printable(its_version, 20) + "\", and this tool reads version " +
           std::to_string(version));
  const std::size_t secret_end = text.find(':', version_end + 1);
  if (secret_end == std::string::npos)
    refuse("it has no addresses");
  UniqueId id;
  id.secret =
      parse_secret(std::string_view(text).substr(version_end + 1, secret_end - version_end - 1));
  const std::vector<std::string> parts = split(std::string_view(text).substr(secret_end + 1), ',');
  if (parts.size() > max_addresses)
    refuse("it has more than " + std::to_string(max_addresses) + " addresses");
  for (const std::string& part : parts)
    id.addresses.push_back(parse_address(part, id.addresses.size() + 1));
  check_together(id.addresses);
  return id;
}

std::string random_unix_name() {
  return "shmemctl-" + hex(random_secret().data(), 8);
}

} // namespace shmemctl
