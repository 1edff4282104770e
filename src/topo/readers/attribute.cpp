#include "src/base/text.h"
#include "src/topo/readers/machine_parts.h"

namespace shmemctl {

namespace {
constexpr std::size_t max_attribute_bytes = 4096; // sysfs gives a page at most
}

Attribute read_attribute(const Sysroot& sysroot, const std::string& path) {
  const std::optional<std::string> text = sysroot.read(path, max_attribute_bytes);
  if (!text)
    return {std::nullopt, sysroot.exists(path) ? path + " cannot be read" : path + " is absent"};
  if (text->size() == max_attribute_bytes)
    return {std::nullopt, path + " is too long for an attribute"};
  const std::string trimmed(trim(*text));
  for (const char c : trimmed)
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t')
      return {std::nullopt, path + " holds bytes that are not text"};
  if (first_non_utf8(trimmed))
    return {std::nullopt, path + " holds bytes that are not text"};
  return {trimmed, path};
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
