#include "cli/similar_names.h"

#include <algorithm>
#include <cstddef>

#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr std::size_t max_names = 3;
constexpr std::size_t shortest_abbreviation = 2, shortest_beginning = 3;

/// "--HCA_List" -> "hca-list"; "NVSHMEM_HCA_LIST" -> "hca-list"
std::string plain(std::string_view name) {
  std::string text = lower(name.substr(std::min(name.find_first_not_of('-'), name.size())));
  std::replace(text.begin(), text.end(), '_', '-');
  for (const std::string_view prefix : {"shmemctl-", "nvshmem-"})
    if (starts_with(text, prefix) && text != "nvshmem-version")
      text.erase(0, prefix.size());
  return text;
}

std::string without_no(const std::string& name) {
  return starts_with(name, "no-") ? name.substr(3) : name;
}

std::string sorted(std::string letters) {
  std::sort(letters.begin(), letters.end());
  return letters;
}

template <class Matches>
std::vector<std::string> those(const std::vector<std::string>& names, Matches matches) {
  std::vector<std::string> result;
  std::copy_if(names.begin(), names.end(), std::back_inserter(result), matches);
  return result;
}

} // namespace

std::vector<std::string> similar_names(std::string_view word,
                                       const std::vector<std::string>& names) {
  const std::string asked = plain(word);
  if (asked.empty())
    return {};
  const auto few = [](std::vector<std::string> found) {
    return found.size() > max_names ? std::vector<std::string>() : found;
  };
  if (auto found = those(names, [&](const std::string& name) { return plain(name) == asked; });
      !found.empty())
    return few(std::move(found));
  if (auto found = those(
          names,
          [&](const std::string& name) { return without_no(plain(name)) == without_no(asked); });
      !found.empty())
    return few(std::move(found));
  if (auto found = those(
          names, [&](const std::string& name) { return sorted(plain(name)) == sorted(asked); });
      asked.size() > shortest_abbreviation && !found.empty())
    return few(std::move(found));
  if (asked.size() >= shortest_abbreviation) {
    auto found = those(names, [&](const std::string& name) {
      return starts_with(plain(name), asked) || ends_with(plain(name), "-" + asked);
    });
    if (found = few(std::move(found)); !found.empty())
      return found;
  }
  std::vector<std::string> plain_names;
  for (const std::string& name : names)
    plain_names.push_back(plain(name));
  if (const auto nearest = nearest_spelling(asked, plain_names))
    return {names[static_cast<std::size_t>(
        std::find(plain_names.begin(), plain_names.end(), *nearest) - plain_names.begin())]};
  return few(those(names, [&](const std::string& name) {
    return name.size() >= shortest_beginning && starts_with(asked, plain(name));
  }));
}

std::string either(const std::vector<std::string>& names) {
  if (names.size() < 2)
    return join(names, "");
  return join({names.begin(), names.end() - 1}, ", ") + " or " + names.back();
}

} // namespace shmemctl
