// Every writer of reports, and what is well-formed of what it writes.
#pragma once

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <expat.h>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "reports/annotate/annotate.h"
#include "reports/csv.h"
#include "reports/html/page_model.h"
#include "reports/junit.h"
#include "reports/prometheus.h"
#include "reports/text.h"
#include "src/base/text.h"

namespace shmemctl {

/// What is wrong with a text; "" if nothing is.
using Judge = std::function<std::string(const std::string& written)>;

namespace every_writer {

/// What a terminal would not just show: controls (also C1: U+009B begins an escape sequence), marks
/// that change the direction of writing, line separators, byte order marks. Colours of our own
/// begin with ESC [ and end with m.
inline std::string terminal_problem(const std::string& text, const char* also_allowed) {
  if (first_non_utf8(text))
    return "is not UTF-8";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == 0x1b && std::strchr(also_allowed, 0x1b)) {
      const std::size_t end = text.find_first_not_of("0123456789;", i + 2);
      if (text.compare(i, 2, "\x1b[") != 0 || end == std::string::npos || text[end] != 'm')
        return "has an escape sequence that is no colour";
    } else if ((c < 0x20 || c == 0x7f) && (c == 0 || !std::strchr(also_allowed, text[i]))) {
      return "has the control character " + std::to_string(static_cast<int>(c));
    }
    if (c == 0xc2 && static_cast<unsigned char>(text[i + 1]) < 0xa0)
      return "has a C1 control";
    if (text.compare(i, 2, "\u061c") == 0)
      return "has a mark that terminals act on";
    for (const char* mark : {"\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202b", "\u202c",
                             "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069", "\ufeff"})
      if (text.compare(i, 3, mark) == 0)
        return "has a mark that terminals act on";
  }
  return "";
}

inline std::string lines_problem(const std::string& text, const std::string& also_allowed) {
  if (text.empty() || text.back() != '\n')
    return "does not end with a line end";
  return terminal_problem(text, (also_allowed + "\n").c_str());
}

/// A spreadsheet would compute what begins so; some take the full-width forms for the same.
inline bool is_formula(const std::string& cell) {
  for (const char* wide : {"\uff1d", "\uff0b", "\uff0d", "\uff20"})
    if (starts_with(cell, wide))
      return true;
  return !cell.empty() && std::strchr("=+-@\t\r", cell.front()) && !parse_number(cell);
}

/// RFC 4180: cells by the header's count in each row; a quote only in quoted cells. No cell is a
/// formula.
inline std::string csv_problem(const std::string& text) {
  std::string cell;
  if (const std::string problem = terminal_problem(text, "\r\n"); !problem.empty())
    return problem;
  std::size_t columns = 0, cells = 1;
  bool first = true, quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '"' && i + 1 < text.size() && text[i + 1] == '"')
        cell += text[i++];
      else if (c == '"')
        quoted = false;
      else if (c == '\r' || c == '\n')
        return "a line end within a cell";
      else
        cell += c;
    } else if (c == '"') {
      if (i > 0 && text[i - 1] != ',' && text[i - 1] != '\n')
        return "a quote within a cell";
      quoted = true;
    } else if (c == ',' || c == '\n') {
      if (c == '\n' && (cell.empty() || cell.back() != '\r'))
        return "a bare line end";
      if (c == '\n')
        cell.pop_back();
      if (is_formula(cell))
        return "a formula: " + cell;
      cell.clear();
      if (c == ',') {
        ++cells;
        continue;
      }
      columns = first ? cells : columns;
      if (cells != columns)
        return std::to_string(cells) + " cells below " + std::to_string(columns) + " columns";
      first = false;
      cells = 1;
    } else {
      cell += c;
    }
  }
  return quoted ? "an open quote" : first ? "no line" : "";
}

inline std::string xml_problem(const std::string& text) {
  XML_Parser parser = XML_ParserCreate("UTF-8");
  const bool good =
      XML_Parse(parser, text.data(), static_cast<int>(text.size()), 1) == XML_STATUS_OK;
  const std::string problem = good ? "" : XML_ErrorString(XML_GetErrorCode(parser));
  XML_ParserFree(parser);
  return problem.empty() ? lines_problem(text, "") : problem;
}

