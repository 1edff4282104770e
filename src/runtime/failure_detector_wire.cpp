#include <algorithm>
#include <utility>

#include "src/base/wire_bytes.h"
#include "src/runtime/failure_detector_wire.h"

namespace shmemctl::failure_detector {

namespace {

constexpr std::string_view magic = "sL";

enum class Type : std::uint8_t {
  hello = 1,
  welcome = 2,
  query = 3,
  phase = 4,
  failure = 5,
  goodbye = 6,
  status = 7,
  connect_request = 8,
  challenge = 9,
  printed = 10
};

struct Body {
  Type type;
  std::string payload;
};

void write(WireWriter& out, const Hello& hello) {
  out.array(hello.proof);
  out.number(hello.rank);
  out.number(hello.size);
}
void write(WireWriter& out, const PhaseNotice& phase) {
  out.number(phase.number);
  out.text(phase.name, max_name_bytes);
}

void write(WireWriter& out, const std::optional<int>& number) {
  out.flag(number.has_value());
  if (number)
    out.number(static_cast<std::int32_t>(*number));
}

/// Without its code and its fix, which the failure has too.
void write(WireWriter& out, const Error& error) {
  out.text(error.subject(), max_subject_bytes);
  out.text(error.attempted(), max_action_bytes);
  out.text(error.system_message(), max_cause_bytes);
  out.text(error.where().host, max_host_bytes);
  write(out, error.where().pe);
  out.text(error.where().device, max_name_bytes);
  write(out, error.where().port);
}

void write(WireWriter& out, const Failure& failure) {
  out.number(static_cast<std::int32_t>(failure.pe));
  out.number(static_cast<std::uint8_t>(failure.code));
  out.flag(failure.unresponsive);
  out.text(failure.host, max_host_bytes);
  out.text(failure.phase, max_name_bytes);
  out.text(failure.message, max_message_bytes);
  out.text(failure.fix, max_fix_bytes);
  out.flag(failure.error.has_value());
  if (failure.error)
    write(out, *failure.error);
}

struct BodyOf {
  Body operator()(const Hello& hello) const {
    WireWriter out;
    write(out, hello);
    return {Type::hello, out.take()};
  }
  Body operator()(const Welcome& welcome) const {
    WireWriter out;
    out.array(welcome.proof);
    out.number(welcome.rank);
    return {Type::welcome, out.take()};
  }
  Body operator()(const Query& query) const {
    WireWriter out;
    write(out, query.from);
    out.number(query.about);
    return {Type::query, out.take()};
  }
  Body operator()(const PhaseNotice& phase) const {
    WireWriter out;
    write(out, phase);
    return {Type::phase, out.take()};
  }
  Body operator()(const Failure& failure) const {
    WireWriter out;
    write(out, failure);
    return {Type::failure, out.take()};
  }
  Body operator()(const Printed& printed) const {
    WireWriter out;
    write(out, printed.failure);
    return {Type::printed, out.take()};
  }
  Body operator()(const Goodbye&) const { return {Type::goodbye, {}}; }
  Body operator()(const Status& status) const {
    WireWriter out;
    out.array(status.proof);
    write(out, status.phase);
    out.text(status.step, max_name_bytes);
    out.number(encode_wait(status.waiting_for, status.by_network));
    out.number(status.calls);
    out.flag(status.knows_other);
    write(out, status.other);
    return {Type::status, out.take()};
  }
  Body operator()(const ConnectionRequest& connect_request) const {
    WireWriter out;
    out.number(wire_version);
    out.array(connect_request.nonce);
    return {Type::connect_request, out.take()};
  }
  Body operator()(const Challenge& challenge) const {
    WireWriter out;
    out.array(challenge.nonce);
    return {Type::challenge, out.take()};
  }
};

Hello read_hello(WireReader& in) {
  Hello hello;
  hello.proof = in.array<sizeof(Proof)>();
  hello.rank = in.number<std::int32_t>();
  hello.size = in.number<std::int32_t>();
  in.require(hello.rank >= 0 && hello.rank < hello.size);
  return hello;
}

PhaseNotice read_phase(WireReader& in) {
  PhaseNotice phase;
  phase.number = in.number<std::uint32_t>();
  phase.name = in.text(max_name_bytes);
  return phase;
}

ExitCode read_code(WireReader& in) {
  const auto value = in.number<std::uint8_t>();
  for (const ExitCode code : {ExitCode::finding, ExitCode::usage, ExitCode::unavailable,
                              ExitCode::deadline, ExitCode::interrupted})
    if (value == static_cast<std::uint8_t>(code))
      return code;
  in.require(false);
  return ExitCode::unavailable;
}

std::optional<int> read_optional_number(WireReader& in) {
  return in.flag() ? std::optional<int>(in.number<std::int32_t>()) : std::nullopt;
}

Error read_error(WireReader& in, ExitCode code, const std::string& fix) {
  std::string subject = in.text(max_subject_bytes);
  std::string action = in.text(max_action_bytes);
  std::string cause = in.text(max_cause_bytes);
  Where where;
  where.host = in.text(max_host_bytes);
  where.pe = read_optional_number(in);
  where.device = in.text(max_name_bytes);
  where.port = read_optional_number(in);
  return {code, std::move(subject), std::move(action), std::move(cause), fix, std::move(where)};
}

Failure read_failure(WireReader& in) {
  Failure failure;
  failure.pe = in.number<std::int32_t>();
  failure.code = read_code(in);
  failure.unresponsive = in.flag();
  failure.host = in.text(max_host_bytes);
  failure.phase = in.text(max_name_bytes);
  failure.message = in.text(max_message_bytes);
  failure.fix = in.text(max_fix_bytes);
  if (in.flag())
    failure.error = read_error(in, failure.code, failure.fix);
  return failure;
}

Status read_status(WireReader& in) {
  Status status;
  status.proof = in.array<sizeof(Proof)>();
  status.phase = read_phase(in);
  status.step = in.text(max_name_bytes);
  decode_wait(status, in.number<std::int32_t>());
  status.calls = in.number<std::uint64_t>();
  status.knows_other = in.flag();
  status.other = read_phase(in);
  return status;
}

std::optional<Message> read_body(Type type, WireReader& in) {
  switch (type) {
  case Type::hello:
    return read_hello(in);
  case Type::welcome: {
    const Proof proof = in.array<sizeof(Proof)>();
    return Welcome{proof, in.number<std::int32_t>()};
  }
  case Type::query: {
    const Hello from = read_hello(in);
    return Query{from, in.number<std::int32_t>()};
  }
  case Type::phase:
    return read_phase(in);
  case Type::failure:
    return read_failure(in);
  case Type::goodbye:
    return Goodbye{};
  case Type::status:
    return read_status(in);
  case Type::connect_request:
    in.require(in.number<std::uint16_t>() == wire_version);
    return ConnectionRequest{in.array<sizeof(Nonce)>()};
  case Type::challenge:
    return Challenge{in.array<sizeof(Nonce)>()};
  case Type::printed:
    return Printed{read_failure(in)};
  }
  return std::nullopt;
}

/// Where a message has its proof; nullptr if it has none.
struct ProofIn {
  Proof* operator()(Hello& hello) const { return &hello.proof; }
  Proof* operator()(Welcome& welcome) const { return &welcome.proof; }
  Proof* operator()(Query& query) const { return &query.from.proof; }
  Proof* operator()(Status& status) const { return &status.proof; }
  template <class Other>
  Proof* operator()(Other&) const {
    return nullptr;
  }
};

template <class Proven>
Proven with_proof(const Handshake& handshake, const Secret& secret, Proven message) {
  *ProofIn{}(message) = proof_of(handshake, secret, message);
  return message;
}

/// Of a frame's first bytes, as many as there are.
bool plausible_start(std::string_view bytes) {
  if (bytes.substr(0, magic.size()) != magic.substr(0, bytes.size()))
    return false;
  if (bytes.size() > 2 &&
      (bytes[2] < static_cast<char>(Type::hello) || bytes[2] > static_cast<char>(Type::printed)))
    return false;
  return bytes.size() < 4 || bytes[3] == 0;
}

} // namespace

/// Over the whole frame with zeros instead of the proof; the type tells which side sent it.
Proof proof_of(const Handshake& handshake, const Secret& secret, Message message) {
  if (Proof* proof = std::visit(ProofIn{}, message))
    proof->fill(0);
  return handshake.prove(secret, "lifeline", encode(message));
}

bool is_proven(const Handshake& handshake, const Secret& secret, const Message& message) {
  Message copy = message;
  const Proof* proof = std::visit(ProofIn{}, copy);
  return proof && same_proof(*proof, proof_of(handshake, secret, message));
}

Hello proven(const Handshake& handshake, const Secret& secret, Hello hello) {
  return with_proof(handshake, secret, hello);
}
Query proven(const Handshake& handshake, const Secret& secret, Query query) {
  return with_proof(handshake, secret, query);
}
Welcome proven(const Handshake& handshake, const Secret& secret, Welcome welcome) {
  return with_proof(handshake, secret, welcome);
}
Status proven(const Handshake& handshake, const Secret& secret, Status status) {
  return with_proof(handshake, secret, std::move(status));
}

std::string encode(const Message& message) {
  const Body body = std::visit(BodyOf{}, message);
  WireWriter out;
  out.number(static_cast<std::uint32_t>(body.payload.size()));
  std::string frame(magic);
  frame += static_cast<char>(body.type);
  frame += '\0';
  return frame + out.take() + body.payload;
}

std::optional<std::size_t> frame_size(std::string_view header, std::size_t max_bytes) {
  if (!plausible_start(header))
    return std::nullopt;
  const std::size_t payload_bytes = WireReader(header.substr(4)).number<std::uint32_t>();
  if (payload_bytes > max_bytes - std::min(max_bytes, frame_header_bytes))
    return std::nullopt;
  return frame_header_bytes + payload_bytes;
}

Decoded decode(std::string_view bytes, std::size_t max_bytes) {
  if (!plausible_start(bytes))
    return {Decoding::garbage, Goodbye{}, 0};
  if (bytes.size() < frame_header_bytes)
    return {};
  const std::optional<std::size_t> size_bytes = frame_size(bytes, max_bytes);
  if (!size_bytes)
    return {Decoding::garbage, Goodbye{}, 0};
  if (bytes.size() < *size_bytes)
    return {};
  WireReader in(bytes.substr(frame_header_bytes, *size_bytes - frame_header_bytes));
  std::optional<Message> message = read_body(static_cast<Type>(bytes[2]), in);
  if (!message || !in.good() || !in.at_end())
    return {Decoding::garbage, Goodbye{}, 0};
  return {Decoding::complete, std::move(*message), *size_bytes};
}

} // namespace shmemctl::failure_detector
