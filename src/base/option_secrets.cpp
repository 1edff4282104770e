#include "src/base/option_secrets.h"

#include <algorithm>

#include "src/base/text.h"

namespace shmemctl {

namespace {

/// A shorter value is part of too many innocent words to be looked for.
constexpr std::size_t least_value_bytes = 4;

bool is_name_character(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

bool ends_value(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == ';' || c == '&' || c == '|' || c == '"' ||
         c == '\'';
}

/// "A_SECRET=x y" -> "A_SECRET=(set, not shown) y"
std::string hide_assignments(const std::string& text) {
  std::string result;
  std::size_t done = 0;
  for (std::size_t sign = text.find('='); sign != std::string::npos;
       sign = text.find('=', std::max(sign + 1, done))) {
    std::size_t name = sign;
    while (name > done && is_name_character(text[name - 1]))
      --name;
    if (!is_secret_variable(std::string_view(text).substr(name, sign - name)))
      continue;
    std::size_t begin = sign + 1;
    const char quote = begin < text.size() ? text[begin] : '\0';
    std::size_t end = begin;
    if (quote == '"' || quote == '\'') {
      end = std::min(text.find(quote, ++begin), text.size());
    } else {
      while (end < text.size() && !ends_value(text[end]))
        ++end;
    }
    if (end == begin)
      continue;
    result.append(text, done, begin - done).append("(").append(secret_stand_in).append(")");
    done = end;
  }
  return result.append(text, done, std::string::npos);
}

} // namespace

bool is_secret_variable(std::string_view name) {
  for (const std::string_view prefix : {"SHMEMCTL_", "NVSHMEM_"})
    if (starts_with(name, prefix) && is_secret_option(name.substr(prefix.size())))
      return true;
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (upper == "SHMEMCTL_LOCAL_ID") // the unique id of a job of `run`
    return true;
  if (ends_with(upper, "_FILE"))
    return false;
  for (const std::string_view word : {"SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"})
    if (upper.find(word) != std::string::npos)
      return true;
  return ends_with(upper, "_TOKEN") || ends_with(upper, "_KEY");
}

std::string shown_value(std::string_view variable, const std::string& text) {
  return !text.empty() && is_secret_variable(variable) ? secret_stand_in : text;
}

SecretFilter::SecretFilter(const Options& options) {
  for (const OptionSpec& spec : option_table())
    if (is_secret_option(spec.name))
      if (std::string text = options.text(spec.name); text.size() >= least_value_bytes)
        values_.push_back(std::move(text));
  std::sort(values_.begin(), values_.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
}

std::string SecretFilter::operator()(std::string text) const {
  const std::string stand_in = std::string("(") + secret_stand_in + ")";
  for (const std::string& value : values_)
    for (std::size_t at = text.find(value); at != std::string::npos;
         at = text.find(value, at + stand_in.size()))
      text.replace(at, value.size(), stand_in);
  return hide_assignments(text);
}

std::vector<std::string> SecretFilter::operator()(std::vector<std::string> texts) const {
  for (std::string& text : texts)
    text = (*this)(std::move(text));
  return texts;
}

} // namespace shmemctl
