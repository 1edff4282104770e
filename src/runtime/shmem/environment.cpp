#include "src/runtime/shmem/environment.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "src/base/error.h"

namespace shmemctl::api {

namespace {

constexpr std::uint64_t smallest_heap_bytes = 4096;

/// The exponent of two of a suffix; 0 for the end of the text; nothing for another letter.
std::optional<int> scale(char suffix) {
  switch (suffix) {
  case '\0':
    return 0;
  case 'k':
  case 'K':
    return 10;
  case 'm':
  case 'M':
    return 20;
  case 'g':
  case 'G':
    return 30;
  case 't':
  case 'T':
    return 40;
  default:
    return std::nullopt;
  }
}

const std::string* find(const Environment& environment, const std::string& name) {
  for (const char* prefix : {"SHMEM_", "SMA_"})
    if (const auto found = environment.find(prefix + name); found != environment.end())
      return &found->second;
  return nullptr;
}

} // namespace

std::optional<std::uint64_t> parse_symmetric_size(const std::string& text) {
  // from_chars() would accept "inf" and "nan", too.
  if (text.empty() || (text[0] != '.' && (text[0] < '0' || text[0] > '9')))
    return std::nullopt;
  long double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{})
    return std::nullopt;
  const auto power = scale(end == text.data() + text.size() ? '\0' : *end);
  if (!power || (*power == 0 && end != text.data() + text.size()))
    return std::nullopt;
  const long double bytes = std::ceil(std::ldexp(number, *power));
  if (!(bytes < 0x1p62L))
    return std::nullopt;
  return static_cast<std::uint64_t>(bytes);
}

bool asked_for(const Environment& environment, const std::string& name) {
  return find(environment, name) != nullptr;
}

std::map<std::string, std::string> specified_options(const Environment& environment) {
  std::map<std::string, std::string> options;
  const std::string* size = find(environment, "SYMMETRIC_SIZE");
  if (size && !size->empty() && !environment.contains("SHMEMCTL_SYMMETRIC_SIZE")) {
    const auto bytes = parse_symmetric_size(*size);
    if (!bytes)
      throw Error(
          ExitCode::usage, "SHMEM_SYMMETRIC_SIZE", "", "'" + printable(*size) + "' is not a size",
          "write a number of bytes, or one with the suffix k, m, g or t for powers of 1024");
    // The heap may be larger than requested, and our heaps cannot be empty.
    options["SYMMETRIC_SIZE"] =
        std::to_string(std::max<std::uint64_t>(*bytes, smallest_heap_bytes));
  }
  if (asked_for(environment, "DEBUG") && !environment.contains("SHMEMCTL_LOG_LEVEL"))
    options["LOG_LEVEL"] = "debug";
  return options;
}

std::string info_text() {
  return "SHMEM_SYMMETRIC_SIZE  size of each PE's symmetric heap: a number, or one with k, m, g "
         "or t (default: 1g)\n"
         "SHMEM_VERSION         set: print the library's version at start-up\n"
         "SHMEM_INFO            set: print this text at start-up\n"
         "SHMEM_DEBUG           set: print debugging messages\n"
         "SHMEMCTL_<NAME>       every option that `shmemctl env` lists\n";
}

} // namespace shmemctl::api
