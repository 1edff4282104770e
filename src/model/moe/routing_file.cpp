#include "src/model/moe/routing_file.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/model/moe/shape_rules.h"

namespace shmemctl::moe {

namespace {

constexpr std::int32_t max_tokens_of_file = 1 << 20;

/// The lines that are neither empty nor comments, with their numbers.
class Lines {
public:
  Lines(std::string_view text, const std::string& subject) : rest_(text), subject_(subject) {}

  /// The next line; throws if there is none.
  std::vector<std::string> next(const char* expected) {
    while (!rest_.empty()) {
      const std::string_view line = trim(take_line(rest_));
      ++number_;
      if (!line.empty() && line.front() != '#')
        return split_blanks(line);
    }
    ++number_;
    throw bad(fmt::format("the file ends before {}", expected));
  }
  bool at_end() {
    while (!rest_.empty()) {
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      const std::string_view line = trim(rest_.substr(0, end));
      if (!line.empty() && line.front() != '#')
        return false;
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
    }
    return true;
  }
  Error bad(const std::string& problem) const {
    return input_error(
        subject_, fmt::format("line {}", number_), problem,
        "record it again with shmemctl moe --record, or see docs/explanation/moe.md");
  }
  /// The number that follows `word`, which must be at `index`.
  std::int32_t named(const std::vector<std::string>& words, std::size_t index,
                     const std::string& word, std::int32_t least, std::int32_t most) const {
    if (words.size() < index + 2 || words[index] != word)
      throw bad("expected \"" + word + " NUMBER\"");
    return number(words[index + 1], word, least, most);
  }
  std::int32_t number(const std::string& text, const std::string& what, std::int32_t least,
                      std::int32_t most) const {
    const std::optional<long long> value = parse_integer(text);
    if (!value || *value < least || *value > most)
      throw bad(
          fmt::format("{} is {}, and must be from {} to {}", what, printable(text), least, most));
    return static_cast<std::int32_t>(*value);
  }

private:
  std::string_view rest_;
  const std::string& subject_;
  int number_ = 0;
};

Shape shape_line(Lines& lines) {
  const std::vector<std::string> words = lines.next("the line \"ranks N experts N topk N\"");
  Shape shape;
  shape.n_ranks = lines.named(words, 0, "ranks", 1, max_ranks);
  shape.n_experts = lines.named(words, 2, "experts", 1, 1 << 16);
  shape.top_k = lines.named(words, 4, "topk", 1, max_top_k);
  if (words.size() != 6)
    throw lines.bad("unexpected text after ranks, experts and topk");
  if (const auto broken = broken_rule(shape, Format::bf16))
    throw lines.bad(fmt::format("{} {} (it is {}; nearest legal value: {})", broken->what,
                                broken->rule, broken->found, broken->nearest));
  return shape;
}

RankRouting rank_part(Lines& lines, const Shape& shape, std::int32_t rank) {
  const std::vector<std::string> head = lines.next("the line of the next rank");
  if (lines.named(head, 0, "rank", 0, shape.n_ranks - 1) != rank)
    throw lines.bad(fmt::format("expected rank {}", rank));
  const std::int32_t tokens = lines.named(head, 2, "tokens", 0, max_tokens_of_file);
  if (head.size() != 4)
    throw lines.bad("unexpected text after rank and tokens");
  RankRouting part{shape.top_k, {}};
  for (std::int32_t token = 0; token < tokens; ++token) {
    const std::vector<std::string> words = lines.next("the next token's choices");
    if (words.size() != static_cast<std::size_t>(shape.top_k))
      throw lines.bad(
          fmt::format("token {} has {} choices instead of {}", token, words.size(), shape.top_k));
    for (const std::string& word : words)
      part.experts.push_back(
          lines.number(word, "the index of an expert", no_expert, shape.n_experts - 1));
  }
  return part;
}

} // namespace

RecordedRouting parse_routing_file(const std::string& text, const std::string& subject) {
  Lines lines(text, subject);
  if (join(lines.next("the line that names its format"), " ") != routing_file_format)
    throw lines.bad(std::string("not a routing file: its first line must be \"") +
                    routing_file_format + "\"");
  RecordedRouting recorded;
  Shape& shape = recorded.shape;
  shape = shape_line(lines);
  for (std::int32_t rank = 0; rank < shape.n_ranks; ++rank) {
    recorded.routing.push_back(rank_part(lines, shape, rank));
    shape.max_tokens = std::max(shape.max_tokens, recorded.routing.back().tokens());
  }
  const std::vector<std::string> end = lines.next("the line \"end HASH\"");
  if (end.size() != 2 || end[0] != "end")
    throw lines.bad("expected \"end HASH\"");
  if (!lines.at_end())
    throw lines.bad("unexpected text after the end");
  validate_routing(shape, recorded.routing, subject);
  const std::string hash = fmt::format("{:016x}", routing_hash(shape, recorded.routing));
  if (end[1] != "-" && end[1] != hash)
    throw lines.bad("the hash does not match: a line was changed or lost");
  return recorded;
}

std::string routing_file_text(const Shape& shape, const Routing& routing) {
  std::string text = fmt::format("{}\nranks {} experts {} topk {}\n", routing_file_format,
                                 shape.n_ranks, shape.n_experts, shape.top_k);
  for (std::size_t rank = 0; rank < routing.size(); ++rank) {
    const RankRouting& part = routing[rank];
    text += fmt::format("rank {} tokens {}\n", rank, part.tokens());
    for (std::int32_t token = 0; token < part.tokens(); ++token) {
      const std::int32_t* const choices = part.choices(token);
      for (std::int32_t k = 0; k < shape.top_k; ++k)
        text += fmt::format("{}{}", k > 0 ? " " : "", choices[k]);
      text += '\n';
    }
  }
  return text + fmt::format("end {:016x}\n", routing_hash(shape, routing));
}

} // namespace shmemctl::moe
