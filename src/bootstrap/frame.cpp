#include "src/bootstrap/frame.h"

#include <algorithm>
#include <cstring>

#include "src/base/wire_bytes.h"

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
          kind <= static_cast<std::uint8_t>(FrameKind::broadcast));
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

// Payloads as bytes: fixed-width integers, little-endian; texts with a length of 16 bits before.

namespace {

constexpr std::size_t max_text_bytes = 600, max_levels = 32;

void write_texts(WireWriter& writer, const std::vector<std::string>& texts) {
  const std::size_t count = std::min(texts.size(), Join::max_addresses);
  writer.number(static_cast<std::uint8_t>(count));
  for (std::size_t i = 0; i < count; ++i)
    writer.text(texts[i], max_text_bytes);
}

std::vector<std::string> read_texts(WireReader& reader) {
  std::vector<std::string> texts(reader.count<std::uint8_t>(Join::max_addresses));
  for (std::string& text : texts)
    text = reader.text(max_text_bytes);
  return texts;
}

Bytes take_bytes(WireWriter& writer) {
  const std::string text = writer.take();
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

WireReader reader_of(const Bytes& bytes) {
  return WireReader(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

ExitCode exit_code(std::uint8_t value) {
  for (const ExitCode code :
       {ExitCode::finding, ExitCode::usage, ExitCode::deadline, ExitCode::interrupted})
    if (value == static_cast<std::uint8_t>(code))
      return code;
  return ExitCode::unavailable;
}

std::string_view view(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

} // namespace

Bytes encode_nonce(const Nonce& nonce) {
  WireWriter writer;
  writer.array(nonce);
  return take_bytes(writer);
}

std::optional<Nonce> decode_nonce(const Bytes& payload) {
  WireReader reader = reader_of(payload);
  const Nonce nonce = reader.array<sizeof(Nonce)>();
  return reader.if_complete(nonce);
}

Bytes encode_proven(const Proof& proof, const Bytes& contents) {
  Bytes payload = encode_nonce(proof); // 16 bytes as they are
  payload.insert(payload.end(), contents.begin(), contents.end());
  return payload;
}

std::optional<Proven> decode_proven(const Bytes& payload) {
  WireReader reader = reader_of(payload);
  Proven proven;
  proven.proof = reader.array<sizeof(Proof)>();
  if (!reader.good())
    return std::nullopt;
  proven.contents.assign(payload.begin() + sizeof(Proof), payload.end());
  return proven;
}

Proof dialer_proof(const Handshake& handshake, const Secret& secret, FrameKind kind,
                   const Bytes& contents) {
  return handshake.prove(secret, to_string(kind), view(contents));
}

Proof listener_proof(const Handshake& handshake, const Secret& secret, FrameKind kind,
                     const Bytes& contents) {
  return handshake.prove(secret, std::string("welcome ") + to_string(kind), view(contents));
}

Bytes Join::encode() const {
  WireWriter writer;
  writer.number(rank);
  writer.number(size);
  writer.number(nonce);
  writer.number(remaining_ms);
  writer.text(who, max_text_bytes);
  write_texts(writer, addresses);
  return take_bytes(writer);
}

std::optional<Join> Join::decode(const Bytes& payload) {
  WireReader reader = reader_of(payload);
  Join join;
  join.rank = reader.number<std::int32_t>();
  join.size = reader.number<std::int32_t>();
  join.nonce = reader.number<std::uint64_t>();
  join.remaining_ms = reader.number<std::uint32_t>();
  join.who = printable(reader.text(max_text_bytes), max_text_bytes);
  join.addresses = read_texts(reader);
  return reader.if_complete(std::move(join));
}

Bytes Hello::encode() const {
  WireWriter writer;
  writer.number(from);
  writer.number(to);
  writer.number(level);
  return take_bytes(writer);
}

std::optional<Hello> Hello::decode(const Bytes& payload) {
  WireReader reader = reader_of(payload);
  Hello hello;
  hello.from = reader.number<std::int32_t>();
  hello.to = reader.number<std::int32_t>();
  hello.level = reader.number<std::uint32_t>();
  return reader.if_complete(hello);
}

Bytes Neighbours::encode() const {
  WireWriter writer;
  writer.number(static_cast<std::uint8_t>(addresses.size()));
  for (const std::vector<std::string>& of_one : addresses)
    write_texts(writer, of_one);
  return take_bytes(writer);
}

std::optional<Neighbours> Neighbours::decode(const Bytes& payload) {
  WireReader reader = reader_of(payload);
  Neighbours neighbours;
  const std::size_t count = reader.count<std::uint8_t>(max_levels);
  for (std::size_t i = 0; reader.good() && i < count; ++i)
    neighbours.addresses.push_back(read_texts(reader));
  return reader.if_complete(std::move(neighbours));
}

Bytes FailureReport::encode() const {
  WireWriter writer;
  writer.number(static_cast<std::uint8_t>(code));
  writer.number(reporter);
  writer.text(text, max_text_bytes);
  writer.text(fix, max_text_bytes);
  return take_bytes(writer);
}

std::optional<FailureReport> FailureReport::decode(const Bytes& payload) {
  WireReader reader = reader_of(payload);
  FailureReport report;
  report.code = exit_code(reader.number<std::uint8_t>());
  report.reporter = reader.number<std::int32_t>();
  report.text = printable(reader.text(max_text_bytes), max_text_bytes);
  report.fix = printable(reader.text(max_text_bytes), max_text_bytes);
  return reader.if_complete(std::move(report));
}

} // namespace shmemctl
