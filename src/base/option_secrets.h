// Options and variables whose text must not leave the process: not in a report, a table or a log.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/options.h"

namespace shmemctl {

/// What is printed and stored instead of a secret.
inline constexpr const char* secret_stand_in = "set, not shown";

/// Whether that row of the option table is a secret or holds one; the name is without prefix.
bool is_secret_option(std::string_view name);
/// Whether an environment variable is or holds a secret: one of those options under either prefix,
/// what `run` hands to its PEs, or any name that says so itself (..._SECRET, ..._PASSWORD,
/// ..._TOKEN, ..._KEY). A ..._FILE names where a secret is, and is none.
bool is_secret_variable(std::string_view name);

/// `text`, or secret_stand_in if `variable` is a secret one and the text is not empty.
std::string shown_value(std::string_view variable, const std::string& text);

/// Removes secrets from texts that may hold them, such as command lines: the values of secret
/// options that are set, and what stands behind NAME= of a secret variable.
class SecretFilter {
public:
  explicit SecretFilter(const Options& options);
  std::string operator()(std::string text) const;
  std::vector<std::string> operator()(std::vector<std::string> texts) const;

private:
  std::vector<std::string> values_; ///< longest first
};

} // namespace shmemctl
