// The failure detector's messages as bytes. All functions are pure and accept any input, since
// anybody may connect and send anything.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "src/base/archive.h"
#include "src/base/handshake.h"
#include "src/runtime/failure_detector.h"

namespace shmemctl {
void serialize(Archive& archive, Failure& failure);
}

namespace shmemctl::failure_detector {

inline constexpr std::uint16_t wire_version = 3;
using shmemctl::Secret;

/// The first message on each connection, from the connecting PE.
struct ConnectionRequest {
  Nonce nonce{};
};
/// The answer to a ConnectionRequest. The proofs in later messages depend on both nonces.
struct Challenge {
  Nonce nonce{};
};
/// The next message on a connection between neighbours, from the connecting PE.
struct Hello {
  Proof proof{};
  std::int32_t rank = 0, size = 0;
};
/// The response to Hello, with the rank of the accepting PE.
struct Welcome {
  Proof proof{};
  std::int32_t rank = 0;
};
/// The next message on a connection for a query; the reply is Status, and then the connection ends.
struct Query {
  Hello from;
  std::int32_t about = -1; ///< a neighbour of the queried PE whose last phase is also queried
};
struct PhaseNotice {
  std::uint32_t number = 0; ///< phases after the failure detector's, comparable between PEs
  std::string name;
};
struct Goodbye {};
struct Status {
  Proof proof{};
  PhaseNotice phase;
  std::string step;              ///< the step that has timed out; "" if none has
  std::int32_t waiting_for = -1; ///< PE; -1: none, or several PEs through a network
  bool by_network = false;       ///< the operation needs nothing from that PE's program
  std::uint64_t calls = 0;       ///< number of waits begun so far
  bool knows_other = false;      ///< `other` is filled in
  PhaseNotice other;             ///< the last phase of Query::about
};
/// A PE has printed the job's failure, so that the others need not.
struct Printed {
  Failure failure; ///< the printed failure
};
using Message = std::variant<Hello, Welcome, Query, PhaseNotice, Failure, Goodbye, Status,
                             ConnectionRequest, Challenge, Printed>;

void serialize(Archive& archive, Hello& hello);
void serialize(Archive& archive, Welcome& welcome);
void serialize(Archive& archive, Query& query);
void serialize(Archive& archive, PhaseNotice& phase);
void serialize(Archive& archive, Goodbye& goodbye);
void serialize(Archive& archive, Status& status);
void serialize(Archive& archive, ConnectionRequest& request);
void serialize(Archive& archive, Challenge& challenge);
void serialize(Archive& archive, Printed& printed);

/// The proof over all other contents of the message. Only Hello, Query, Welcome and Status contain
/// a proof; other messages never count as proven.
Proof proof_of(const Handshake& handshake, const Secret& secret, Message message);
bool is_proven(const Handshake& handshake, const Secret& secret, const Message& message);

/// Each returns the message with its proof.
Hello proven(const Handshake& handshake, const Secret& secret, Hello hello);
Query proven(const Handshake& handshake, const Secret& secret, Query query);
Welcome proven(const Handshake& handshake, const Secret& secret, Welcome welcome);
Status proven(const Handshake& handshake, const Secret& secret, Status status);

/// Status::waiting_for and by_network as one number: -1 means no PE, -2 several PEs through a
/// network, -3 - P PE P through a network.
constexpr std::int32_t encode_wait(std::int32_t peer, bool by_network) {
  return by_network ? -3 - peer : peer;
}
constexpr void decode_wait(Status& status, std::int32_t number) {
  status.by_network = number < -1;
  status.waiting_for = status.by_network ? -3 - number : number;
}

/// encode() cuts texts at these lengths; decode() refuses longer ones.
inline constexpr std::size_t max_name_bytes = 64, max_host_bytes = 255, max_message_bytes = 2000,
                             max_fix_bytes = 1000;
/// The same limits for the parts of Failure::error.
inline constexpr std::size_t max_subject_bytes = 300, max_action_bytes = 200,
                             max_cause_bytes = 1000;
/// The maximum size of a message from a connection before it has proven the secret, and after.
inline constexpr std::size_t max_unproven_bytes = 64, max_frame_bytes = 8192;

inline constexpr std::size_t frame_header_bytes = 8;

/// One frame: 2 bytes of magic, 1 byte of type, 1 zero byte, 4 bytes of payload length, and the
/// payload; all integers are little endian.
std::string encode(const Message& message);

/// The size of the frame that begins with this header; nothing if the header is invalid or the
/// frame is larger than `max_bytes`.
std::optional<std::size_t> frame_size(std::string_view header, std::size_t max_bytes);

enum class Decoding { complete, incomplete, garbage };
struct Decoded {
  Decoding state = Decoding::incomplete;
  Message message = Goodbye{};
  std::size_t size_bytes = 0; ///< size of the frame, if it is complete
};
/// Decodes the first frame of `bytes`. Never throws. Returns `garbage` as soon as the bytes can no
/// longer become a frame of at most `max_bytes`, and also for a ConnectionRequest of another
/// version.
Decoded decode(std::string_view bytes, std::size_t max_bytes);

} // namespace shmemctl::failure_detector
