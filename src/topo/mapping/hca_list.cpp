#include "src/topo/mapping/hca_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

/// NVSHMEM keeps a name in 64 bytes, the terminating 0 included. The kernel's own limit is the
/// same, so that a longer name is no device's name.
constexpr std::size_t name_buffer_bytes = 64;
constexpr std::size_t kept_text_bytes = 256;
constexpr std::size_t kept_problems = 100;

/// One part of the list between commas.
struct Item {
  std::string_view text;
  std::size_t column = 0; ///< from 1
};

/// The item cut at its colons. Fields: name, port, count, what is left.
struct Fields {
  std::vector<Item> parts;
  bool has(std::size_t index) const { return index < parts.size(); }
};

Fields cut_at_colons(const Item& item) {
  Fields fields;
  std::size_t begin = 0;
  // Nothing after the third colon matters, so its text stays whole.
  while (fields.parts.size() < 3) {
    const std::size_t colon = item.text.find(':', begin);
    if (colon == std::string_view::npos)
      break;
    fields.parts.push_back({item.text.substr(begin, colon - begin), item.column + begin});
    begin = colon + 1;
  }
  fields.parts.push_back({item.text.substr(begin), item.column + begin});
  return fields;
}

/// What C's atoi() makes of a field on the machines NVSHMEM runs on: leading blanks and a sign are
/// accepted, the rest after the digits is ignored, nothing readable is 0, and a number is clamped
/// to 64 bits and then cut to its low 32 (so that 99999999999999999999 is -1).
int c_integer(std::string_view text) {
  return static_cast<int>(std::strtol(std::string(text).c_str(), nullptr, 10));
}

/// Takes note of what a careful reader would object to, up to a bound.
class Problems {
public:
  explicit Problems(std::vector<HcaListProblem>& out) : out_(out) {}

  void add(const Item& at, std::string problem) {
    if (out_.size() == kept_problems)
      out_.push_back({at.column, "", "there are more problems, which are not listed"});
    if (out_.size() < kept_problems)
      out_.push_back({at.column, kept(at.text), std::move(problem)});
  }

  static std::string kept(std::string_view text) {
    return std::string(text.substr(0, kept_text_bytes));
  }

private:
  std::vector<HcaListProblem>& out_;
};

/// "1x", " 1", "", "4294967297": what differs between a field as a person reads it and as
/// NVSHMEM does. Empty if nothing does.
std::string number_problem(const char* what, std::string_view text, int value) {
  if (text.empty())
    return fmt::format("{} is missing; NVSHMEM reads 0", what);
  if (parse_integer(text) == value)
    return "";
  const std::string shown = printable(std::string(text.substr(0, kept_text_bytes)), 40);
  if (parse_integer(text))
    return fmt::format("{} {} does not fit; NVSHMEM reads {}", what, shown, value);
  return fmt::format("{} \"{}\" is not a number; NVSHMEM reads {}", what, shown, value);
}

void check_name(const Item& name, Problems& problems) {
  if (trim(name.text).size() != name.text.size())
    problems.add(name, "blanks around a name are part of it, so it matches no device");
  if (starts_with(name.text, "^"))
    problems.add(name, "^ excludes only as the first character of the whole list; here it is part "
                       "of a name, which matches no device");
  if (name.text.size() >= name_buffer_bytes)
    problems.add(name, fmt::format("the name is longer than {} bytes, so it matches no device",
                                   name_buffer_bytes - 1));
}

/// What a port number selects, where that is not one port.
const char* selected_by(int port) {
  if (port == -1)
    return "every port";
  return port < 1 ? "no port, so the entry matches nothing" : "";
}

void check_port(const Item& port, int value, Problems& problems) {
  const std::string odd = number_problem("port", port.text, value);
  const std::string selected = selected_by(value);
  if (!odd.empty())
    problems.add(port, selected.empty() ? odd : odd + ": " + selected);
  else if (!selected.empty())
    problems.add(port, fmt::format("port {} selects {}; ports count from 1", value, selected));
}

void check_count(const Item& count, int value, Problems& problems) {
  const std::string odd = number_problem("count", count.text, value);
  if (!odd.empty())
    problems.add(count, odd);
  if (value <= 0)
    problems.add(count, "a count below 1 removes what the entry matches from HCA_PE_MAPPING's "
                        "devices");
}

void check_bytes(std::string_view text, Problems& problems) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  const auto control = std::find_if(text.begin(), text.end(), is_control);
  const auto rest_from = [&](std::size_t at) { return Item{text.substr(at, 16), at + 1}; };
  if (control != text.end())
    problems.add(rest_from(static_cast<std::size_t>(control - text.begin())),
                 *control == '\0' ? "a zero byte ends the list" : "control character");
  if (const std::optional<std::size_t> bad = first_non_utf8(text))
    problems.add(rest_from(*bad), "bytes that are not UTF-8");
}

/// Reads one item into the list, as long as there is room.
void read_item(const Item& item, std::size_t capacity, HcaList& list, Problems& problems) {
  const Fields fields = cut_at_colons(item);
  const Item& name = fields.parts[0];
  if (name.text.empty()) {
    problems.add(item, item.text.empty() ? "empty item" : "no name before the colon: ignored");
    return;
  }
  HcaListEntry entry;
  entry.name = std::string(name.text.substr(0, name_buffer_bytes));
  entry.column = item.column;
  entry.text = Problems::kept(item.text);
  check_name(name, problems);
  if (fields.has(1)) {
    entry.port = c_integer(fields.parts[1].text);
    check_port(fields.parts[1], entry.port, problems);
  }
  const bool last = list.entries.size() + 1 == capacity;
  if (fields.has(2) && last) {
    problems.add(fields.parts[2],
                 fmt::format("NVSHMEM stops reading at entry {}, before its count", capacity));
  } else if (fields.has(2)) {
    entry.count = c_integer(fields.parts[2].text);
    check_count(fields.parts[2], entry.count, problems);
  }
  if (fields.has(3))
    problems.add(fields.parts[3], "everything after the third colon is ignored");
  list.entries.push_back(std::move(entry));
}

} // namespace

HcaList parse_hca_list(const std::string& text, std::size_t capacity) {
  HcaList list;
  Problems problems(list.problems);
  check_bytes(text, problems);

  // NVSHMEM sees a C string.
  std::string_view rest = std::string_view(text).substr(0, text.find('\0'));
  std::size_t column = 1;
  list.exclude = starts_with(rest, "^");
  if (list.exclude) {
    rest.remove_prefix(1);
    ++column;
  }
  if (rest.empty()) {
    problems.add({text, 1}, "the list names nothing, so it filters nothing, as if it were unset");
    return list;
  }
  while (true) {
    const std::size_t comma = rest.find(',');
    const Item item{rest.substr(0, comma), column};
    if (list.entries.size() == capacity && !rest.empty()) {
      problems.add(
          {rest, column},
          fmt::format("NVSHMEM holds {} entries; this and what follows is dropped", capacity));
      break;
    }
    read_item(item, capacity, list, problems);
    if (comma == std::string_view::npos)
      break;
    column += comma + 1;
    rest.remove_prefix(comma + 1);
  }
  return list;
}

} // namespace shmemctl
