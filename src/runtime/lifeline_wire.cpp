#include "src/runtime/lifeline_wire.h"

#include <algorithm>
#include <optional>

namespace shmemctl::lifeline {

namespace {

constexpr std::size_t header_bytes = 8;
constexpr std::string_view magic = "sL";

enum class Type : std::uint8_t {
  hello = 1,
  welcome = 2,
  query = 3,
  phase = 4,
  failure = 5,
  goodbye = 6,
  status = 7
};

class Writer {
public:
  template <class Integer>
  void integer(Integer value) {
    auto bits = static_cast<std::uint64_t>(value);
    for (std::size_t i = 0; i < sizeof(Integer); ++i, bits >>= 8)
      bytes_ += static_cast<char>(bits & 0xff);
  }
  void text(const std::string& value, std::size_t max_bytes) {
    const std::size_t length = std::min(value.size(), max_bytes);
    integer(static_cast<std::uint16_t>(length));
    bytes_.append(value, 0, length);
  }
  void raw(const Secret& value) {
    for (const std::uint8_t byte : value)
      bytes_ += static_cast<char>(byte);
  }
  std::string take() { return std::move(bytes_); }

private:
  std::string bytes_;
};

/// Reads past the end give zeros and make good() false.
class Reader {
public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <class Integer>
  Integer integer() {
    const std::string_view part = next(sizeof(Integer));
    std::uint64_t bits = 0;
    for (std::size_t i = part.size(); i-- > 0;)
      bits = bits << 8 | static_cast<unsigned char>(part[i]);
    return static_cast<Integer>(bits);
  }
  std::string text(std::size_t max_bytes) {
    const auto length = integer<std::uint16_t>();
    if (length > max_bytes)
      good_ = false;
    return std::string(next(length));
  }
  Secret secret() {
    Secret value{};
    const std::string_view part = next(value.size());
    std::copy(part.begin(), part.end(), value.begin());
    return value;
  }
  void require(bool condition) { good_ = good_ && condition; }
  bool good() const { return good_; }
  bool at_end() const { return bytes_.empty(); }

private:
  std::string_view next(std::size_t count) {
    if (!good_ || count > bytes_.size()) {
      good_ = false;
      return {};
    }
    const std::string_view part = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return part;
  }

