#include "src/base/error.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iostream>
#include <vector>

#include "src/base/text.h"

namespace shmemctl {

namespace {

/// "host node7, PE 3, device mlx5_1, port 2": the known parts of the location.
std::string text_of(const Where& where) {
  std::vector<std::string> parts;
  if (!where.host.empty())
    parts.push_back("host " + where.host);
  if (where.pe)
    parts.push_back("PE " + std::to_string(*where.pe));
  if (!where.device.empty())
    parts.push_back("device " + where.device);
  if (where.port)
    parts.push_back("port " + std::to_string(*where.port));
  return join(parts, ", ");
}

std::string compose(const std::string& subject, const std::string& action, const std::string& cause,
                    const Where& where) {
  std::string line = subject;
  if (const std::string location = text_of(where); !location.empty())
    line += (line.empty() ? "(" : " (") + location + ")";
  if (!action.empty())
    line += (line.empty() ? "cannot " : ": cannot ") + action;
  if (!cause.empty())
    line += (line.empty() ? "" : ": ") + cause;
  return printable(line, 1000);
}

} // namespace

Error::Error(ExitCode code, std::string subject, std::string attempted, std::string system_message,
             const std::string& fix, Where where)
    : code_(code), subject_(std::move(subject)), attempted_(std::move(attempted)),
      system_message_(std::move(system_message)), fix_(printable(fix, 1000)),
      where_(std::move(where)), message_(compose(subject_, attempted_, system_message_, where_)) {}

Error Error::with_subject(std::string subject) const {
  Error error = *this;
  error.subject_ = std::move(subject);
  error.message_ = compose(error.subject_, attempted_, system_message_, where_);
  return error;
}

Error Error::with_fix(const std::string& fix) const {
  Error error = *this;
  error.fix_ = printable(fix, 1000);
  return error;
}

Error Error::with_action(std::string action) const {
  Error error = *this;
  error.attempted_ = std::move(action);
  error.message_ = compose(subject_, error.attempted_, system_message_, where_);
  return error;
}

Error Error::with_where(Where where) const {
  Error error = *this;
  error.where_ = std::move(where);
  error.message_ = compose(subject_, attempted_, system_message_, error.where_);
  return error;
}

Error Error::located(const std::string& host, std::optional<int> pe) const {
  Where where = where_;
  if (where.host.empty())
    where.host = host;
  if (!where.pe)
    where.pe = pe;
  return with_where(std::move(where));
}

bool same_failure(const Error& left, const Error& right) {
  return left.code() == right.code() && left.subject() == right.subject() &&
         left.attempted() == right.attempted() && left.system_message() == right.system_message() &&
         left.where().device == right.where().device && left.where().port == right.where().port;
}

Error input_error(std::string subject, const std::string& position, const std::string& problem,
                  const std::string& fix) {
  return Error(ExitCode::usage, std::move(subject), "",
               position.empty() ? problem : position + ": " + problem, fix);
}

Error system_error(std::string subject, std::string attempted, int error_number,
                   const std::string& fix) {
  return Error(ExitCode::unavailable, std::move(subject), std::move(attempted),
               std::strerror(error_number), fix);
}

std::string printable(const std::string& text, std::size_t max_bytes) {
  static const char* const digits = "0123456789abcdef";
  std::string out;
  std::size_t at = 0;
  while (at < text.size() && out.size() < max_bytes) {
    const std::size_t length = utf8_sequence_length(text, at);
    const std::size_t next = at + std::max<std::size_t>(length, 1);
    if (length > 0 && !is_hostile(utf8_character(text, at, length)))
      out.append(text, at, length);
    else
      for (std::size_t i = at; i < next; ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
      }
    at = next;
  }
  if (at < text.size())
    out += "...";
  return out;
}

void print_error(const Error& error) {
  if (error.printed())
    return;
  std::string text = "shmemctl: error: " + error.message() + '\n';
  if (!error.fix().empty())
    text += "shmemctl: fix: " + error.fix() + '\n';
  std::cerr << text << std::flush;
}

} // namespace shmemctl
