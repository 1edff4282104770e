// Removes secrets from the command lines and variables that a report records.
#pragma once

#include <string>
#include <vector>

#include "src/base/options.h"

namespace shmemctl {

/// Replaces secrets in texts by secret_stand_in in parentheses. Secrets are
/// - the values of secret options that are set (is_secret_option()), wherever they occur, if they
///   have at least 4 bytes
/// - what follows the name of a secret (is_secret_variable()): NAME=value, --name=value and
///   --name value, where dashes in a flag stand for underscores: --api-key is API_KEY
/// - in a URL, the password before the host; with http(s) and no password, the user
/// A second call does not change filtered text.
class SecretFilter {
public:
  explicit SecretFilter(const Options& options);
  /// Filters a text that may contain such names, for example a shell script. An unquoted value ends
  /// at white space, a quote, `;`, `&` or `|`.
  std::string operator()(std::string text) const;
  /// Filters the words of a command line: a word is one value, even if it contains blanks. Pairs of
  /// words that launchers use are recognised too: `-genv NAME value`.
  std::vector<std::string> operator()(std::vector<std::string> words) const;

private:
  std::vector<std::string> values_; ///< longest first
};

} // namespace shmemctl
