// doctor's answers, grouped.
#include <algorithm>
#include <map>

#include "reports/text.h"

namespace shmemctl {

namespace {

struct Mark {
  const char* utf8;
  const char* ascii;
  std::optional<Colour> colour;
};

Mark mark_of(const std::string& status) {
  if (status == "pass")
    return {"[\xe2\x9c\x93]", "[ok]  ", Colour::green};
  if (status == "warning")
    return {"[!]", "[warn]", Colour::yellow};
  if (status == "fail")
    return {"[\xe2\x9c\x97]", "[FAIL]", Colour::red};
  return {"[-]", "[skip]", std::nullopt};
}

/// How many checks from `first` on were skipped for one reason: they share a line.
std::size_t skipped_alike(const std::vector<CheckRow>& checks, std::size_t first) {
  std::size_t end = first + 1;
  while (end < checks.size() && checks[first].status == "skipped" &&
         checks[end].status == "skipped" && checks[end].group == checks[first].group &&
         checks[end].reason == checks[first].reason)
    ++end;
  return end - first;
}

std::string check_lines(const CheckRow& check, int id_width, const TextStyle& style) {
  const Mark mark = mark_of(check.status);
  const std::string shown = style.utf8 ? mark.utf8 : mark.ascii;
  const int indent = display_width(shown) + 1;
  std::string id = safe_text(check.id);
  id += std::string(static_cast<std::size_t>(std::max(0, id_width - display_width(id))), ' ');
  const std::string line =
      wrapped(shown + " " + id + "  " + safe_text(check.reason), style.width, indent);
  std::string out = (mark.colour ? coloured(shown, *mark.colour, style) : shown) +
                    line.substr(shown.size()) + "\n";
  const std::string blanks(static_cast<std::size_t>(indent), ' ');
  const bool quiet = check.status == "pass" || check.status == "skipped";
  if (style.verbose && !check.title.empty())
    out += blanks + "checks: " + safe_text(check.title) + "\n";
  if ((!quiet || style.verbose) && !check.evidence.empty())
    out += blanks + "read: " + safe_text(check.evidence) + "\n";
  if ((!quiet || style.verbose) && !check.fix.empty())
    out += blanks + "fix: " + safe_text(check.fix) + "\n";
  return out;
}

} // namespace

std::string checks_text(const std::vector<CheckRow>& checks, const TextStyle& style) {
  std::vector<std::string> groups; // in order of appearance
  std::map<std::string, std::string> lines_of_group;
  int id_width = 0;
  for (const CheckRow& check : checks)
    id_width = std::min(32, std::max(id_width, display_width(safe_text(check.id))));
  for (std::size_t i = 0; i < checks.size();) {
    const auto [found, added] = lines_of_group.emplace(checks[i].group, "");
    if (added)
      groups.push_back(checks[i].group);
    const std::size_t alike = style.verbose ? 1 : skipped_alike(checks, i);
    CheckRow row = checks[i];
    if (alike > 1)
      row.id = std::to_string(alike) + " checks";
    found->second += check_lines(row, id_width, style);
    i += alike;
  }
  std::string out;
  for (const std::string& group : groups) {
    if (!out.empty())
      out += "\n";
    if (!group.empty())
      out += coloured(safe_text(group), Colour::bold, style) + "\n";
    out += lines_of_group[group];
  }
  return out;
}

} // namespace shmemctl
