// Two processes prove to each other that they share a secret, without sending it.
#pragma once

#include <string_view>

#include "src/base/secret.h"

namespace shmemctl {

/// Random, and used for one connection only.
using Nonce = std::array<std::uint8_t, 16>;
/// A keyed hash that only a holder of the secret can compute.
using Proof = std::array<std::uint8_t, 16>;

/// Throws Error (unavailable) like random_secret().
inline Nonce random_nonce() {
  return random_secret();
}

/// A connection, as both of its ends know it. The dialer sends its nonce, the listener replies with
/// its own, the dialer sends a message with a proof, and the listener replies with a proof. Each
/// proof is valid only for this connection, this message and this direction, so it cannot be
/// replayed.
struct Handshake {
  Nonce dialer{}, listener{};

  /// HMAC-SHA-256, cut to 128 bits, over the role, both nonces and the message.
  /// @param role names the message and its sender, e.g. "join"; a different one for each
  Proof prove(const Secret& secret, std::string_view role, std::string_view message) const;
};

/// Compares two proofs in constant time.
inline bool same_proof(const Proof& left, const Proof& right) {
  return same_secret(left, right);
}

/// Derives a secret for one purpose. Neither the original secret nor that of another purpose can be
/// derived from it.
Secret derive_secret(const Secret& secret, std::string_view purpose, std::string_view context);

/// Derives a secret from a password that people chose, which may be short: each guess costs 50,000
/// rounds of PBKDF2, each of which is one HMAC.
/// @param salt the same for all processes of the job and usually different for other jobs
Secret secret_of_password(std::string_view password, std::string_view salt);

} // namespace shmemctl