  std::string_view bytes_;
  bool good_ = true;
};

struct Body {
  Type type;
  std::string payload;
};

void write(Writer& out, const Hello& hello) {
  out.integer(wire_version);
  out.raw(hello.secret);
  out.integer(hello.rank);
  out.integer(hello.size);
}
void write(Writer& out, const PhaseNotice& phase) {
  out.integer(phase.number);
  out.text(phase.name, max_name_bytes);
}

struct BodyOf {
  Body operator()(const Hello& hello) const {
    Writer out;
    write(out, hello);
    return {Type::hello, out.take()};
  }
  Body operator()(const Welcome& welcome) const {
    Writer out;
    out.integer(welcome.rank);
    return {Type::welcome, out.take()};
  }
  Body operator()(const Query& query) const {
    Writer out;
    write(out, query.from);
    out.integer(query.about);
    return {Type::query, out.take()};
  }
  Body operator()(const PhaseNotice& phase) const {
    Writer out;
    write(out, phase);
    return {Type::phase, out.take()};
  }
  Body operator()(const Failure& failure) const {
    Writer out;
    out.integer(static_cast<std::int32_t>(failure.pe));
    out.integer(static_cast<std::uint8_t>(failure.code));
    out.text(failure.host, max_host_bytes);
    out.text(failure.phase, max_name_bytes);
    out.text(failure.message, max_message_bytes);
    out.text(failure.fix, max_fix_bytes);
    return {Type::failure, out.take()};
  }
  Body operator()(const Goodbye&) const { return {Type::goodbye, {}}; }
  Body operator()(const Status& status) const {
    Writer out;
    write(out, status.phase);
    out.text(status.step, max_name_bytes);
    out.integer(status.waiting_for);
    out.integer(status.calls);
    out.integer(static_cast<std::uint8_t>(status.knows_other));
    write(out, status.other);
    return {Type::status, out.take()};
  }
};

Hello read_hello(Reader& in) {
  in.require(in.integer<std::uint16_t>() == wire_version);
  Hello hello;
  hello.secret = in.secret();
  hello.rank = in.integer<std::int32_t>();
  hello.size = in.integer<std::int32_t>();
  in.require(hello.rank >= 0 && hello.rank < hello.size);
  return hello;
}

PhaseNotice read_phase(Reader& in) {
  PhaseNotice phase;
  phase.number = in.integer<std::uint32_t>();
  phase.name = in.text(max_name_bytes);
  return phase;
}

ExitCode read_code(Reader& in) {
  const auto value = in.integer<std::uint8_t>();
  for (const ExitCode code : {ExitCode::finding, ExitCode::usage, ExitCode::unavailable,
                              ExitCode::deadline, ExitCode::interrupted})
    if (value == static_cast<std::uint8_t>(code))
      return code;
  in.require(false);
  return ExitCode::unavailable;
}

Failure read_failure(Reader& in) {
  Failure failure;
  failure.pe = in.integer<std::int32_t>();
  failure.code = read_code(in);
  failure.host = in.text(max_host_bytes);
  failure.phase = in.text(max_name_bytes);
  failure.message = in.text(max_message_bytes);
  failure.fix = in.text(max_fix_bytes);
  return failure;
}

Status read_status(Reader& in) {
  Status status;
  status.phase = read_phase(in);
  status.step = in.text(max_name_bytes);
  status.waiting_for = in.integer<std::int32_t>();
  status.calls = in.integer<std::uint64_t>();
  const auto knows_other = in.integer<std::uint8_t>();
  in.require(knows_other <= 1);
  status.knows_other = knows_other == 1;
  status.other = read_phase(in);
  return status;
}

std::optional<Message> read_body(Type type, Reader& in) {
  switch (type) {
  case Type::hello:
    return read_hello(in);
  case Type::welcome:
    return Welcome{in.integer<std::int32_t>()};
  case Type::query: {
    const Hello from = read_hello(in);
    return Query{from, in.integer<std::int32_t>()};
  }
  case Type::phase:
    return read_phase(in);
  case Type::failure:
    return read_failure(in);
  case Type::goodbye:
    return Goodbye{};
  case Type::status:
    return read_status(in);
  }
  return std::nullopt;
}

/// Of a frame's first bytes, as many as there are.
bool plausible_start(std::string_view bytes) {
  if (bytes.substr(0, magic.size()) != magic.substr(0, bytes.size()))
    return false;
  if (bytes.size() > 2 &&
      (bytes[2] < static_cast<char>(Type::hello) || bytes[2] > static_cast<char>(Type::status)))
    return false;
  return bytes.size() < 4 || bytes[3] == 0;
}

} // namespace

std::string encode(const Message& message) {
  const Body body = std::visit(BodyOf{}, message);
  Writer out;
  out.integer(static_cast<std::uint32_t>(body.payload.size()));
  std::string frame(magic);
  frame += static_cast<char>(body.type);
  frame += '\0';
  return frame + out.take() + body.payload;
}

Decoded decode(std::string_view bytes, std::size_t max_bytes) {
  if (!plausible_start(bytes))
    return {Decoding::garbage, Goodbye{}, 0};
  if (bytes.size() < header_bytes)
    return {};
  const std::size_t payload_bytes = Reader(bytes.substr(4)).integer<std::uint32_t>();
  if (payload_bytes > max_bytes - std::min(max_bytes, header_bytes))
    return {Decoding::garbage, Goodbye{}, 0};
  if (bytes.size() - header_bytes < payload_bytes)
    return {};
  Reader in(bytes.substr(header_bytes, payload_bytes));
  std::optional<Message> message = read_body(static_cast<Type>(bytes[2]), in);
  if (!message || !in.good() || !in.at_end())
    return {Decoding::garbage, Goodbye{}, 0};
  return {Decoding::complete, std::move(*message), header_bytes + payload_bytes};
}

} // namespace shmemctl::lifeline