/// The end of {name="value",...} at `at`, or npos.
inline std::size_t after_labels(const std::string& line, std::size_t at) {
  static const char* const name_characters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  std::set<std::string> names;
  for (++at; at < line.size();) {
    const std::size_t equals = line.find_first_not_of(name_characters, at);
    if (equals == std::string::npos || equals == at || (line[at] >= '0' && line[at] <= '9') ||
        line.compare(equals, 2, "=\"") != 0 || !names.insert(line.substr(at, equals - at)).second)
      return std::string::npos;
    std::size_t end = equals + 2;
    while (end < line.size() && line[end] != '"') {
      if (line[end] == '\\' && (end + 1 == line.size() || !std::strchr("\\\"n", line[end + 1])))
        return std::string::npos;
      end += line[end] == '\\' ? 2 : 1;
    }
    if (end + 1 >= line.size())
      return std::string::npos;
    if (line[end + 1] == '}')
      return end + 2;
    if (line[end + 1] != ',')
      return std::string::npos;
    at = end + 2;
  }
  return std::string::npos;
}

/// The text exposition format: a family's lines together, behind its HELP and TYPE; no series
/// twice.
inline std::string prometheus_problem(const std::string& text) {
  std::set<std::string> series, families;
  std::string family;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (starts_with(line, "# HELP ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      if (!families.insert(family).second)
        return "the family is there twice: " + family;
      continue;
    }
    if (starts_with(line, "# TYPE ")) {
      if (line != "# TYPE " + family + " gauge")
        return line;
      continue;
    }
    std::size_t end = line.find_first_of("{ ");
    if (family.empty() || line.substr(0, end) != family)
      return "outside of its family: " + line;
    if (line[end] == '{')
      end = after_labels(line, end);
    if (end == std::string::npos || line[end] != ' ' || !series.insert(line.substr(0, end)).second)
      return "labels, or a series that is there twice: " + line;
    char* rest = nullptr;
    const std::string number = line.substr(end + 1);
    if (!std::isfinite(std::strtod(number.c_str(), &rest)) || *rest != '\0' || number.empty())
      return "no number: " + line;
  }
  return lines_problem(text, "");
}

inline std::string github_problem(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t title = line.find(" title=");
    const std::string command = line.substr(0, title);
    if (command != "::error" && command != "::warning" && command != "::notice")
      return "no command: " + line;
    const std::size_t end = line.find("::", title);
    if (end == std::string::npos ||
        line.substr(title, end - title).find_first_of(":,") != std::string::npos)
      return "a title that ends early: " + line;
  }
  return text.empty() ? "" : lines_problem(text, "");
}

inline std::string gitlab_problem(const std::string& text) {
  if (const std::string problem = lines_problem(text, ""); !problem.empty())
    return problem;
  const nlohmann::json list = nlohmann::json::parse(text, nullptr, false);
  if (!list.is_array())
    return "not a list";
  std::set<std::string> fingerprints;
  for (const nlohmann::json& issue : list)
    if (!fingerprints.insert(issue.at("fingerprint").get<std::string>()).second)
      return "a fingerprint that is there twice";
  return "";
}

/// A document that may be printed on a terminal (--json -).
inline std::string json_problem(const std::string& text) {
  return nlohmann::json::parse(text, nullptr, false).is_discarded() ? "not JSON"
                                                                    : lines_problem(text, "");
}

/// What is wrong with any text of a document, keys of its objects included.
inline std::string texts_problem(const nlohmann::json& value) {
  if (value.is_string())
    return terminal_problem(value.get_ref<const std::string&>(), "");
  if (!value.is_structured())
    return "";
  for (const auto& [key, inner] : value.items()) {
    std::string problem = value.is_object() ? terminal_problem(key, "") : "";
    problem = problem.empty() ? texts_problem(inner) : problem;
    if (!problem.empty())
      return key + ": " + problem;
  }
  return "";
}

/// The page's block of data: JSON that ends no element and opens none; what it holds is shown as it
/// is, so each of its texts is as harmless as a line on a terminal.
inline std::string page_data_problem(const std::string& text) {
  if (text.find_first_of("<>&") != std::string::npos)
    return "a character of markup";
  const nlohmann::json model = nlohmann::json::parse(text, nullptr, false);
  return model.is_discarded() ? "not JSON" : texts_problem(model);
}

