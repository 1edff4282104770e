#include "src/instruments/gather/elf_excerpt.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <elf.h>
#include <set>
#include <string_view>
#include <vector>

#include "src/base/text.h"

namespace shmemctl::gather {

namespace {

constexpr std::uint64_t max_text_bytes = 256U << 20;
/// Longer identifiers are mangled function names; no variable has such a long name.
constexpr std::size_t longest_identifier = 80;

bool is_identifier(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_';
}

/// Whether the text has the form of a version: "1.22.0", "MLX5_1.25".
bool has_version(std::string_view text) {
  const std::size_t dot = text.find('.');
  return text.size() < 40 && dot != std::string_view::npos && dot > 0 && dot + 1 < text.size() &&
         std::isdigit(static_cast<unsigned char>(text[dot - 1])) != 0 &&
         std::isdigit(static_cast<unsigned char>(text[dot + 1])) != 0 &&
         text.find_first_of(" /%") == std::string_view::npos;
}

/// The part of a text that is kept; "" if nothing is.
std::string kept_of(std::string_view text, std::string_view marker) {
  if (const std::size_t at = marker.empty() ? std::string_view::npos : text.find(marker);
      at != std::string_view::npos)
    return std::string(text.substr(
        at, marker.size() + libraries::leading_version(text.substr(at + marker.size())).size()));
  if (has_version(text))
    return std::string(text);
  std::size_t start = text.size();
  while (start > 0 && is_identifier(text[start - 1]))
    --start;
  const std::string_view end = text.substr(start);
  if (end.size() < 2 || end.size() > longest_identifier || starts_with(end, "_Z"))
    return {};
  // The blank marks an identifier that is not the whole text, because readers distinguish the two.
  return start == 0 ? std::string(end) : " " + std::string(end);
}

template <class T>
void append(std::string& bytes, const T& value) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof value);
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

/// A string table: texts in sequence, each followed by a zero byte.
class Strings {
public:
  std::uint32_t add(std::string_view text) {
    const std::size_t at = bytes_.size();
    bytes_ += text;
    bytes_ += '\0';
    return static_cast<std::uint32_t>(at);
  }
  const std::string& bytes() const { return bytes_; }

private:
  std::string bytes_ = std::string(1, '\0');
};

struct Section {
  const char* name;
  std::uint32_t type;
  std::string content;
};

std::string dynamic_entries(const libraries::ElfFacts& facts, Strings& strings) {
  std::string bytes;
  const auto entry = [&](std::int64_t tag, std::uint64_t value) {
    Elf64_Dyn dynamic{};
    dynamic.d_tag = tag;
    dynamic.d_un.d_val = value;
    append(bytes, dynamic);
  };
  if (!facts.soname.empty())
    entry(DT_SONAME, strings.add(facts.soname));
  for (const std::string& name : facts.needed)
    entry(DT_NEEDED, strings.add(name));
  entry(DT_NULL, 0);
  return bytes;
}

std::string definitions(const libraries::ElfFacts& facts, Strings& strings) {
  std::string bytes;
  for (std::size_t i = 0; i < facts.defined_versions.size(); ++i) {
    Elf64_Verdef definition{};
    definition.vd_version = VER_DEF_CURRENT;
    definition.vd_cnt = 1;
    definition.vd_aux = sizeof definition;
    definition.vd_next =
        i + 1 == facts.defined_versions.size() ? 0 : sizeof(Elf64_Verdef) + sizeof(Elf64_Verdaux);
    append(bytes, definition);
    Elf64_Verdaux name{};
    name.vda_name = strings.add(facts.defined_versions[i]);
    append(bytes, name);
  }
  return bytes;
}

std::string needs(const libraries::ElfFacts& facts, Strings& strings) {
  std::string bytes;
  for (std::size_t i = 0; i < facts.needed_versions.size(); ++i) {
    const libraries::NeededVersions& of_file = facts.needed_versions[i];
    const auto count =
        static_cast<std::uint32_t>(std::min<std::size_t>(of_file.versions.size(), 0xffff));
    Elf64_Verneed need{};
    need.vn_version = VER_NEED_CURRENT;
    need.vn_cnt = static_cast<Elf64_Half>(count);
    need.vn_file = strings.add(of_file.file);
    need.vn_aux = sizeof need;
    need.vn_next = i + 1 == facts.needed_versions.size()
                       ? 0
                       : static_cast<std::uint32_t>(sizeof need + count * sizeof(Elf64_Vernaux));
    append(bytes, need);
    for (std::uint32_t version = 0; version < count; ++version) {
      Elf64_Vernaux name{};
      name.vna_name = strings.add(of_file.versions[version]);
      name.vna_next = version + 1 == count ? 0 : sizeof name;
      append(bytes, name);
    }
  }
  return bytes;
}

std::string build_id_note(const std::string& build_id) {
  std::string digits;
  for (std::size_t i = 0; i + 1 < build_id.size(); i += 2)
    digits += static_cast<char>(parse_integer(build_id.substr(i, 2), 16).value_or(0));
  Elf64_Nhdr note{};
  note.n_namesz = 4;
  note.n_descsz = static_cast<Elf64_Word>(digits.size());
  note.n_type = NT_GNU_BUILD_ID;
  std::string bytes;
  append(bytes, note);
  bytes += std::string("GNU\0", 4) + digits;
  bytes.append((4 - digits.size() % 4) % 4, '\0');
  return bytes;
}

std::string assemble(std::vector<Section> sections) {
  Strings names;
  std::vector<Elf64_Shdr> headers(1); // the first section header is the null one
  for (const Section& section : sections) {
    Elf64_Shdr header{};
    header.sh_name = names.add(section.name);
    header.sh_type = section.type;
    header.sh_link = 2; // .dynstr
    headers.push_back(header);
  }
  sections.front().content = names.bytes();
  std::string file(sizeof(Elf64_Ehdr), '\0');
  for (std::size_t i = 0; i < sections.size(); ++i) {
    headers[i + 1].sh_offset = file.size();
    headers[i + 1].sh_size = sections[i].content.size();
    file += sections[i].content;
  }
  Elf64_Ehdr start{};
  std::memcpy(start.e_ident, ELFMAG, SELFMAG);
  start.e_ident[EI_CLASS] = ELFCLASS64;
  start.e_ident[EI_DATA] = ELFDATA2LSB;
  start.e_ident[EI_VERSION] = EV_CURRENT;
  start.e_type = ET_DYN;
  start.e_machine = EM_X86_64;
  start.e_version = EV_CURRENT;
  start.e_ehsize = sizeof start;
  start.e_shoff = file.size();
  start.e_shentsize = sizeof(Elf64_Shdr);
  start.e_shnum = static_cast<Elf64_Half>(headers.size());
  start.e_shstrndx = 1;
  std::memcpy(file.data(), &start, sizeof start);
  for (const Elf64_Shdr& header : headers)
    append(file, header);
  return file;
}

} // namespace

