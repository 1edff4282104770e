// The environment variables that the specification defines.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "src/base/options.h"

namespace shmemctl::api {

/// Parses SHMEM_SYMMETRIC_SIZE: a non-negative number, with or without a fraction, and optionally a
/// suffix k, m, g or t for powers of 1024; text after the suffix is ignored. Returns bytes, rounded
/// up; nothing if the text is malformed or the size is 2^62 or more.
std::optional<std::uint64_t> parse_symmetric_size(const std::string& text);

/// Translates the specification's variables (SHMEM_*, else the deprecated SMA_*) to our options.
/// SHMEMCTL_* takes precedence over them, and they over NVSHMEM_*. Throws Error (usage) for an
/// invalid size.
std::map<std::string, std::string> specified_options(const Environment& environment);

/// True if SHMEM_<name> or SMA_<name> is set.
bool asked_for(const Environment& environment, const std::string& name);

/// The text that is printed if SHMEM_INFO is set.
std::string info_text();

} // namespace shmemctl::api
