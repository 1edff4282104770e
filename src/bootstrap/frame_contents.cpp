// Payloads as bytes: fixed-width integers, little-endian; texts with a length of 16 bits before.
#include <algorithm>

#include "src/base/wire_bytes.h"
#include "src/bootstrap/frame.h"

namespace shmemctl {

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