std::string elf_excerpt(const libraries::ReadAt& read_at, const libraries::LibraryKind* kind) {
  const libraries::ElfFacts facts = libraries::read_elf(read_at);
  if (facts.problem.find("ELF file") != std::string::npos)
    return {};
  std::string texts;
  if (kind != nullptr && kind->reads_texts) {
    std::set<std::string> seen;
    libraries::each_text(read_at, facts.texts, 2, max_text_bytes, [&](std::string_view text) {
      const std::string kept = kept_of(text, kind->marker);
      if (!kept.empty() && seen.insert(kept).second)
        texts += kept + '\0';
    });
  }
  Strings strings;
  std::vector<Section> sections = {{".shstrtab", SHT_STRTAB, ""},
                                   {".dynstr", SHT_STRTAB, ""},
                                   {".rodata", SHT_PROGBITS, texts},
                                   {".dynamic", SHT_DYNAMIC, dynamic_entries(facts, strings)}};
  if (!facts.defined_versions.empty())
    sections.push_back({".gnu.version_d", SHT_GNU_verdef, definitions(facts, strings)});
  if (!facts.needed_versions.empty())
    sections.push_back({".gnu.version_r", SHT_GNU_verneed, needs(facts, strings)});
  if (!facts.build_id.empty())
    sections.push_back({".note.gnu.build-id", SHT_NOTE, build_id_note(facts.build_id)});
  sections[1].content = strings.bytes();
  return assemble(std::move(sections));
}

} // namespace shmemctl::gather
