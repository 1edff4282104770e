#include "src/base/text.h"
#include "src/topo/readers/machine_parts.h"

namespace shmemctl {

namespace {
constexpr std::size_t max_attribute_bytes = 4096; // sysfs gives a page at most

/// UTF-8 without control characters other than those in `allowed`.
bool is_text(std::string_view text, std::string_view allowed) {
  for (const char c : text)
    if ((static_cast<unsigned char>(c) < 0x20 || c == 0x7f) &&
        allowed.find(c) == std::string_view::npos)
      return false;
  return !first_non_utf8(text);
}
} // namespace

Attribute read_attribute(const Sysroot& sysroot, const std::string& path) {
  const std::optional<std::string> text = sysroot.read(path, max_attribute_bytes);
  if (!text)
    return {std::nullopt, sysroot.exists(path) ? path + " cannot be read" : path + " is absent"};
  if (text->size() == max_attribute_bytes)
    return {std::nullopt, path + " is too long for an attribute"};
  const std::string trimmed(trim(*text));
  if (!is_text(trimmed, "\n\t"))
    return {std::nullopt, path + " holds bytes that are not text"};
  return {trimmed, path};
}

bool is_device_name(const std::string& name) {
  return !name.empty() && name.size() <= 255 && is_text(name, "");
}

Fact<std::string> read_text_fact(const Sysroot& sysroot, const std::string& path) {
  Attribute attribute = read_attribute(sysroot, path);
  if (attribute.text && attribute.text->find_first_of("\n\t") != std::string::npos)
    return unknown<std::string>(path + " has more than one line");
  if (attribute.text && attribute.text->empty())
    return unknown<std::string>(path + " is empty");
  return {std::move(attribute.text), std::move(attribute.origin)};
}

} // namespace shmemctl
