// Workflow commands of GitHub Actions: ::error title=TITLE::MESSAGE
#include "reports/annotate/remark.h"
#include "reports/table.h"
#include "src/base/counted.h"

namespace shmemctl::annotate {

namespace {

/// GitHub shows so many annotations of a kind for a step, and drops the rest without a word.
constexpr std::size_t most_shown = 10;

/// Text behind the second `::`. It has no control character any more; what is left of them here are
/// line ends of our own.
std::string data(const std::string& text) {
  std::string out;
  for (const char c : text)
    switch (c) {
    case '%':
      out += "%25";
      break;
    case '\r':
      out += "%0D";
      break;
    case '\n':
      out += "%0A";
      break;
    default:
      out += c;
    }
  return out;
}

/// The value of a property, which a colon or a comma would end.
std::string property(const std::string& text) {
  std::string out;
  for (const char c : data(text))
    out += c == ':' ? "%3A" : c == ',' ? "%2C" : std::string(1, c);
  return out;
}

const char* command_of(Severity severity) {
  switch (severity) {
  case Severity::error:
    return "error";
  case Severity::warning:
    return "warning";
  case Severity::info:
    return "notice";
  }
  return "notice";
}

std::string line(Severity severity, const std::string& title, const std::string& message) {
  return std::string("::") + command_of(severity) + " title=" + property(title) +
         "::" + data(message) + "\n";
}

std::string line_of(const Remark& remark) {
  const std::string fix = remark.fix.empty() ? "" : "\nfix: " + safe_text(remark.fix);
  return line(remark.severity, safe_text(remark.id) + " (" + safe_text(remark.subject) + ")",
              safe_text(remark.message) + fix);
}

} // namespace

std::string write_github(const std::vector<LoadedReport>& reports) {
  const std::vector<Remark> remarks = remarks_of(reports);
  std::string out;
  for (const Severity severity : {Severity::error, Severity::warning, Severity::info}) {
    std::vector<const Remark*> kind;
    for (const Remark& remark : remarks)
      if (remark.severity == severity)
        kind.push_back(&remark);
    const std::size_t shown = kind.size() > most_shown ? most_shown - 1 : kind.size();
    for (std::size_t i = 0; i < shown; ++i)
      out += line_of(*kind[i]);
    if (shown < kind.size())
      out += line(severity, "more of them",
                  "and " + counted(kind.size() - shown, "more finding") +
                      ": shmemctl report show, or the step's summary, has them");
  }
  return out;
}

} // namespace shmemctl::annotate
