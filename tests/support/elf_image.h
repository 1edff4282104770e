// A small ELF file with the sections that are read of libraries.
#pragma once

#include <cstdint>
#include <cstring>
#include <elf.h>
#include <string>
#include <utility>
#include <vector>

namespace shmemctl::fake {

/// What the file says; bytes() makes it.
struct ElfImage {
  std::string soname;
  std::vector<std::string> defined; ///< symbol versions
  std::vector<std::pair<std::string, std::vector<std::string>>> needed;
  std::vector<std::string> texts; ///< in .rodata, each followed by a zero byte

  std::string bytes() const {
    std::string strings(1, '\0'), names(1, '\0');
    const auto add = [](std::string& table, const std::string& text) {
      const auto at = static_cast<std::uint32_t>(table.size());
      table += text + '\0';
      return at;
    };
    std::string rodata, dynamic, definitions, needs;
    for (const std::string& text : texts)
      rodata += text + '\0';
    const auto tag = [&dynamic](std::int64_t number, std::uint64_t value) {
      Elf64_Dyn entry{};
      entry.d_tag = number;
      entry.d_un.d_val = value;
      append(dynamic, entry);
    };
    if (!soname.empty())
      tag(DT_SONAME, add(strings, soname));
    for (const auto& need : needed)
      tag(DT_NEEDED, add(strings, need.first));
    tag(DT_NULL, 0);
    for (std::size_t i = 0; i < defined.size(); ++i) {
      Elf64_Verdef definition{};
      definition.vd_aux = sizeof definition;
      definition.vd_cnt = 1;
      const bool last = i + 1 == defined.size();
      definition.vd_next = last ? 0 : sizeof definition + sizeof(Elf64_Verdaux);
      append(definitions, definition);
      Elf64_Verdaux name{};
      name.vda_name = add(strings, defined[i]);
      append(definitions, name);
    }
    for (std::size_t i = 0; i < needed.size(); ++i) {
      const auto& versions = needed[i].second;
      Elf64_Verneed need{};
      need.vn_cnt = static_cast<Elf64_Half>(versions.size());
      need.vn_file = add(strings, needed[i].first);
      need.vn_aux = sizeof need;
      need.vn_next =
          i + 1 == needed.size()
              ? 0
              : static_cast<Elf64_Word>(sizeof need + versions.size() * sizeof(Elf64_Vernaux));
      append(needs, need);
      for (std::size_t j = 0; j < versions.size(); ++j) {
        Elf64_Vernaux version{};
        version.vna_name = add(strings, versions[j]);
        version.vna_next = j + 1 == versions.size() ? 0 : sizeof version;
        append(needs, version);
      }
    }
    struct Section {
      const char* name;
      std::uint32_t type;
      const std::string* content;
    };
    constexpr std::uint32_t strings_index = 2;
    const std::string nothing;
    const Section sections[] = {{"", SHT_NULL, &nothing},
                                {".shstrtab", SHT_STRTAB, &names},
                                {".dynstr", SHT_STRTAB, &strings},
                                {".rodata", SHT_PROGBITS, &rodata},
                                {".dynamic", SHT_DYNAMIC, &dynamic},
                                {".gnu.version_d", SHT_GNU_verdef, &definitions},
                                {".gnu.version_r", SHT_GNU_verneed, &needs}};
    constexpr std::size_t count = sizeof sections / sizeof sections[0];
    std::uint32_t name_at[count] = {};
    for (std::size_t i = 1; i < count; ++i)
      name_at[i] = add(names, sections[i].name);
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = count;
    header.e_shstrndx = 1;
    std::string content, table;
    for (std::size_t i = 0; i < count; ++i) {
      Elf64_Shdr section{};
      section.sh_name = name_at[i];
      section.sh_type = sections[i].type;
      section.sh_offset = sizeof header + content.size();
      section.sh_size = sections[i].content->size();
      section.sh_link = strings_index;
      content += *sections[i].content;
      append(table, section);
    }
    header.e_shoff = sizeof header + content.size();
    std::string file;
    append(file, header);
    return file + content + table;
  }

private:
  template <class T>
  static void append(std::string& to, const T& value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
};

} // namespace shmemctl::fake
