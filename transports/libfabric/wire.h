// Wire format: messages of fixed size, the immediate data of counted payloads, and the data that
// PEs exchange to connect. Readers may be given any bytes: they reject invalid ones.
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
  atomic = 1, ///< the target executes it, and replies with the old value
  signal = 2, ///< the target executes it when `writes` payloads of `sequence` have arrived; replies
  reply = 3   ///< reply to either
};

/// The layout is native, since both ends have the same machine type.
struct Message {
  static constexpr std::uint32_t magic_value = 0x5346424d;
  std::uint32_t magic = magic_value;
  MessageKind kind = MessageKind::atomic;
  AtomicOp op = AtomicOp::fetch;
  std::uint8_t word_bytes = 8;
  std::uint8_t refused = 0;     ///< in a reply: 1 if the word is not in a region or unaligned
  std::uint32_t from_pe = 0;    ///< the sender
  std::uint32_t operation = 0;  ///< index of the requester's operation; the reply repeats it
  std::uint32_t generation = 0; ///< counts the uses of that operation; the reply repeats it
  std::uint32_t region = 0;
  std::uint32_t sequence = 0;
  std::uint32_t writes = 0;
  std::uint64_t offset_bytes = 0, operand = 0,
                compare = 0; ///< in a reply: operand is the old value
};
static_assert(sizeof(Message) == 56);

/// Returns nothing if the bytes are not a valid message in a job of `n_pes` PEs.
std::optional<Message> read_message(const void* bytes, std::size_t size_bytes, int n_pes);

/// Encodes the immediate data of counted payloads: 4 bytes that contain the sender and a sequence
/// number. The upper 4 bits are a type; the range of the other bits is divided evenly among the
/// PEs.
class ImmediateSpace {
public:
  explicit ImmediateSpace(int n_pes);
  /// How many sequence numbers each PE has.
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
  std::string problem; ///< why the PE cannot use libfabric; if set, the other members are empty
  std::string provider, profile;
  std::uint32_t address_format = 0;
  bool loopback = false;
};
std::string to_text(const LocalInfo& info);
LocalInfo read_local_info(std::string_view text);

/// The device and address of an endpoint.
struct EndpointName {
  std::string device;
  std::string address; ///< bytes as fi_getname() returns them
  bool operator==(const EndpointName&) const = default;
};
void serialize(Archive& archive, EndpointName& endpoint);

/// A registered piece of a region, with a key for each endpoint of its owner.
struct PieceKey {
  struct EndpointKey {
    std::uint64_t key = 0;
    std::uint64_t base = 0; ///< remote address of the piece's first byte; 0 if offsets are used
    bool operator==(const EndpointKey&) const = default;
  };
  std::uint64_t offset_bytes = 0, size_bytes = 0;
  std::vector<EndpointKey> by_endpoint;
  bool operator==(const PieceKey&) const = default;
};
inline constexpr std::size_t max_endpoints = 8; ///< limits a key to 256 bytes
void serialize(Archive& archive, PieceKey& key);

} // namespace shmemctl::fabric
