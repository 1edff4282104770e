// The samples of a report's rows, read without making a JSON value of each.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace shmemctl {

/// A report's text without its rows' samples, which are most of it.
struct TakenSamples {
  std::string text;                         ///< with an empty list in their places
  std::vector<std::vector<double>> samples; ///< by row, as far as one was taken out
};

/// Nothing if there are none, or if where they belong is not plain: then the text is for the JSON
/// parser alone. Lists that are not of plain numbers of at most 1e18 stay where they are. If what
/// is left is no valid report, the text as a whole says why.
std::optional<TakenSamples> take_samples(const std::string& text);

} // namespace shmemctl
