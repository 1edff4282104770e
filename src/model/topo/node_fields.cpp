// The node model's fields as flat texts, which XML dumps use for facts that their format has no
// element for.
#include "src/model/topo/node_fields.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/model/topo/distance.h"
#include "src/model/topo/model_fields.h"
#include "src/model/topo/node.h"

namespace shmemctl::field_text {

namespace {

bool is_plain(unsigned char byte) {
  return std::isalnum(byte) != 0 ||
         (byte < 0x80 && std::string_view("._:/+,()@*=;~!#-").find(static_cast<char>(byte)) !=
                             std::string_view::npos);
}

} // namespace

std::string escape(const std::string& text) {
  static const char* const digits = "0123456789abcdef";
  if (text.empty())
    return "%";
  if (text == "-")
    return "%2d";
  std::string out;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_plain(byte)) {
      out += c;
    } else {
      out += '%';
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
  return out;
}

std::optional<std::string> unescape(const std::string& word) {
  if (word.empty())
    return std::nullopt;
  if (word == "%")
    return "";
  std::string out;
  for (std::size_t at = 0; at < word.size(); ++at) {
    if (word[at] != '%') {
      out += word[at];
      continue;
    }
    const std::optional<long long> byte =
        at + 2 < word.size() && std::isxdigit(static_cast<unsigned char>(word[at + 1])) != 0
            ? parse_integer(std::string_view(word).substr(at + 1, 2), 16)
            : std::nullopt;
    if (!byte)
      return std::nullopt;
    out += static_cast<char>(*byte);
    at += 2;
  }
  return out;
}

std::string encode_distance(const Distance& distance) {
  std::string word = distance.path ? to_string(*distance.path) : "?";
  if (distance.links != 0)
    word += ":" + std::to_string(distance.links);
  if (!distance.reason.empty())
    word += "=" + escape(distance.reason);
  return word;
}

std::optional<Distance> decode_distance(const std::string& word) {
  const std::size_t equals = word.find('=');
  const std::string left = word.substr(0, equals);
  const std::size_t colon = left.find(':');
  const std::string path = left.substr(0, colon);
  Distance distance;
  distance.path = parse_path_class(path);
  if (!distance.path && path != "?")
    return std::nullopt;
  if (colon != std::string::npos) {
    const std::optional<int> links = decode<int>(left.substr(colon + 1));
    if (!links)
      return std::nullopt;
    distance.links = *links;
  }
  if (equals != std::string::npos) {
    const std::optional<std::string> reason = unescape(word.substr(equals + 1));
    if (!reason)
      return std::nullopt;
    distance.reason = *reason;
  }
  return distance;
}

} // namespace shmemctl::field_text

namespace shmemctl {

namespace {

using field_text::Word;

constexpr const char* fix =
    "write the file again with shmemctl topo --dump, or delete what shmemctl added to it";
constexpr const char* nothing = "-"; ///< a list without items
constexpr char unknown_mark = '?';   ///< precedes the reason why a fact is unknown; alone: no value

template <class T>
std::string name_of(const T&, std::size_t position) {
  return std::to_string(position);
}
std::string name_of(const PciDevice& device, std::size_t) {
  return to_string(device.address);
}
std::string name_of(const Nic& nic, std::size_t position) {
  constexpr std::size_t longest_name = 100; // bytes
  std::string name = field_text::escape(nic.name);
  if (nic.name.empty() || name.size() > longest_name)
    return "@" + std::to_string(position);
  std::replace(name.begin(), name.end(), '.', '_'); // the dot divides the parts of a key
  return name;
}

/// Equal names get the suffixes "#2", "#3" in the list's order.
template <class T>
std::vector<std::string> names_of(const std::vector<T>& items) {
  std::vector<std::string> names;
  std::map<std::string, int> repeated;
  std::set<std::string> taken;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string wanted = name_of(items[i], i);
    std::string name = wanted;
    while (!taken.insert(name).second)
      name = wanted + "#" + std::to_string(++repeated[wanted] + 1);
    names.push_back(name);
  }
  return names;
}

/// The archive that collects fields.
class FieldWriter {
public:
  FieldWriter(NodeFields& to, std::string prefix) : to_(to), prefix_(std::move(prefix)) {}

  template <class T>
  void operator()(const char* key, const T& value) const {
    put(prefix_ + key, value);
  }
  template <class T>
  void added(const char* key, const T& value) const {
    put(prefix_ + key, value);
  }

private:
  template <class T>
  void put(const std::string& key, const T& value) const {
    if constexpr (Word<T>) {
      set(key, field_text::encode(value));
    } else {
      const FieldWriter members(to_, key + ".");
      fields(members, value);
    }
  }
  template <class T>
  void put(const std::string& key, const Fact<T>& fact) const {
    set(key, fact ? field_text::encode(*fact) : unknown_mark + field_text::escape(fact.origin),
        fact.origin);
  }
  template <class T>
  void put(const std::string& key, const std::optional<T>& value) const {
    if (value)
      put(key, *value);
    else
      set(key, std::string(1, unknown_mark));
  }
  template <class T>
  void put(const std::string& key, const std::vector<T>& items) const {
    std::vector<std::string> words;
    if constexpr (Word<T>) {
      std::transform(items.begin(), items.end(), std::back_inserter(words),
                     [](const T& item) { return field_text::encode(item); });
    } else {
      words = names_of(items);
      for (std::size_t i = 0; i < items.size(); ++i)
        put(key + "." + words[i], items[i]);
    }
    set(key, words.empty() ? nothing : join(words, " "));
  }
  void set(const std::string& key, std::string text, const std::string& origin = "") const {
    to_[key] = {std::move(text), origin};
  }

