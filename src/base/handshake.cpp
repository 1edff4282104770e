#include "src/base/handshake.h"

#include <algorithm>

#include "src/base/hash.h"
#include "src/base/wire_bytes.h"

namespace shmemctl {

namespace {

constexpr std::uint32_t password_rounds = 50000;

Secret first_half(const Sha256Digest& digest) {
  Secret half;
  std::copy_n(digest.begin(), half.size(), half.begin());
  return half;
}

std::string_view view(const Secret& secret) {
  return {reinterpret_cast<const char*>(secret.data()), secret.size()};
}

/// Appends a text preceded by its length, so that the following bytes cannot be taken for a part of
/// it.
void add_name(WireWriter& text, std::string_view name) {
  text.text(name, 255);
}

} // namespace

Proof Handshake::prove(const Secret& secret, std::string_view role,
                       std::string_view message) const {
  WireWriter text;
  add_name(text, role);
  text.array(dialer);
  text.array(listener);
  text.bytes(message);
  return first_half(hmac_sha256(view(secret), text.take()));
}

Secret derive_secret(const Secret& secret, std::string_view purpose, std::string_view context) {
  WireWriter text;
  add_name(text, purpose);
  text.bytes(context);
  return first_half(hmac_sha256(view(secret), text.take()));
}

Secret secret_of_password(std::string_view password, std::string_view salt) {
  return first_half(pbkdf2_sha256(password, salt, password_rounds));
}

} // namespace shmemctl
