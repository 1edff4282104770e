// Two processes that share a secret show each other that they do, without sending it.
#pragma once

#include <string_view>

#include "src/base/secret.h"

namespace shmemctl {

/// Random, and used for one connection only.
using Nonce = std::array<std::uint8_t, 16>;
/// A keyed hash that only who has the secret can make.
using Proof = std::array<std::uint8_t, 16>;

/// Throws Error (unavailable) as random_secret().
inline Nonce random_nonce() {
  return random_secret();
}

/// A connection, as both of its ends know it. The dialer sends its nonce, the listener answers with
/// its own, the dialer sends a message with a proof, and the listener answers with a proof. Each
/// proof holds for this connection, this message and this direction alone: recorded, it is of no
/// use for another one.
struct Handshake {
  Nonce dialer{}, listener{};

  /// HMAC-SHA-256, cut to 128 bits, over the role, both nonces and the message.
  /// @param role what the message is and who sends it, e.g. "join"; another one for each
  Proof prove(const Secret& secret, std::string_view role, std::string_view message) const;
};

/// Takes the same time wherever the two differ.
inline bool same_proof(const Proof& left, const Proof& right) {
  return same_secret(left, right);
}

/// A secret for one purpose, from which neither the first one nor that for another purpose follows.
Secret derive_secret(const Secret& secret, std::string_view purpose, std::string_view context);

/// A secret that people chose, which may be short: each guess costs as much as 50,000 hashes.
/// @param salt what is the same for all processes of the job and mostly another one for other jobs
Secret secret_of_password(std::string_view password, std::string_view salt);

} // namespace shmemctl
