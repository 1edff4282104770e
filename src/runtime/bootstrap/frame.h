// The wire format of the `uid` bootstrap: frames with a fixed header, and their payloads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/base/archive.h"
#include "src/base/error.h"
#include "src/base/handshake.h"
#include "src/base/socket.h"

namespace shmemctl {

using Bytes = std::vector<std::byte>;

enum class FrameKind : std::uint8_t {
  join = 1,            ///< PE -> rendezvous, once challenged: its proof and Join
  welcome = 2,         ///< the listener accepted a join or hello: its proof
  failure = 3,         ///< FailureReport: the connection was refused, or the job has failed
  neighbours = 4,      ///< rendezvous -> PE: Neighbours
  linked = 5,          ///< no payload. PE -> PE: this connection is in use; PE -> rendezvous: all
                       ///< neighbours are connected; rendezvous -> PE: all PEs are
  hello = 6,           ///< PE -> PE, once challenged: its proof and Hello
  goodbye = 7,         ///< nothing more will come from this PE, and all is well; no payload
  connect_request = 8, ///< the first frame of each connection: the dialer's nonce
  challenge = 9,       ///< the answer to a connect_request: the listener's nonce
  barrier = 16,
  allgather = 17,
  alltoall = 18,
  broadcast = 19,
  gather = 20
};
const char* to_string(FrameKind kind);

/// The longest payload that any frame may announce; a longer one is refused unread.
inline constexpr std::uint64_t max_frame_bytes = std::uint64_t{1} << 30;
/// The longest payload of a frame that is not part of a collective.
inline constexpr std::uint64_t max_control_bytes = 16384;

/// 32 bytes, little-endian, before every payload.
struct FrameHeader {
  static constexpr std::size_t wire_bytes = 32;
  static constexpr std::uint32_t magic = 0x314b4853; ///< "SHK1"
  static constexpr std::uint16_t protocol_version = 4;

  std::uint16_t version = protocol_version;
  FrameKind kind = FrameKind::goodbye;
  std::uint8_t round = 0;        ///< round of a collective
  std::uint32_t call = 0;        ///< number of the collective call
  std::uint32_t root = 0;        ///< root of a broadcast
  std::uint64_t size_bytes = 0;  ///< size of the payload
  std::uint64_t block_bytes = 0; ///< size that each PE passed to the call

  std::array<std::byte, wire_bytes> encode() const;
};

enum class HeaderProblem { none, not_ours, other_version, too_long };
/// Reads wire_bytes bytes. `header` is valid if the result is `none`; if the result is
/// `other_version`, only its `version` is valid.
HeaderProblem decode_header(const std::byte* wire, std::uint64_t max_payload_bytes,
                            FrameHeader& header);

/// The bytes of a whole frame: header and payload.
Bytes encode_frame(FrameKind kind, const Bytes& payload = {});

/// The payload of connect_request and challenge.
Bytes encode_nonce(const Nonce& nonce);
std::optional<Nonce> decode_nonce(const Bytes& payload);

/// The payload of join and hello: the dialer's proof, then Join or Hello.
Bytes encode_proven(const Proof& proof, const Bytes& contents);
struct Proven {
  Proof proof{};
  Bytes contents;
};
std::optional<Proven> decode_proven(const Bytes& payload);

/// The proof that the dialer sends with `contents`, and the proof with which the listener accepts
/// them.
Proof dialer_proof(const Handshake& handshake, const Secret& secret, FrameKind kind,
                   const Bytes& contents);
Proof listener_proof(const Handshake& handshake, const Secret& secret, FrameKind kind,
                     const Bytes& contents);

/// Assembles one frame from pieces of any size, and never takes a byte of the next frame.
class FrameReader {
public:
  explicit FrameReader(std::uint64_t max_payload_bytes = max_control_bytes)
      : max_payload_bytes_(max_payload_bytes) {}

  /// Where the next bytes belong, and how many are wanted at most; 0 if the frame is complete or
  /// malformed.
  struct Room {
    std::byte* at = nullptr;
    std::size_t size_bytes = 0;
  };
  Room room();
  void filled(std::size_t size_bytes);

  /// Reads what has arrived, without blocking. Throws Error if the peer has closed the connection.
  void read(Socket& socket);

  bool complete() const { return complete_; }
  HeaderProblem problem() const { return problem_; }
  const FrameHeader& header() const { return header_; }
  const Bytes& payload() const { return payload_; }
  /// Prepares for the next frame.
  void reset();

private:
  std::uint64_t max_payload_bytes_;
  std::array<std::byte, FrameHeader::wire_bytes> wire_{};
  std::size_t header_filled_ = 0, payload_filled_ = 0;
  bool complete_ = false;
  HeaderProblem problem_ = HeaderProblem::none;
  FrameHeader header_;
  Bytes payload_;
};

/// The message with which a PE joins a job at the rendezvous.
struct Join {
  static constexpr std::size_t max_addresses = 8;
  std::int32_t rank = 0, size = 0;
  std::uint64_t nonce = 0;        ///< random; equal in all attempts of one PE
  std::uint32_t remaining_ms = 0; ///< time until this PE's deadline
  std::string who;                ///< host and process, for messages
  std::vector<std::string> addresses;
  Bytes encode() const;
  static std::optional<Join> decode(const Bytes& payload);
};
void serialize(Archive& archive, Join& join);

/// The message of a PE to the neighbour that it connects to.
struct Hello {
  std::int32_t from = 0, to = 0;
  std::uint32_t level = 0; ///< to = from + 2^level, modulo the number of PEs
  Bytes encode() const;
  static std::optional<Hello> decode(const Bytes& payload);
};
void serialize(Archive& archive, Hello& hello);

/// The addresses of the PEs at distance +2^0, +2^1, ... of a PE.
struct Neighbours {
  std::vector<std::vector<std::string>> addresses;
  Bytes encode() const;
  static std::optional<Neighbours> decode(const Bytes& payload);
};
void serialize(Archive& archive, Neighbours& neighbours);

/// Why a connection was refused or a job has failed.
struct FailureReport {
  ExitCode code = ExitCode::unavailable;
  std::int32_t reporter = -1; ///< the PE that noticed the failure; -1: the rendezvous, or not known
  std::string text, fix;
  Bytes encode() const;
  static std::optional<FailureReport> decode(const Bytes& payload);
};
void serialize(Archive& archive, FailureReport& report);

} // namespace shmemctl
