// Removes secrets from the command lines and variables that a report records.
#include "src/base/secret_filter.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string_view>
#include <utility>

#include "src/base/text.h"

namespace shmemctl {

namespace {

/// Shorter values are not replaced, because they occur in ordinary text.
constexpr std::size_t min_value_bytes = 4;
/// A longer word with a leading dash may be a secret: many are base64 with '-' in the alphabet.
constexpr std::size_t max_flag_bytes = 8;

std::string stand_in() {
  return std::string("(") + secret_stand_in + ")";
}

bool is_upper(char c) {
  return std::isupper(static_cast<unsigned char>(c)) != 0;
}

bool is_name_character(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

bool separates_words(char c) {
  return c == ' ' || c == '\t' || c == '\n';
}

bool is_quote(char c) {
  return c == '"' || c == '\'';
}

bool ends_value(char c) {
  return separates_words(c) || is_quote(c) || c == ';' || c == '&' || c == '|';
}

/// The name of the variable that corresponds to a flag: "--api-key", "--apiKey" -> "API_KEY".
std::string as_variable(std::string_view flag) {
  flag.remove_prefix(std::min(flag.find_first_not_of('-'), flag.size()));
  std::string name;
  for (const char c : flag) {
    if (is_upper(c) && !name.empty() && name.back() != '_' && !is_upper(name.back()))
      name += '_';
    name += c == '-' || c == '.' ? '_' : c;
  }
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

/// Whether a variable or flag of that name holds a secret.
bool names_secret(std::string_view name) {
  if (name.empty())
    return false;
  // "-xA_TOKEN": a variable behind the prefix of a launcher's option.
  if (is_secret_variable(name.substr(name.find_last_of("-.") + 1)))
    return true;
  if (name.find_first_of("-.") == std::string_view::npos)
    return false;
  const std::string variable = as_variable(name);
  const bool is_flag = name.front() == '-';
  return is_secret_variable(variable) || is_secret_variable("SHMEMCTL_" + variable) ||
         (is_flag && is_secret_variable("_" + variable)); // --key
}

/// Whether the word is a flag like "--token", which a secret value follows.
bool is_secret_flag(std::string_view word) {
  return word.size() > 1 && word.front() == '-' && !starts_with(word, "--no-") &&
         std::all_of(word.begin(), word.end(), is_name_character) && names_secret(word);
}

/// Whether the word may be the value of the preceding flag and is not the next flag.
bool may_be_value(std::string_view word) {
  return !word.empty() && !starts_with(word, "--") &&
         (word.front() != '-' || word.size() > max_flag_bytes);
}

/// The end of the value that begins at this position.
std::size_t end_of_value(const std::string& text, std::size_t begin) {
  while (begin < text.size() && !ends_value(text[begin]))
    ++begin;
  return begin;
}

/// A value in a text: [begin, end).
using Range = std::pair<std::size_t, std::size_t>;

/// The value that begins at `begin`, without the quotes around it if there are any.
Range value_at(const std::string& text, std::size_t begin) {
  if (begin < text.size() && is_quote(text[begin]))
    return {begin + 1, std::min(text.find(text[begin], begin + 1), text.size())};
  return {begin, end_of_value(text, begin)};
}

/// Replaces the value, and returns the position after it.
std::size_t hide(std::string& text, const Range& value) {
  const auto& [begin, end] = value;
  const std::string instead = stand_in();
  if (text.compare(begin, instead.size(), instead) == 0)
    return begin + instead.size();
  if (begin >= end)
    return end;
  text.replace(begin, end - begin, instead);
  return begin + instead.size();
}

/// "A_SECRET=x y" -> "A_SECRET=(set, not shown) y", "--api-key=x" -> "--api-key=(set, not shown)"
void hide_assignments(std::string& text) {
  std::size_t done = 0;
  for (std::size_t sign = text.find('='); sign != std::string::npos;
       sign = text.find('=', std::max(sign + 1, done))) {
    std::size_t name = sign;
    while (name > done && is_name_character(text[name - 1]))
      --name;
    if (!names_secret(std::string_view(text).substr(name, sign - name)))
      continue;
    Range value = value_at(text, sign + 1);
    if (name > done && is_quote(text[name - 1])) // 'A_SECRET=x y'
      value = {sign + 1, std::min(text.find(text[name - 1], sign + 1), text.size())};
    done = hide(text, value);
  }
}

/// "a --token x y" -> "a --token (set, not shown) y"
void hide_flag_values(std::string& text) {
  for (std::size_t begin = text.find('-'); begin != std::string::npos;) {
    std::size_t end = begin;
    while (end < text.size() && is_name_character(text[end]))
      ++end;
    std::size_t next = end;
    while (next < text.size() && separates_words(text[next]))
      ++next;
    const bool begins_word = begin == 0 || ends_value(text[begin - 1]);
    if (begins_word && next > end &&
        is_secret_flag(std::string_view(text).substr(begin, end - begin))) {
      const Range value = value_at(text, next);
      if (may_be_value(std::string_view(text).substr(value.first, value.second - value.first)))
        end = hide(text, value);
    }
    begin = text.find('-', std::max(end, begin + 1));
  }
}

/// "https://user:x@host" -> "https://user:(set, not shown)@host"
void hide_url_passwords(std::string& text) {
  const std::string_view sign = "://";
  for (std::size_t at = text.find(sign); at != std::string::npos; at = text.find(sign, at)) {
    const std::size_t scheme_end = at;
    at += sign.size();
    const std::size_t end = std::min(text.find_first_of("/?# \t\n\"'", at), text.size());
    const std::size_t host = std::string_view(text).substr(0, end).rfind('@');
    if (host == std::string::npos || host < at)
      continue;
    const std::size_t colon = text.find(':', at);
    const std::string_view before = std::string_view(text).substr(0, scheme_end);
    if (colon < host)
      at = hide(text, {colon + 1, host});
    else if (ends_with(before, "http") || ends_with(before, "https"))
      at = hide(text, {at, host}); // a user without a password may be a token
  }
}

/// Whether the words at `index` and before it are `-genv NAME value` or the like.
bool is_value_of_pair(const std::vector<std::string>& words, std::size_t index) {
  static const std::vector<std::string> flags = {"-env",  "-genv", "-mca",
                                                 "--mca", "-gmca", "--gmca"};
  return index >= 2 && std::find(flags.begin(), flags.end(), words[index - 2]) != flags.end() &&
         names_secret(words[index - 1]);
}

/// Whether a script follows, as after `sh -c` and `bash -lc`: one word that may contain several
/// values.
bool announces_script(const std::string& word) {
  return word.size() >= 2 && word.size() <= 4 && word[0] == '-' && word[1] != '-' &&
         word.back() == 'c';
}

/// The position after the equals sign in "NAME=value" or "--name=value" of a secret; 0 if the word
/// is not of this form.
std::size_t secret_value_in(const std::string& word) {
  const std::size_t sign = word.find('=');
  return sign != std::string::npos &&
                 std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(sign),
                             is_name_character) &&
                 names_secret(std::string_view(word).substr(0, sign))
             ? sign + 1
             : 0;
}

} // namespace

SecretFilter::SecretFilter(const Options& options) {
  for (const OptionSpec& spec : option_table())
    if (is_secret_option(spec.name))
      if (std::string text = options.text(spec.name); text.size() >= min_value_bytes)
        values_.push_back(std::move(text));
  std::sort(values_.begin(), values_.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
}

std::string SecretFilter::operator()(std::string text) const {
  const std::string instead = stand_in();
  for (const std::string& value : values_)
    for (std::size_t at = text.find(value); at != std::string::npos;
         at = text.find(value, at + instead.size()))
      text.replace(at, value.size(), instead);
  hide_url_passwords(text);
  hide_assignments(text);
  hide_flag_values(text);
  return text;
}

std::vector<std::string> SecretFilter::operator()(std::vector<std::string> words) const {
  const std::vector<std::string> given = words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string& word = words[i];
    const bool follows_name = (i > 0 && is_secret_flag(given[i - 1])) || is_value_of_pair(given, i);
    const std::size_t value = secret_value_in(word);
    if (follows_name && may_be_value(word))
      word = stand_in();
    else if (value > 0 && value < word.size() && (i == 0 || !announces_script(given[i - 1])))
      word = word.substr(0, value) + stand_in();
    else
      word = (*this)(std::move(word));
  }
  return words;
}

} // namespace shmemctl