/// Whether ":name:" or "://" begins at this colon.
inline bool is_markup_colon(const std::string& line, std::size_t colon) {
  const std::size_t end = line.find_first_not_of(
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-", colon + 1);
  return line.compare(colon + 1, 2, "//") == 0 ||
         (end != std::string::npos && end > colon + 1 && line[end] == ':');
}

/// No markup but our own: headings, lists, tables, <code>, and ** around words of ours.
inline std::string markdown_problem(const std::string& text) {
  std::istringstream lines(text);
  std::ptrdiff_t columns = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto bars = std::count(line.begin(), line.end(), '|');
    columns = bars == 0 || columns == 0 ? bars : columns;
    if (bars != columns || (bars > 0 && line.front() != '|'))
      return "a row of another width: " + line;
    for (std::size_t at = 0; (at = line.find('<', at)) != std::string::npos; ++at)
      if (line.compare(at, 6, "<code>") != 0 && line.compare(at, 7, "</code>") != 0)
        return "a tag: " + line;
    if (line.find_first_of("`[]!\\~@{}$^") != std::string::npos ||
        lower(line).find("www.") != std::string::npos)
      return "markup: " + line;
    for (std::size_t at = 0; at < line.size(); ++at) {
      const auto is_word = [&line](std::size_t i) {
        return i < line.size() && std::isalnum(static_cast<unsigned char>(line[i])) != 0;
      };
      if (line[at] == '_' && !(is_word(at - 1) && is_word(at + 1)))
        return "emphasis: " + line;
      if (line[at] == ':' && is_markup_colon(line, at))
        return "a link or a picture: " + line;
    }
  }
  return lines_problem(text, "");
}

struct Writer {
  const char* name;
  std::function<std::string(const Report&)> write;
  Judge problem_of;
};

inline std::string text_of(const Report& report, const TextStyle& style) {
  std::ostringstream out;
  write_text(out, report, style);
  return out.str();
}

inline Writer annotations(const char* name, AnnotationFormat format, Judge problem_of) {
  return {name,
          [format](const Report& report) {
            return write_annotations({{"r.json", report}}, format);
          },
          std::move(problem_of)};
}

inline const std::vector<Writer>& all() {
  static const auto plain = [](const std::string& text) { return lines_problem(text, "\t"); };
  static const auto coloured = [](const std::string& text) {
    return lines_problem(text, "\t\x1b");
  };
  static const std::vector<Writer> writers = {
      {"text", [](const Report& report) { return text_of(report, {}); }, plain},
      {"text, narrow",
       [](const Report& report) {
         return text_of(report, {false, 40, true, false, true});
       },
       plain},
      {"text, in colour",
       [](const Report& report) {
         return text_of(report, {true, 120, true, true, true});
       },
       coloured},
      {"json", [](const Report& report) { return to_text(to_json(report)); }, json_problem},
      {"csv", write_csv, csv_problem},
      {"junit", write_junit, xml_problem},
      {"prom", [](const Report& report) { return write_prometheus(report); }, prometheus_problem},
      {"prom, labels",
       [](const Report& report) {
         return write_prometheus(report, {{"id", "a\"b"}});
       },
       prometheus_problem},
      {"html",
       [](const Report& report) {
         return html::script_json(html::page_model({{{"r.json", report}}, {}}));
       },
       page_data_problem},
      annotations("github", AnnotationFormat::github, github_problem),
      annotations("gitlab", AnnotationFormat::gitlab, gitlab_problem),
      annotations("markdown", AnnotationFormat::markdown, markdown_problem),
      {"markdown page",
       [](const Report& report) {
         return write_markdown_page({"r.json", report});
       },
       markdown_problem},
  };
  return writers;
}

} // namespace every_writer

/// Writes the report every way. What is malformed, with the writer's name; "" if nothing is.
inline std::string malformed(const Report& report) {
  for (const every_writer::Writer& writer : every_writer::all())
    if (const std::string problem = writer.problem_of(writer.write(report)); !problem.empty())
      return std::string(writer.name) + ": " + problem;
  return "";
}

} // namespace shmemctl