  NodeFields& to_;
  std::string prefix_;
};

/// The archive that reads them.
class FieldReader {
public:
  /// @param position where these fields are declared
  FieldReader(const NodeFields& from, const std::string& subject, std::string prefix,
              const std::string& position)
      : from_(from), subject_(subject), prefix_(std::move(prefix)), position_(position) {}

  template <class T>
  void operator()(const char* key, T& to) const {
    get(prefix_ + key, to);
  }
  /// A field that files of earlier releases lack.
  template <class T>
  void added(const char* key, T& to) const {
    if (from_.count(prefix_ + key) != 0)
      get(prefix_ + key, to);
  }

private:
  template <class T>
  void get(const std::string& key, T& to) const {
    if constexpr (Word<T>) {
      to = decoded<T>(key, find(key).text);
    } else {
      const FieldReader members(from_, subject_, key + ".", position_);
      fields(members, to);
    }
  }
  template <class T>
  void get(const std::string& key, Fact<T>& to) const {
    const NodeField& field = find(key);
    if (field.text.front() == unknown_mark)
      to = unknown<T>(decoded<std::string>(key, field.text.substr(1)));
    else
      to = known(decoded<T>(key, field.text), field.origin);
  }
  template <class T>
  void get(const std::string& key, std::optional<T>& to) const {
    to.reset();
    if (find(key).text != std::string(1, unknown_mark))
      get(key, to.emplace());
  }
  template <class T>
  void get(const std::string& key, std::vector<T>& to) const {
    to.clear();
    const std::vector<std::string> words = words_of_list(key);
    if constexpr (Word<T>) {
      for (const std::string& word : words)
        to.push_back(decoded<T>(key, word));
    } else {
      // Every item needs its own fields: a list cannot be larger than the file.
      if (std::set<std::string>(words.begin(), words.end()).size() != words.size())
        throw problem(find(key).origin, key, "lists an item twice");
      const FieldReader items(from_, subject_, "", find(key).origin);
      for (const std::string& name : words)
        items.get(key + "." + name, to.emplace_back());
    }
  }

  const NodeField& find(const std::string& key) const {
    const auto found = from_.find(key);
    if (found == from_.end())
      throw problem(position_, key, "is missing");
    if (found->second.text.empty())
      throw problem(found->second.origin, key, "is empty");
    return found->second;
  }

  std::vector<std::string> words_of_list(const std::string& key) const {
    constexpr std::ptrdiff_t max_items = 100'000; // far beyond the model's limits
    const std::string& text = find(key).text;
    if (text == nothing)
      return {};
    if (std::count(text.begin(), text.end(), ' ') >= max_items)
      throw problem(find(key).origin, key, "has more than " + std::to_string(max_items) + " items");
    return split(text, ' ');
  }

  template <Word T>
  T decoded(const std::string& key, const std::string& word) const {
    std::optional<T> value = field_text::decode<T>(word);
    if (!value)
      throw problem(find(key).origin, key, "has the invalid value " + printable(word, 60));
    return std::move(*value);
  }

  Error problem(const std::string& position, const std::string& key,
                const std::string& what) const {
    return input_error(subject_, position, "the field " + printable(key, 80) + " " + what, fix);
  }

  const NodeFields& from_;
  const std::string& subject_;
  std::string prefix_;
  const std::string& position_;
};

} // namespace

NodeFields fields_of(const Node& node) {
  NodeFields to;
  const FieldWriter writer(to, "");
  fields(writer, node);
  writer("recorded", node.recorded);
  return to;
}

void add_field(NodeFields& to, const std::string& key, const std::string& text,
               const std::string& position) {
  to.try_emplace(key, NodeField{"", position}).first->second.text += text;
}

Node node_from_fields(const NodeFields& from, const std::string& subject,
                      const std::string& position) {
  Node node;
  const FieldReader reader(from, subject, "", position);
  fields(reader, node);
  reader("recorded", node.recorded);
  for (std::size_t i = 0; i < node.gpus.size(); ++i)
    node.gpus[i].index = static_cast<int>(i);
  if (const std::string problem = shape_problem(node); !problem.empty())
    throw input_error(subject, position, problem, fix);
  return node;
}

} // namespace shmemctl

namespace shmemctl::nccl {

std::string extras(const Node& plain, const Node& node) {
  const NodeFields have = fields_of(plain);
  std::string out;
  for (const auto& [key, field] : fields_of(node)) {
    const auto found = have.find(key);
    if (found != have.end() && found->second.text == field.text)
      continue;
    for (std::size_t at = 0; at < field.text.size(); at += max_value_bytes)
      out += "  <shmemctl key=\"" + key + "\" value=\"" + field.text.substr(at, max_value_bytes) +
             "\"/>\n";
  }
  return out;
}

Node with_extras(const Node& plain, const XmlElement& system, const std::string& subject) {
  NodeFields fields;
  for (const XmlElement& element : system.children) {
    if (element.name != "shmemctl")
      continue;
    const std::string* key = element.find("key");
    if (key == nullptr)
      throw input_error(subject, element.position(), "<shmemctl> without a key",
                        "delete this element");
    add_field(fields, *key, element.get("value"), element.position());
  }
  if (fields.empty())
    return plain;
  fields.merge(fields_of(plain));
  Node node = node_from_fields(fields, subject, system.position());
  node.format = plain.format;
  normalize(node);
  return node;
}

} // namespace shmemctl::nccl
