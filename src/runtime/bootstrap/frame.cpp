#include "src/runtime/bootstrap/frame.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace shmemctl {

namespace {

void store(std::byte* at, std::uint64_t value, std::size_t size_bytes) {
  for (std::size_t i = 0; i < size_bytes; ++i)
    at[i] = static_cast<std::byte>(value >> (8 * i));
}

std::uint64_t load(const std::byte* at, std::size_t size_bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size_bytes; ++i)
    value |= std::to_integer<std::uint64_t>(at[i]) << (8 * i);
  return value;
}

template <class T>
T load_as(const std::byte* at) {
  return static_cast<T>(load(at, sizeof(T)));
}

bool known(std::uint8_t kind) {
  return (kind >= static_cast<std::uint8_t>(FrameKind::join) &&
          kind <= static_cast<std::uint8_t>(FrameKind::challenge)) ||
         (kind >= static_cast<std::uint8_t>(FrameKind::barrier) &&
          kind <= static_cast<std::uint8_t>(FrameKind::gather));
}

} // namespace

const char* to_string(FrameKind kind) {
  switch (kind) {
  case FrameKind::join:
    return "join";
  case FrameKind::welcome:
    return "welcome";
  case FrameKind::failure:
    return "failure";
  case FrameKind::neighbours:
    return "neighbours";
  case FrameKind::linked:
    return "linked";
  case FrameKind::hello:
    return "hello";
  case FrameKind::goodbye:
    return "goodbye";
  case FrameKind::connect_request:
    return "knock";
  case FrameKind::challenge:
    return "challenge";
  case FrameKind::barrier:
    return "barrier";
  case FrameKind::allgather:
    return "allgather";
  case FrameKind::alltoall:
    return "alltoall";
  case FrameKind::broadcast:
    return "broadcast";
  case FrameKind::gather:
    return "gather";
  }
  return "unknown";
}

std::array<std::byte, FrameHeader::wire_bytes> FrameHeader::encode() const {
  std::array<std::byte, wire_bytes> wire{};
  store(&wire[0], magic, 4);
  store(&wire[4], version, 2);
  store(&wire[6], static_cast<std::uint8_t>(kind), 1);
  store(&wire[7], round, 1);
  store(&wire[8], call, 4);
  store(&wire[12], root, 4);
  store(&wire[16], size_bytes, 8);
  store(&wire[24], block_bytes, 8);
  return wire;
}

HeaderProblem decode_header(const std::byte* wire, std::uint64_t max_payload_bytes,
                            FrameHeader& header) {
  if (load(wire, 4) != FrameHeader::magic)
    return HeaderProblem::not_ours;
  header.version = load_as<std::uint16_t>(wire + 4);
  if (header.version != FrameHeader::protocol_version)
    return HeaderProblem::other_version;
  const auto kind = load_as<std::uint8_t>(wire + 6);
  if (!known(kind))
    return HeaderProblem::not_ours;
  header.kind = static_cast<FrameKind>(kind);
  header.round = load_as<std::uint8_t>(wire + 7);
  header.call = load_as<std::uint32_t>(wire + 8);
  header.root = load_as<std::uint32_t>(wire + 12);
  header.size_bytes = load(wire + 16, 8);
  header.block_bytes = load(wire + 24, 8);
  return header.size_bytes > max_payload_bytes ? HeaderProblem::too_long : HeaderProblem::none;
}

Bytes encode_frame(FrameKind kind, const Bytes& payload) {
  FrameHeader header;
  header.kind = kind;
  header.size_bytes = payload.size();
  const auto wire = header.encode();
  Bytes frame(wire.begin(), wire.end());
  frame.insert(frame.end(), payload.begin(), payload.end());
  return frame;
}

FrameReader::Room FrameReader::room() {
  if (complete_ || problem_ != HeaderProblem::none)
    return {};
  if (header_filled_ < wire_.size())
    return {wire_.data() + header_filled_, wire_.size() - header_filled_};
  return {payload_.data() + payload_filled_, payload_.size() - payload_filled_};
}

void FrameReader::filled(std::size_t size_bytes) {
  if (header_filled_ == wire_.size()) {
    payload_filled_ += size_bytes;
  } else {
    header_filled_ += size_bytes;
    if (header_filled_ < wire_.size())
      return;
    problem_ = decode_header(wire_.data(), max_payload_bytes_, header_);
    if (problem_ != HeaderProblem::none)
      return;
    payload_.resize(static_cast<std::size_t>(header_.size_bytes));
  }
  complete_ = payload_filled_ == payload_.size();
}

void FrameReader::read(Socket& socket) {
  for (Room wanted = room(); wanted.size_bytes > 0; wanted = room()) {
    const std::size_t received = socket.receive_some(wanted.at, wanted.size_bytes);
    if (received == 0)
      return;
    filled(received);
  }
}

