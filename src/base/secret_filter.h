// Removes secrets from what a report records of command lines and variables.
#pragma once

#include <string>
#include <vector>

#include "src/base/options.h"

namespace shmemctl {

/// Replaces secrets in texts by secret_stand_in in parentheses. Secrets are
/// - the values of secret options that are set (is_secret_option()), wherever they occur
/// - what follows the name of a secret (is_secret_variable()): NAME=value, --name=value and
///   --name value, where dashes in a flag stand for underscores: --api-key is API_KEY
/// - in a URL, the password before the host, and the user of http where there is no password
/// What has been filtered is not changed by a second call.
class SecretFilter {
public:
  explicit SecretFilter(const Options& options);
  /// A text that may hold such names, such as a shell's script. An unquoted value ends at a blank.
  std::string operator()(std::string text) const;
  /// The words of a command line: a word is one value, even if it has blanks. Launchers' pairs of
  /// words are known too: `-genv NAME value`.
  std::vector<std::string> operator()(std::vector<std::string> words) const;

private:
  std::vector<std::string> values_; ///< longest first
};

} // namespace shmemctl
