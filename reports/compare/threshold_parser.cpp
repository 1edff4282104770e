// Reads thresholds; every refusal names the place and what was expected there.
#include <algorithm>
#include <array>

#include "reports/compare/threshold_metric.h"
#include "reports/compare/thresholds.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr std::size_t longest_expression = 4096;

class Parser {
public:
  Parser(const std::string& text, std::string source, std::size_t line)
      : text_(text), source_(std::move(source)), line_(line) {}

  Threshold parse() {
    if (text_.size() > longest_expression)
      fail(longest_expression, "an end: no threshold is that long");
    Threshold threshold;
    threshold.expression = std::string(trim(text_));
    threshold.source = line_ == 0 ? source_ : source_ + ", line " + std::to_string(line_);
    skip_blanks();
    const std::size_t bracket = text_.find_first_of("[<>=", at_);
    if (bracket != std::string::npos && text_[bracket] == '[') {
      threshold.case_pattern = word_until(bracket, "the name of a case, such as put");
      ++at_;
      read_conditions(threshold);
      expect('.', "a . and a metric, such as .bandwidth_GBps");
    } else {
      const std::size_t end = std::min(bracket, text_.size());
      const std::size_t dot = text_.rfind('.', end == 0 ? 0 : end - 1);
      if (dot == std::string::npos || dot < at_)
        fail(end, "CASE.METRIC, such as put.bandwidth_GBps");
      threshold.case_pattern = word_until(dot, "the name of a case, such as put");
      ++at_;
    }
    read_metric(threshold);
    read_limit(threshold);
    return threshold;
  }

private:
  [[noreturn]] void fail(std::size_t at, const std::string& expected) const {
    const std::string place = (line_ == 0 ? "" : "line " + std::to_string(line_) + ", ") +
                              "column " + std::to_string(at + 1);
    const std::string found =
        at >= text_.size() ? "its end" : "\"" + printable(text_.substr(at, 20)) + "\"";
    throw input_error(source_, place, "expected " + expected + ", found " + found,
                      "write it as put[bytes=1M].bandwidth_GBps>=300");
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t'))
      ++at_;
  }

  bool take(char wanted) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != wanted)
      return false;
    ++at_;
    return true;
  }

  void expect(char wanted, const std::string& words) {
    if (!take(wanted))
      fail(at_, words);
  }

  /// What stands from here to `end`, without blanks around it; not empty.
  std::string word_until(std::size_t end, const std::string& expected) {
    std::string word(trim(std::string_view(text_).substr(at_, end - at_)));
    if (word.empty())
      fail(at_, expected);
    at_ = end;
    return word;
  }

  std::size_t find(const char* any) const {
    return std::min(text_.find_first_of(any, at_), text_.size());
  }

  std::string read_value() {
    skip_blanks();
    if (!take('"'))
      return word_until(find(",]"), "a value, such as 1M");
    const std::size_t end = text_.find('"', at_);
    if (end == std::string::npos)
      fail(text_.size(), "a \" after the value");
    std::string value = text_.substr(at_, end - at_);
    at_ = end + 1;
    return value;
  }

  void read_conditions(Threshold& threshold) {
    if (take(']'))
      return;
    do {
      skip_blanks();
      const std::size_t end = find("=,]");
      std::string name = word_until(end, "a parameter, such as bytes=1M");
      expect('=', "= and a value");
      threshold.conditions.emplace_back(std::move(name), read_value());
    } while (take(','));
    expect(']', "a , or a ]");
  }

  void read_metric(Threshold& threshold) {
    skip_blanks();
    const std::size_t begin = at_;
    threshold.metric = word_until(find("<>="), "a metric, such as bandwidth_GBps");
    if (is_metric(threshold.metric))
      return;
    const auto near = nearest_spelling(threshold.metric, metric_names());
    fail(begin, "a metric" + (near ? " (did you mean " + *near + "?)"
                                   : ": one of " + join(metric_names(), ", ")));
  }

  void read_limit(Threshold& threshold) {
    using Operator = Threshold::Operator;
    skip_blanks();
    const std::size_t begin = at_;
    const bool more = take('>'), less = !more && take('<');
    const bool equal = (more || less) && at_ < text_.size() && text_[at_] == '=';
    if (!more && !less)
      fail(begin, ">=, <=, > or <");
    at_ += equal ? 1 : 0;
    threshold.comparison = more ? (equal ? Operator::at_least : Operator::above)
                                : (equal ? Operator::at_most : Operator::below);
    skip_blanks();
    const std::optional<double> limit = parse_number(trim(std::string_view(text_).substr(at_)));
    if (!limit)
      fail(at_, "a number");
    threshold.limit = *limit;
  }

  const std::string& text_;
  std::string source_;
  std::size_t line_;
  std::size_t at_ = 0;
};

} // namespace

Threshold parse_threshold(const std::string& text, const std::string& source, std::size_t line) {
  return Parser(text, source, line).parse();
}

std::vector<Threshold> parse_threshold_file(const std::string& text, const std::string& path) {
  std::vector<Threshold> thresholds;
  std::size_t number = 0;
  for (std::string line : split(text, '\n')) {
    ++number;
    if (const std::size_t hash = line.find('#'); hash != std::string::npos)
      line.resize(hash);
    if (!line.empty() && line.back() == '\r')
      line.pop_back();
    if (!trim(line).empty())
      thresholds.push_back(parse_threshold(line, path, number));
  }
  if (thresholds.empty())
    throw input_error(path, "", "the file has no threshold",
                      "write one per line, such as put[bytes=1M].bandwidth_GBps>=300");
  return thresholds;
}

} // namespace shmemctl