void FrameReader::reset() {
  header_filled_ = payload_filled_ = 0;
  complete_ = false;
  problem_ = HeaderProblem::none;
  payload_.clear();
}

// Payloads: archives.

namespace {

constexpr std::size_t max_text_bytes = 600, max_levels = 32;

std::string_view view(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Cuts the addresses to the number and length that a reader accepts.
std::vector<std::string> cut(std::vector<std::string> addresses) {
  addresses.resize(std::min(addresses.size(), Join::max_addresses));
  for (std::string& address : addresses)
    address.resize(std::min(address.size(), max_text_bytes));
  return addresses;
}

bool are_cut(const std::vector<std::string>& addresses) {
  return addresses.size() <= Join::max_addresses &&
         std::all_of(addresses.begin(), addresses.end(),
                     [](const std::string& address) { return address.size() <= max_text_bytes; });
}

ExitCode exit_code(std::uint8_t value) {
  for (const ExitCode code :
       {ExitCode::finding, ExitCode::usage, ExitCode::deadline, ExitCode::interrupted})
    if (value == static_cast<std::uint8_t>(code))
      return code;
  return ExitCode::unavailable;
}

template <class Value>
Bytes archived(const Value& value) {
  const std::string text = to_bytes(value);
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

} // namespace

Bytes encode_nonce(const Nonce& nonce) {
  return archived(nonce);
}

std::optional<Nonce> decode_nonce(const Bytes& payload) {
  return from_bytes<Nonce>(view(payload));
}

Bytes encode_proven(const Proof& proof, const Bytes& contents) {
  Bytes payload = archived(proof);
  payload.insert(payload.end(), contents.begin(), contents.end());
  return payload;
}

std::optional<Proven> decode_proven(const Bytes& payload) {
  const auto proof = from_bytes<Proof>(view(payload).substr(0, sizeof(Proof)));
  if (!proof)
    return std::nullopt;
  return Proven{*proof, Bytes(payload.begin() + sizeof(Proof), payload.end())};
}

Proof dialer_proof(const Handshake& handshake, const Secret& secret, FrameKind kind,
                   const Bytes& contents) {
  return handshake.prove(secret, to_string(kind), view(contents));
}

Proof listener_proof(const Handshake& handshake, const Secret& secret, FrameKind kind,
                     const Bytes& contents) {
  return handshake.prove(secret, std::string("welcome ") + to_string(kind), view(contents));
}

void serialize(Archive& archive, Join& join) {
  archive(join.rank, join.size, join.nonce, join.remaining_ms);
  archive.text(join.who, max_text_bytes);
  archive(join.addresses);
  archive.require(are_cut(join.addresses));
}

Bytes Join::encode() const {
  Join wanted = *this;
  wanted.addresses = cut(addresses);
  return archived(wanted);
}

std::optional<Join> Join::decode(const Bytes& payload) {
  std::optional<Join> join = from_bytes<Join>(view(payload));
  if (join)
    join->who = printable(join->who, max_text_bytes);
  return join;
}

void serialize(Archive& archive, Hello& hello) {
  archive(hello.from, hello.to, hello.level);
}

Bytes Hello::encode() const {
  return archived(*this);
}

std::optional<Hello> Hello::decode(const Bytes& payload) {
  return from_bytes<Hello>(view(payload));
}

void serialize(Archive& archive, Neighbours& neighbours) {
  archive(neighbours.addresses);
  archive.require(neighbours.addresses.size() <= max_levels &&
                  std::all_of(neighbours.addresses.begin(), neighbours.addresses.end(), are_cut));
}

Bytes Neighbours::encode() const {
  Neighbours wanted;
  for (const std::vector<std::string>& of_one : addresses)
    wanted.addresses.push_back(cut(of_one));
  return archived(wanted);
}

std::optional<Neighbours> Neighbours::decode(const Bytes& payload) {
  return from_bytes<Neighbours>(view(payload));
}

void serialize(Archive& archive, FailureReport& report) {
  auto code = static_cast<std::uint8_t>(report.code);
  archive(code, report.reporter);
  archive.text(report.text, max_text_bytes);
  archive.text(report.fix, max_text_bytes);
  if (archive.reading())
    report.code = exit_code(code);
}

Bytes FailureReport::encode() const {
  return archived(*this);
}

std::optional<FailureReport> FailureReport::decode(const Bytes& payload) {
  std::optional<FailureReport> report = from_bytes<FailureReport>(view(payload));
  if (report) {
    report->text = printable(report->text, max_text_bytes);
    report->fix = printable(report->fix, max_text_bytes);
  }
  return report;
}

} // namespace shmemctl
