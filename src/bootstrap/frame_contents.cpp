// Payloads as bytes: fixed-width integers, little-endian; texts with a length of 16 bits before.
#include "src/bootstrap/frame.h"

#include <algorithm>
#include <cstring>

namespace shmemctl {

namespace {

constexpr std::size_t max_text_bytes = 600, max_levels = 32;

class Writer {
public:
  void integer(std::uint64_t value, std::size_t size_bytes) {
    for (std::size_t i = 0; i < size_bytes; ++i)
      bytes_.push_back(static_cast<std::byte>(value >> (8 * i)));
  }
  void secret(const Secret& secret) {
    for (const std::uint8_t byte : secret)
      bytes_.push_back(static_cast<std::byte>(byte));
  }
  void text(const std::string& text) {
    const std::size_t length = std::min(text.size(), max_text_bytes);
    integer(length, 2);
    for (std::size_t i = 0; i < length; ++i)
      bytes_.push_back(static_cast<std::byte>(text[i]));
  }
  void texts(const std::vector<std::string>& texts) {
    const std::size_t count = std::min(texts.size(), Join::max_addresses);
    integer(count, 1);
    for (std::size_t i = 0; i < count; ++i)
      text(texts[i]);
  }
  Bytes take() { return std::move(bytes_); }

private:
  Bytes bytes_;
};

/// Reading beyond the end gives zeros and is remembered.
class Reader {
public:
  explicit Reader(const Bytes& bytes) : bytes_(bytes) {}

  template <class T>
  T integer() {
    std::uint64_t value = 0;
    if (enough(sizeof(T)))
      for (std::size_t i = 0; i < sizeof(T); ++i)
        value |= std::to_integer<std::uint64_t>(bytes_[at_ + i]) << (8 * i);
    at_ += sizeof(T);
    return static_cast<T>(value);
  }
  Secret secret() {
    Secret secret{};
    for (std::uint8_t& byte : secret)
      byte = integer<std::uint8_t>();
    return secret;
  }
  std::string text() {
    const auto length = integer<std::uint16_t>();
    if (length > max_text_bytes)
      good_ = false;
    if (!good_ || !enough(length))
      return {};
    std::string text(reinterpret_cast<const char*>(bytes_.data()) + at_, length);
    at_ += length;
    return text;
  }
  std::vector<std::string> texts() {
    const auto count = integer<std::uint8_t>();
    if (count > Join::max_addresses)
      good_ = false;
    std::vector<std::string> texts;
    for (std::size_t i = 0; good_ && i < count; ++i)
      texts.push_back(text());
    return texts;
  }
  void refuse() { good_ = false; }
  bool good() const { return good_; }
  /// Everything was there and nothing is left over.
  bool done() const { return good_ && at_ == bytes_.size(); }

private:
  bool enough(std::size_t size_bytes) {
    good_ = good_ && at_ <= bytes_.size() && bytes_.size() - at_ >= size_bytes;
    return good_;
  }

  const Bytes& bytes_;
  std::size_t at_ = 0;
  bool good_ = true;
};

ExitCode exit_code(std::uint8_t value) {
  for (const ExitCode code :
       {ExitCode::finding, ExitCode::usage, ExitCode::deadline, ExitCode::interrupted})
    if (value == static_cast<std::uint8_t>(code))
      return code;
  return ExitCode::unavailable;
}

} // namespace

Bytes Join::encode() const {
  Writer writer;
  writer.secret(secret);
  writer.integer(static_cast<std::uint32_t>(rank), 4);
  writer.integer(static_cast<std::uint32_t>(size), 4);
  writer.integer(nonce, 8);
  writer.integer(remaining_ms, 4);
  writer.text(who);
  writer.texts(addresses);
  return writer.take();
}

std::optional<Join> Join::decode(const Bytes& payload) {
  Reader reader(payload);
  Join join;
  join.secret = reader.secret();
  join.rank = reader.integer<std::int32_t>();
  join.size = reader.integer<std::int32_t>();
  join.nonce = reader.integer<std::uint64_t>();
  join.remaining_ms = reader.integer<std::uint32_t>();
  join.who = printable(reader.text(), max_text_bytes);
  join.addresses = reader.texts();
  return reader.done() ? std::optional<Join>(std::move(join)) : std::nullopt;
}

Bytes Hello::encode() const {
  Writer writer;
  writer.secret(secret);
  writer.integer(static_cast<std::uint32_t>(from), 4);
  writer.integer(static_cast<std::uint32_t>(to), 4);
  writer.integer(level, 4);
  return writer.take();
}

std::optional<Hello> Hello::decode(const Bytes& payload) {
  Reader reader(payload);
  Hello hello;
  hello.secret = reader.secret();
  hello.from = reader.integer<std::int32_t>();
  hello.to = reader.integer<std::int32_t>();
  hello.level = reader.integer<std::uint32_t>();
  return reader.done() ? std::optional<Hello>(hello) : std::nullopt;
}

Bytes Neighbours::encode() const {
  Writer writer;
  writer.integer(addresses.size(), 1);
  for (const std::vector<std::string>& of_one : addresses)
    writer.texts(of_one);
  return writer.take();
}

std::optional<Neighbours> Neighbours::decode(const Bytes& payload) {
  Reader reader(payload);
  Neighbours neighbours;
  const auto count = reader.integer<std::uint8_t>();
  if (count > max_levels)
    reader.refuse();
  for (std::size_t i = 0; reader.good() && i < count; ++i)
    neighbours.addresses.push_back(reader.texts());
  return reader.done() ? std::optional<Neighbours>(std::move(neighbours)) : std::nullopt;
}

Bytes FailureReport::encode() const {
  Writer writer;
  writer.integer(static_cast<std::uint8_t>(code), 1);
  writer.integer(static_cast<std::uint32_t>(reporter), 4);
  writer.text(text);
  writer.text(fix);
  return writer.take();
}

std::optional<FailureReport> FailureReport::decode(const Bytes& payload) {
  Reader reader(payload);
  FailureReport report;
  report.code = exit_code(reader.integer<std::uint8_t>());
  report.reporter = reader.integer<std::int32_t>();
  report.text = printable(reader.text(), max_text_bytes);
  report.fix = printable(reader.text(), max_text_bytes);
  return reader.done() ? std::optional<FailureReport>(std::move(report)) : std::nullopt;
}

} // namespace shmemctl
