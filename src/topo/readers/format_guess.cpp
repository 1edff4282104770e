#include "src/topo/readers/format_guess.h"

#include <algorithm>

#include "src/base/text.h"
#include "src/topo/readers/nvidia_smi_text.h"

namespace shmemctl {

namespace {

/// Offset past the markup that begins with "<" at `at` and is no element, or npos if it never ends.
std::size_t past_markup(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at);
  const std::string_view end = starts_with(rest, "<!--") ? "-->"
                               : starts_with(rest, "<?") ? "?>"
                                                         : ">";
  const std::size_t found = text.find(end, at + 2);
  return found == std::string_view::npos ? found : found + end.size();
}

} // namespace

std::size_t first_character(std::string_view text) {
  const std::size_t mark = starts_with(text, "\xef\xbb\xbf") ? 3 : 0;
  return text.find_first_not_of(" \t\r\n\f\v", mark);
}

XmlStart xml_root(std::string_view text) {
  XmlStart root;
  std::size_t at = text.find('<');
  while (at != std::string_view::npos && at + 1 < text.size()) {
    root.offset = at;
    if (text[at + 1] != '?' && text[at + 1] != '!') {
      const std::size_t end = text.find_first_of(" \t\r\n/><", at + 1);
      root.name = std::string(text.substr(at + 1, std::min(end, text.size()) - at - 1));
      return root;
    }
    const std::size_t past = past_markup(text, at);
    at = past == std::string_view::npos ? past : text.find('<', past);
  }
  return root;
}

bool has_matrix_header(std::string_view text) {
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    // A header is the first thing in the file that matters; what is long is no header.
    const std::string_view line = text.substr(begin, std::min<std::size_t>(end - begin, 65536));
    if (line.find("GPU0") != std::string_view::npos) {
      const auto words = split_blanks(smi::plain_text(line));
      if (!words.empty() && words.front() == "GPU0")
        return true;
    }
    begin = end + 1;
  }
  return false;
}

} // namespace shmemctl
