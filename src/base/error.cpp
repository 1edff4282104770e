#include "src/base/error.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "src/base/hostile_characters.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

/// Whether the subject is what the step is done to: of "read", "connect to", "wait for PE 3 in" it
/// is; "choose its sizes" and "find mlx5_33" have an object of their own.
bool takes_subject(const std::string& attempted) {
  static constexpr std::array<std::string_view, 22> prepositions = {
      "about", "after",   "as",   "at",   "before", "behind", "beside", "between",
      "by",    "for",     "from", "in",   "into",   "next",   "of",     "off",
      "on",    "through", "to",   "with", "than",   "without"};
  const std::size_t space = attempted.rfind(' ');
  if (space == std::string::npos)
    return true;
  const std::string_view last = std::string_view(attempted).substr(space + 1);
  const bool verb = last.size() > 4 && last.substr(last.size() - 3) == "ing"; // "finish reading"
  return verb || std::find(prepositions.begin(), prepositions.end(), last) != prepositions.end();
}

std::string compose(const std::string& subject, const std::string& attempted,
                    const std::string& system_message, const Where& where) {
  const bool together = takes_subject(attempted) || subject.empty();
  std::string line =
      together ? "cannot " + attempted + (subject.empty() ? "" : " " + subject) : subject;
  std::string place;
  auto add = [&place](const std::string& part) { place += (place.empty() ? "" : ", ") + part; };
  if (!where.host.empty())
    add("host " + where.host);
  if (where.pe)
    add("PE " + std::to_string(*where.pe));
  if (!where.device.empty())
    add("device " + where.device);
  if (where.port)
    add("port " + std::to_string(*where.port));
  if (!place.empty())
    line += " (" + place + ")";
  if (!together)
    line += ": cannot " + attempted;
  if (!system_message.empty())
    line += ": " + system_message;
  return printable(line, 1000);
}

} // namespace

Error::Error(ExitCode code, std::string subject, std::string attempted, std::string system_message,
             const std::string& fix, Where where)
    : code_(code), subject_(std::move(subject)), attempted_(std::move(attempted)),
      system_message_(std::move(system_message)), fix_(printable(fix, 1000)),
      where_(std::move(where)), message_(compose(subject_, attempted_, system_message_, where_)) {}

Error input_error(std::string subject, const std::string& position, const std::string& problem,
                  const std::string& fix) {
  return Error(ExitCode::usage, std::move(subject), "read",
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

} // namespace shmemctl
