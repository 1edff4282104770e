// Wire format: messages of fixed size, the immediate data of counted payloads, and the texts of the
// exchanges. Readers accept any bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/archive.h"
#include "transports/transport.h"

namespace shmemctl::fabric {

enum class MessageKind : std::uint8_t {
  atomic = 1, ///< executed by the target, answered with the old value
  signal = 2, ///< executed when `writes` payloads of `sequence` have arrived, answered
  reply = 3   ///< to either
};

/// Same machine type on both ends: native layout.
struct Message {
  static constexpr std::uint32_t magic_value = 0x5346424d;
  std::uint32_t magic = magic_value;
  MessageKind kind = MessageKind::atomic;
  AtomicOp op = AtomicOp::fetch;
  std::uint8_t word_bytes = 8;
  std::uint8_t refused = 0;     ///< in a reply: the address was not one of the target's
  std::uint32_t from_pe = 0;    ///< the sender
  std::uint32_t operation = 0;  ///< the requester's, echoed by the reply
  std::uint32_t generation = 0; ///< use of that operation's slot
  std::uint32_t region = 0;
  std::uint32_t sequence = 0;
  std::uint32_t writes = 0;
  std::uint64_t offset_bytes = 0, operand = 0,
                compare = 0; ///< in a reply: operand is the old value
};
static_assert(sizeof(Message) == 56);

/// Nothing if it cannot be one of a job of `n_pes`.
std::optional<Message> read_message(const void* bytes, std::size_t size_bytes, int n_pes);

/// Sequence numbers of counted payloads: 4 bytes of immediate data hold the sender and a number.
/// The upper 4 bits are the type; the rest is divided evenly among the PEs.
class ImmediateSpace {
public:
  explicit ImmediateSpace(int n_pes);
  /// Numbers that each PE has.
  std::uint32_t numbers() const { return numbers_; }
  std::uint32_t encode(int pe, std::uint32_t sequence) const {
    return kind_bits | (static_cast<std::uint32_t>(pe) * numbers_ + sequence % numbers_);
  }
  struct Sender {
    int pe;
    std::uint32_t sequence;
  };
  std::optional<Sender> decode(std::uint64_t data) const;

private:
  static constexpr std::uint32_t kind_bits = 1u << 28;
  std::uint32_t n_pes_, numbers_;
};

/// Contents of local_info().
struct LocalInfo {
  std::string problem; ///< why the PE cannot use libfabric; then the rest is empty
  std::string provider, profile;
  std::uint32_t address_format = 0;
  bool loopback = false;
};
std::string to_text(const LocalInfo& info);
LocalInfo read_local_info(std::string_view text);

/// How an endpoint is reached.
struct EndpointName {
  std::string device;
  std::string address; ///< bytes as fi_getname() returns them
  bool operator==(const EndpointName&) const = default;
};
void serialize(Archive& archive, EndpointName& endpoint);

/// A piece of a region, registered by its owner: one key for each of its endpoints.
struct PieceKey {
  struct EndpointKey {
    std::uint64_t key = 0;
    std::uint64_t base = 0; ///< added to the offset in the piece
    bool operator==(const EndpointKey&) const = default;
  };
  std::uint64_t offset_bytes = 0, size_bytes = 0;
  std::vector<EndpointKey> by_endpoint;
  bool operator==(const PieceKey&) const = default;
};
inline constexpr std::size_t max_endpoints = 8; ///< so that a key has at most 256 bytes
void serialize(Archive& archive, PieceKey& key);

} // namespace shmemctl::fabric
