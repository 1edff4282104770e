#include "transports/libfabric/wire.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "src/base/text.h"

namespace shmemctl::fabric {

namespace {

constexpr std::size_t max_text_bytes = 1024;

} // namespace

std::optional<Message> read_message(const void* bytes, std::size_t size_bytes, int n_pes) {
  if (size_bytes < sizeof(Message))
    return std::nullopt;
  Message message;
  std::memcpy(&message, bytes, sizeof message);
  const auto kind = static_cast<unsigned>(message.kind);
  if (message.magic != Message::magic_value || kind < 1 || kind > 3 ||
      message.from_pe >= static_cast<std::uint32_t>(n_pes) ||
      static_cast<unsigned>(message.op) > static_cast<unsigned>(AtomicOp::bit_xor) ||
      (message.word_bytes != 4 && message.word_bytes != 8 &&
       (message.word_bytes != 2 || message.op != AtomicOp::set)))
    return std::nullopt;
  return message;
}

ImmediateSpace::ImmediateSpace(int n_pes)
    : n_pes_(static_cast<std::uint32_t>(std::max(n_pes, 1))),
      numbers_(std::max<std::uint32_t>(kind_bits / n_pes_, 1)) {}

std::optional<ImmediateSpace::Sender> ImmediateSpace::decode(std::uint64_t data) const {
  const auto bits = static_cast<std::uint32_t>(data);
  if (data > UINT32_MAX || (bits & ~(kind_bits - 1)) != kind_bits)
    return std::nullopt;
  const std::uint32_t place = bits & (kind_bits - 1);
  if (place / numbers_ >= n_pes_)
    return std::nullopt;
  return Sender{static_cast<int>(place / numbers_), place % numbers_};
}

std::string to_text(const LocalInfo& info) {
  if (!info.problem.empty())
    return "no\n" + info.problem.substr(0, 900);
  return "yes\n" + info.provider + "\n" + info.profile + "\n" +
         std::to_string(info.address_format) + "\n" + (info.loopback ? "1" : "0");
}

LocalInfo read_local_info(std::string_view text) {
  const std::size_t first = text.find('\n');
  const std::string_view word = text.substr(0, first);
  if (word == "no" && first != std::string_view::npos && first + 1 < text.size())
    return {std::string(text.substr(first + 1)), {}, {}, 0, false};
  const std::vector<std::string> lines = split(std::string(text), '\n');
  LocalInfo info;
  if (lines.size() != 5 || lines[0] != "yes" || lines[1].empty()) {
    info.problem = "it sent no data for libfabric, or data of another version";
    return info;
  }
  info.provider = lines[1];
  info.profile = lines[2];
  std::from_chars(lines[3].data(), lines[3].data() + lines[3].size(), info.address_format);
  info.loopback = lines[4] == "1";
  return info;
}

void serialize(Archive& archive, EndpointName& endpoint) {
  archive.text(endpoint.device, max_text_bytes);
  archive.text(endpoint.address, max_text_bytes);
}

static void serialize(Archive& archive, PieceKey::EndpointKey& endpoint) {
  archive(endpoint.key, endpoint.base);
}

void serialize(Archive& archive, PieceKey& key) {
  archive(key.offset_bytes, key.size_bytes, key.by_endpoint);
  archive.require(key.by_endpoint.size() <= max_endpoints &&
                  key.offset_bytes + key.size_bytes >= key.offset_bytes);
}

} // namespace shmemctl::fabric
