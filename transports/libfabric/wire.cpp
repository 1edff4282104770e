#include "transports/libfabric/wire.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "src/base/text.h"

namespace shmemctl::fabric {

namespace {

template <class Value>
void put(std::string& text, const Value& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Takes values off the front; `good` turns false where there is too little.
struct Reader {
  std::string_view rest;
  bool good = true;

  template <class Value>
  Value take() {
    Value value{};
    good = good && rest.size() >= sizeof value;
    if (good) {
      std::memcpy(&value, rest.data(), sizeof value);
      rest.remove_prefix(sizeof value);
    }
    return value;
  }
  std::string take_text() {
    const auto size_bytes = take<std::uint16_t>();
    good = good && rest.size() >= size_bytes;
    if (!good)
      return {};
    const std::string text(rest.substr(0, size_bytes));
    rest.remove_prefix(size_bytes);
    return text;
  }
};

void put_text(std::string& out, const std::string& text) {
  const std::string cut = text.substr(0, 1024);
  put(out, static_cast<std::uint16_t>(cut.size()));
  out += cut;
}

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
    info.problem = "it said nothing of libfabric";
    return info;
  }
  info.provider = lines[1];
  info.profile = lines[2];
  std::from_chars(lines[3].data(), lines[3].data() + lines[3].size(), info.address_format);
  info.loopback = lines[4] == "1";
  return info;
}

std::string to_text(const std::vector<EndpointName>& endpoints) {
  std::string text;
  put(text, static_cast<std::uint8_t>(endpoints.size()));
  for (const EndpointName& endpoint : endpoints) {
    put_text(text, endpoint.device);
    put_text(text, endpoint.address);
  }
  return text;
}

std::optional<std::vector<EndpointName>> read_endpoints(std::string_view text) {
  Reader reader{text};
  const auto count = reader.take<std::uint8_t>();
  std::vector<EndpointName> endpoints;
  for (unsigned i = 0; i < count && reader.good; ++i) {
    EndpointName endpoint;
    endpoint.device = reader.take_text();
    endpoint.address = reader.take_text();
    endpoints.push_back(std::move(endpoint));
  }
  if (!reader.good || count > max_endpoints || !reader.rest.empty())
    return std::nullopt;
  return endpoints;
}

std::string to_text(const PieceKey& key) {
  std::string text;
  put(text, key.offset_bytes);
  put(text, key.size_bytes);
  for (const PieceKey::Way& way : key.ways) {
    put(text, way.key);
    put(text, way.base);
  }
  return text;
}

std::optional<PieceKey> read_piece_key(std::string_view text) {
  Reader reader{text};
  PieceKey key;
  key.offset_bytes = reader.take<std::uint64_t>();
  key.size_bytes = reader.take<std::uint64_t>();
  while (reader.good && !reader.rest.empty() && key.ways.size() < max_endpoints) {
    PieceKey::Way way;
    way.key = reader.take<std::uint64_t>();
    way.base = reader.take<std::uint64_t>();
    key.ways.push_back(way);
  }
  const bool wraps = key.offset_bytes + key.size_bytes < key.offset_bytes;
  if (!reader.good || !reader.rest.empty() || wraps)
    return std::nullopt;
  return key;
}

} // namespace shmemctl::fabric
