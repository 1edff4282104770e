#include <algorithm>
#include <array>
#include <utility>

#include "src/runtime/failure_detector_wire.h"

namespace shmemctl {

namespace {

/// Serializes the error without its code and fix, which are also in the failure.
void serialize_error(Archive& archive, Failure& failure) {
  std::string subject, action, cause;
  Where where;
  if (failure.error) {
    subject = failure.error->subject();
    action = failure.error->attempted();
    cause = failure.error->system_message();
    where = failure.error->where();
  }
  archive.text(subject, failure_detector::max_subject_bytes);
  archive.text(action, failure_detector::max_action_bytes);
  archive.text(cause, failure_detector::max_cause_bytes);
  archive.text(where.host, failure_detector::max_host_bytes);
  archive.text(where.device, failure_detector::max_name_bytes);
  archive(where.pe, where.port);
  bool same_on_all_pes = failure.error && failure.error->same_on_all_pes();
  archive(same_on_all_pes);
  if (!archive.reading())
    return;
  failure.error = Error(failure.code, std::move(subject), std::move(action), std::move(cause),
                        failure.fix, std::move(where));
  if (same_on_all_pes)
    failure.error = std::move(*failure.error).on_all_pes();
}

bool is_code_of_failure(std::uint8_t value) {
  constexpr std::array codes = {ExitCode::finding, ExitCode::usage, ExitCode::unavailable,
                                ExitCode::deadline, ExitCode::interrupted};
  return std::any_of(codes.begin(), codes.end(),
                     [value](ExitCode code) { return value == static_cast<std::uint8_t>(code); });
}

} // namespace

void serialize(Archive& archive, Failure& failure) {
  auto code = static_cast<std::uint8_t>(failure.code);
  archive(failure.pe, code, failure.unresponsive);
  archive.require(is_code_of_failure(code));
  if (archive.reading() && archive.good())
    failure.code = static_cast<ExitCode>(code);
  archive.text(failure.host, failure_detector::max_host_bytes);
  archive.text(failure.phase, failure_detector::max_name_bytes);
  archive.text(failure.message, failure_detector::max_message_bytes);
  archive.text(failure.fix, failure_detector::max_fix_bytes);
  bool has_error = failure.error.has_value();
  archive(has_error);
  if (has_error)
    serialize_error(archive, failure);
}

} // namespace shmemctl

namespace shmemctl::failure_detector {

void serialize(Archive& archive, Hello& hello) {
  archive(hello.proof, hello.rank, hello.size);
  archive.require(hello.rank >= 0 && hello.rank < hello.size);
}

void serialize(Archive& archive, Welcome& welcome) {
  archive(welcome.proof, welcome.rank);
}

void serialize(Archive& archive, Query& query) {
  archive(query.from, query.about);
}

void serialize(Archive& archive, PhaseNotice& phase) {
  archive(phase.number);
  archive.text(phase.name, max_name_bytes);
}

void serialize(Archive&, Goodbye&) {}

void serialize(Archive& archive, Status& status) {
  std::int32_t wait = encode_wait(status.waiting_for, status.by_network);
  archive(status.proof, status.phase);
  archive.text(status.step, max_name_bytes);
  archive(wait, status.calls, status.knows_other, status.other);
  if (archive.reading())
    decode_wait(status, wait);
}

void serialize(Archive& archive, ConnectionRequest& request) {
  std::uint16_t version = wire_version;
  archive(version);
  archive.require(version == wire_version);
  archive(request.nonce);
}

void serialize(Archive& archive, Challenge& challenge) {
  archive(challenge.nonce);
}

void serialize(Archive& archive, Printed& printed) {
  archive(printed.failure);
}

namespace {

constexpr std::string_view magic = "sL";

// A message's type is its position in the variant, from 1 on; append new messages at the end.
constexpr char first_type = 1, last_type = std::variant_size_v<Message>;

template <std::size_t at = 0>
std::optional<Message> read_body(char type, std::string_view bytes) {
  if constexpr (at < std::variant_size_v<Message>) {
    using Body = std::variant_alternative_t<at, Message>;
    if (type != first_type + static_cast<char>(at))
      return read_body<at + 1>(type, bytes);
    std::optional<Body> body = from_bytes<Body>(bytes);
    return body ? std::optional<Message>(std::move(*body)) : std::nullopt;
  } else {
    return std::nullopt;
  }
}

/// Returns the address of a message's proof; nullptr if it has none.
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

/// Whether a frame can begin with these bytes, which may be fewer than a header.
bool plausible_start(std::string_view bytes) {
  if (bytes.substr(0, magic.size()) != magic.substr(0, bytes.size()))
    return false;
  if (bytes.size() > 2 && (bytes[2] < first_type || bytes[2] > last_type))
    return false;
  return bytes.size() < 4 || bytes[3] == 0;
}

} // namespace

/// The proof covers the whole frame, with zeros instead of the proof itself; the message's type
/// identifies the side that sent it.
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
  const std::string body = std::visit([](const auto& value) { return to_bytes(value); }, message);
  std::string frame(magic);
  frame += static_cast<char>(first_type + static_cast<char>(message.index()));
  frame += '\0';
  return frame + to_bytes(static_cast<std::uint32_t>(body.size())) + body;
}

std::optional<std::size_t> frame_size(std::string_view header, std::size_t max_bytes) {
  if (!plausible_start(header))
    return std::nullopt;
  const std::size_t payload_bytes = from_bytes<std::uint32_t>(header.substr(4, 4)).value_or(0);
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
  std::optional<Message> message =
      read_body(bytes[2], bytes.substr(frame_header_bytes, *size_bytes - frame_header_bytes));
  if (!message)
    return {Decoding::garbage, Goodbye{}, 0};
  return {Decoding::complete, std::move(*message), *size_bytes};
}

} // namespace shmemctl::failure_detector
