// XML as a tree of elements, and their attributes as values.
#include "src/model/topo/readers/xml.h"

#include <exception>
#include <expat.h>
#include <memory>
#include <type_traits>

#include "src/base/error.h"
#include "src/base/input.h"
#include "src/base/text.h"
#include "src/model/topo/readers/machine.h"

namespace shmemctl {

namespace {

constexpr std::size_t max_elements = 1'000'000;
constexpr std::size_t max_attributes = 2'000'000;
const char* const fix_of_xml = "use a complete XML file written by lstopo or NCCL";

struct ParserCloser {
  void operator()(XML_Parser parser) const { XML_ParserFree(parser); }
};
using Parser = std::unique_ptr<std::remove_pointer_t<XML_Parser>, ParserCloser>;

/// Receives expat's events and builds the tree. No exception may pass through expat's C frames:
/// problems are stored, and the parser is stopped.
class Builder {
public:
  explicit Builder(XML_Parser parser) : parser_(parser) {}

  void start(const char* name, const char** attributes) {
    if (stack_.size() >= static_cast<std::size_t>(max_nesting))
      return stop("nested deeper than " + std::to_string(max_nesting) + " levels");
    if (++elements_ > max_elements)
      return stop("more than " + std::to_string(max_elements) + " elements");
    XmlElement element;
    element.name = name;
    element.line = static_cast<int>(XML_GetCurrentLineNumber(parser_));
    element.column = static_cast<int>(XML_GetCurrentColumnNumber(parser_)) + 1;
    for (std::size_t i = 0; attributes[i] != nullptr; i += 2) {
      if (++attributes_ > max_attributes)
        return stop("more than " + std::to_string(max_attributes) + " attributes");
      element.attributes.emplace(attributes[i], attributes[i + 1]);
    }
    stack_.push_back(std::move(element));
  }

  void end() {
    if (stack_.empty())
      return;
    XmlElement done = std::move(stack_.back());
    stack_.pop_back();
    done.text = std::string(trim(done.text));
    if (stack_.empty())
      root_ = std::move(done);
    else
      stack_.back().children.push_back(std::move(done));
  }

  void text(const char* characters, int length) {
    if (!stack_.empty())
      stack_.back().text.append(characters, static_cast<std::size_t>(length));
  }

  void declaration(const char* encoding) {
    const std::string name = encoding == nullptr ? "utf-8" : lower(encoding);
    if (name != "utf-8" && name != "us-ascii")
      stop("the encoding is " + printable(name, 40) + ", not UTF-8");
  }

  // An internal subset can multiply a few bytes into gigabytes, by entities or by default values
  // of attributes; none of the formats uses one.
  void doctype(int has_internal_subset) {
    if (has_internal_subset != 0)
      stop("declarations inside DOCTYPE are not accepted");
  }

  void skipped_entity(const char* name) { stop("unknown entity &" + printable(name, 40) + ";"); }

  template <class Action>
  void guard(Action action) {
    if (failure_ || !problem_.empty())
      return;
    try {
      action();
    } catch (...) {
      failure_ = std::current_exception();
      XML_StopParser(parser_, XML_FALSE);
    }
  }

  std::string position() const {
    return "line " + std::to_string(XML_GetCurrentLineNumber(parser_)) + ", column " +
           std::to_string(XML_GetCurrentColumnNumber(parser_) + 1);
  }

  void rethrow() const {
    if (failure_)
      std::rethrow_exception(failure_);
  }
  const std::string& problem() const { return problem_; }
  const std::string& problem_position() const { return problem_position_; }
  XmlElement take() { return std::move(root_); }

private:
  void stop(std::string problem) {
    problem_ = std::move(problem);
    problem_position_ = position();
    XML_StopParser(parser_, XML_FALSE);
  }

  XML_Parser parser_;
  std::vector<XmlElement> stack_;
  XmlElement root_;
  std::size_t elements_ = 0;
  std::size_t attributes_ = 0;
  std::string problem_;
  std::string problem_position_;
  std::exception_ptr failure_;
};

Builder& builder(void* user) {
  return *static_cast<Builder*>(user);
}

void set_handlers(XML_Parser parser, Builder& to) {
  XML_SetUserData(parser, &to);
  XML_SetElementHandler(
      parser,
      [](void* user, const char* name, const char** attributes) {
        builder(user).guard([&] { builder(user).start(name, attributes); });
      },
      [](void* user, const char*) { builder(user).guard([&] { builder(user).end(); }); });
  XML_SetCharacterDataHandler(parser, [](void* user, const char* characters, int length) {
    builder(user).guard([&] { builder(user).text(characters, length); });
  });
  XML_SetXmlDeclHandler(parser, [](void* user, const char*, const char* encoding, int) {
    builder(user).guard([&] { builder(user).declaration(encoding); });
  });
  XML_SetStartDoctypeDeclHandler(
      parser, [](void* user, const char*, const char*, const char*, int has_internal_subset) {
        builder(user).guard([&] { builder(user).doctype(has_internal_subset); });
      });
  XML_SetSkippedEntityHandler(parser, [](void* user, const char* name, int) {
    builder(user).guard([&] { builder(user).skipped_entity(name); });
  });
}

void check_bytes(const std::string& text, const std::string& subject) {
  if (trim(text).empty())
    throw input_error(subject, "line 1, column 1", "the file is empty", fix_of_xml);
  if (text.size() > max_input_bytes)
    throw input_error(subject, "",
                      "larger than the limit of " + std::to_string(max_input_bytes) + " bytes",
                      "use the file of one node, as lstopo or NCCL writes it");
  if (const auto at = first_non_utf8(text))
    throw input_error(subject, position_of(text, *at), "invalid UTF-8", fix_of_xml);
  // expat takes `<` NUL for UTF-16 whatever encoding it was given.
  if (const std::size_t at = text.find('\0'); at != std::string::npos)
    throw input_error(subject, position_of(text, at), "invalid XML: NUL byte", fix_of_xml);
}

} // namespace

XmlElement parse_xml(const std::string& text, const std::string& subject) {
  check_bytes(text, subject);
  // An explicit encoding takes precedence over expat's guess from the bytes.
  const Parser parser(XML_ParserCreate("UTF-8"));
  if (!parser)
    throw std::bad_alloc();
  Builder to(parser.get());
  set_handlers(parser.get(), to);
  const auto status =
      XML_Parse(parser.get(), text.data(), static_cast<int>(text.size()), /*isFinal=*/1);
  to.rethrow();
  if (!to.problem().empty())
    throw input_error(subject, to.problem_position(), to.problem(), fix_of_xml);
  if (status != XML_STATUS_OK)
    throw input_error(subject, to.position(), XML_ErrorString(XML_GetErrorCode(parser.get())),
                      fix_of_xml);
  return to.take();
}

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
