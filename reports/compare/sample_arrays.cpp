#include "reports/compare/sample_arrays.h"

#include <charconv>
#include <cmath>
#include <string_view>

namespace shmemctl {

namespace {

constexpr double largest = 1e18; ///< as the schema bounds samples
constexpr std::size_t nowhere = std::string::npos;

bool is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Walks over a text; at its end it reads zeros.
class Cursor {
public:
  Cursor(std::string_view text, std::size_t at) : text_(text), at_(at) {}

  std::size_t at() const { return at_; }
  char now() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void step() { ++at_; }
  void skip_blanks() {
    while (is_blank(now()))
      ++at_;
  }
  bool take(char wanted) {
    if (now() != wanted)
      return false;
    ++at_;
    return true;
  }
  /// One digit or more.
  bool take_digits() {
    const std::size_t begin = at_;
    while (is_digit(now()))
      ++at_;
    return at_ > begin;
  }
  /// A number by JSON's grammar.
  std::optional<double> take_number() {
    const std::size_t begin = at_;
    const bool negative = take('-');
    if (!take('0') && !take_digits())
      return std::nullopt;
    const bool whole = now() != '.' && now() != 'e' && now() != 'E';
    if (take('.') && !take_digits())
      return std::nullopt;
    if (take('e') || take('E')) {
      if (!take('+'))
        take('-');
      if (!take_digits())
        return std::nullopt;
    }
    double value = 0;
    const char* const end = text_.data() + at_;
    const auto [stopped, error] = std::from_chars(text_.data() + begin, end, value);
    if (error != std::errc() || stopped != end || !(std::abs(value) <= largest))
      return std::nullopt;
    return negative && whole && value == 0 ? 0.0 : value; // the whole number -0 has no sign
  }
  /// The end of the string whose opening quote is here, at its closing quote; nowhere if it has
  /// none.
  std::size_t end_of_string() const {
    for (std::size_t i = at_ + 1; i < text_.size(); ++i) {
      if (text_[i] == '\\')
        ++i;
      else if (text_[i] == '"')
        return i;
    }
    return nowhere;
  }

private:
  std::string_view text_;
  std::size_t at_;
};

/// The list that begins at the cursor, which is then behind it; nothing if it is another one.
std::optional<std::vector<double>> numbers_at(Cursor& cursor) {
  std::vector<double> numbers;
  if (!cursor.take('['))
    return std::nullopt;
  cursor.skip_blanks();
  if (cursor.take(']'))
    return numbers;
  for (;;) {
    cursor.skip_blanks();
    const std::optional<double> number = cursor.take_number();
    if (!number)
      return std::nullopt;
    numbers.push_back(*number);
    cursor.skip_blanks();
    if (cursor.take(']'))
      return numbers;
    if (!cursor.take(','))
      return std::nullopt;
  }
}

/// Follows the brackets down to /results/N/samples.
class Scanner {
public:
  explicit Scanner(const std::string& text) : text_(text), cursor_(text, 0) {}

  std::optional<TakenSamples> scan() {
    while (cursor_.at() < text_.size()) {
      const char c = cursor_.now();
      if (c == '"') {
        if (!pass_string())
          return std::nullopt;
        continue;
      }
      if (c == '{' || c == '[')
        open(c);
      else if (c == '}' || c == ']')
        close();
      cursor_.step();
    }
    if (copied_ == 0)
      return std::nullopt;
    taken_.text.append(text_, copied_);
    return std::move(taken_);
  }

private:
  static constexpr int of_document = 1, of_row = 3; ///< depth of their keys

  void open(char c) {
    ++depth_;
    if (depth_ != of_row || !in_results_ || c != '{')
      return;
    ++rows_;
    row_has_samples_ = false;
  }
  void close() {
    if (--depth_ == of_document)
      in_results_ = false;
  }

  /// False if it is not plain which value a key gives.
  bool pass_string() {
    const std::size_t begin = cursor_.at() + 1, end = cursor_.end_of_string();
    if (end == nowhere)
      return false;
    cursor_ = Cursor(text_, end + 1);
    const bool of_interest = depth_ == of_document || (depth_ == of_row && in_results_);
    if (!of_interest)
      return true;
    Cursor behind = cursor_;
    behind.skip_blanks();
    if (!behind.take(':'))
      return true;
    behind.skip_blanks();
    return pass_key(std::string_view(text_).substr(begin, end - begin), behind);
  }

  bool pass_key(std::string_view key, Cursor value) {
    if (key.find('\\') != std::string_view::npos)
      return false;
    if (depth_ == of_document && key == "results") {
      if (had_results_)
        return false;
      had_results_ = true;
      in_results_ = value.now() == '[';
      return true;
    }
    if (depth_ != of_row || key != "samples")
      return true;
    if (row_has_samples_)
      return false;
    row_has_samples_ = true;
    const std::size_t begin = value.at();
    if (std::optional<std::vector<double>> numbers = numbers_at(value)) {
      taken_.text.append(text_, copied_, begin - copied_).append("[]");
      copied_ = value.at();
      cursor_ = value;
      taken_.samples.resize(rows_);
      taken_.samples.back() = std::move(*numbers);
    }
    return true;
  }

  const std::string& text_;
  Cursor cursor_;
  TakenSamples taken_;
  std::size_t copied_ = 0; ///< so much of the text is in taken_.text
  std::size_t rows_ = 0;
  int depth_ = 0;
  bool in_results_ = false, had_results_ = false, row_has_samples_ = false;
};

} // namespace

std::optional<TakenSamples> take_samples(const std::string& text) {
  return Scanner(text).scan();
}

} // namespace shmemctl
