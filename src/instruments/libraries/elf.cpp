#include "src/instruments/libraries/elf.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <fmt/format.h>
#include <optional>

#include "src/base/text.h"

namespace shmemctl::libraries {

namespace {

constexpr std::size_t max_sections = 8192, max_entries = 4096;
constexpr std::uint64_t max_table_bytes = 16U << 20;

template <class T>
std::optional<T> value_at(std::string_view bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T))
    return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// The text that starts at that offset; "" if it does not end within the table.
std::string text_at(std::string_view table, std::uint64_t offset) {
  if (offset >= table.size())
    return {};
  const std::size_t end = table.find('\0', offset);
  return end == std::string_view::npos ? std::string()
                                       : std::string(table.substr(offset, end - offset));
}

class Reader {
public:
  explicit Reader(const ReadAt& read_at) : read_at_(read_at) {}

  ElfFacts read() {
    if (!read_sections())
      return std::move(facts_);
    const std::string names = header_.e_shstrndx < sections_.size()
                                  ? table(sections_[header_.e_shstrndx])
                                  : std::string();
    for (const Elf64_Shdr& section : sections_) {
      const std::string name = text_at(names, section.sh_name);
      const bool has_text = starts_with(name, ".rodata") || name == ".dynstr" || name == ".strtab";
      if (has_text && section.sh_type != SHT_NOBITS && section.sh_size > 0)
        facts_.texts.push_back({section.sh_offset, section.sh_size});
      if (section.sh_type == SHT_DYNAMIC)
        read_dynamic(section);
      else if (section.sh_type == SHT_NOTE)
        read_notes(section);
      else if (section.sh_type == SHT_GNU_verdef)
        read_defined(section);
      else if (section.sh_type == SHT_GNU_verneed)
        read_needed(section);
    }
    return std::move(facts_);
  }

private:
  bool fail(const char* problem) {
    facts_.problem = problem;
    return false;
  }

  bool read_sections() {
    const std::string start = read_at_(0, sizeof header_);
    if (start.size() < SELFMAG || std::memcmp(start.data(), ELFMAG, SELFMAG) != 0)
      return fail("not an ELF file");
    const std::optional<Elf64_Ehdr> header = value_at<Elf64_Ehdr>(start, 0);
    if (!header)
      return fail("the ELF header is cut off");
    header_ = *header;
    if (header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB)
      return fail("not a 64-bit little-endian ELF file");
    if (header_.e_shoff == 0 || header_.e_shnum == 0)
      return fail("no section headers");
    if (header_.e_shentsize != sizeof(Elf64_Shdr) || header_.e_shnum > max_sections)
      return fail("section headers of an unknown kind");
    const std::size_t wanted = header_.e_shnum * sizeof(Elf64_Shdr);
    const std::string bytes = read_at_(header_.e_shoff, wanted);
    if (bytes.size() < wanted)
      return fail("the section headers are cut off");
    for (std::size_t at = 0; at < wanted; at += sizeof(Elf64_Shdr))
      sections_.push_back(*value_at<Elf64_Shdr>(bytes, at));
    return true;
  }

  std::string table(const Elf64_Shdr& section) {
    if (section.sh_type == SHT_NOBITS || section.sh_size > max_table_bytes) {
      facts_.problem = "a table is too large";
      return {};
    }
    std::string bytes = read_at_(section.sh_offset, section.sh_size);
    if (bytes.size() < section.sh_size)
      facts_.problem = "a table is cut off";
    return bytes;
  }

  std::string linked_table(const Elf64_Shdr& section) {
    return section.sh_link < sections_.size() ? table(sections_[section.sh_link]) : std::string();
  }

  void read_dynamic(const Elf64_Shdr& section) {
    const std::string bytes = table(section), names = linked_table(section);
    for (std::size_t i = 0; i < max_entries; ++i) {
      const auto entry = value_at<Elf64_Dyn>(bytes, i * sizeof(Elf64_Dyn));
      if (!entry || entry->d_tag == DT_NULL)
        break;
      if (entry->d_tag == DT_SONAME)
        facts_.soname = text_at(names, entry->d_un.d_val);
      else if (entry->d_tag == DT_NEEDED)
        facts_.needed.push_back(text_at(names, entry->d_un.d_val));
    }
  }

  void read_notes(const Elf64_Shdr& section) {
    const std::string bytes = table(section);
    const auto padded = [](std::uint64_t size) { return (size + 3) / 4 * 4; };
    std::uint64_t at = 0;
    for (std::size_t i = 0; i < max_entries; ++i) {
      const auto note = value_at<Elf64_Nhdr>(bytes, at);
      if (!note)
        break;
      const std::uint64_t name = at + sizeof(Elf64_Nhdr), data = name + padded(note->n_namesz);
      if (data > bytes.size() || note->n_descsz > bytes.size() - data)
        break;
      if (note->n_type == NT_GNU_BUILD_ID && text_at(bytes, name) == "GNU")
        for (std::uint64_t byte = 0; byte < std::min<std::uint64_t>(note->n_descsz, 64); ++byte)
          facts_.build_id += fmt::format("{:02x}", static_cast<unsigned char>(bytes[data + byte]));
      at = data + padded(note->n_descsz);
    }
  }

  void read_defined(const Elf64_Shdr& section) {
    const std::string bytes = table(section), names = linked_table(section);
    std::uint64_t at = 0;
    for (std::size_t i = 0; i < max_entries; ++i) {
      const auto definition = value_at<Elf64_Verdef>(bytes, at);
      if (!definition)
        break;
      const auto name = value_at<Elf64_Verdaux>(bytes, at + definition->vd_aux);
      if (name && (definition->vd_flags & VER_FLG_BASE) == 0)
        facts_.defined_versions.push_back(text_at(names, name->vda_name));
      if (definition->vd_next == 0)
        break;
      at += definition->vd_next;
    }
  }

  void read_needed(const Elf64_Shdr& section) {
    const std::string bytes = table(section), names = linked_table(section);
    std::uint64_t at = 0;
    std::size_t left = max_entries;
    while (left-- > 0) {
      const auto need = value_at<Elf64_Verneed>(bytes, at);
      if (!need)
        break;
      NeededVersions versions{text_at(names, need->vn_file), {}};
      std::uint64_t entry = at + need->vn_aux;
      for (unsigned i = 0; i < need->vn_cnt && left > 0; ++i, --left) {
        const auto version = value_at<Elf64_Vernaux>(bytes, entry);
        if (!version)
          break;
        if ((version->vna_flags & VER_FLG_WEAK) == 0)
          versions.versions.push_back(text_at(names, version->vna_name));
        if (version->vna_next == 0)
          break;
        entry += version->vna_next;
      }
      facts_.needed_versions.push_back(std::move(versions));
      if (need->vn_next == 0)
        break;
      at += need->vn_next;
    }
  }

  const ReadAt& read_at_;
  ElfFacts facts_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
};

bool is_printable(char byte) {
  return byte >= 0x20 && byte < 0x7f;
}

} // namespace

ElfFacts read_elf(const ReadAt& read_at) {
  return Reader(read_at).read();
}

void each_text(const ReadAt& read_at, const std::vector<FileRange>& ranges, std::size_t least,
               std::uint64_t max_bytes, const std::function<void(std::string_view)>& visit) {
  constexpr std::size_t piece_bytes = 1U << 20, longest = 4096;
  for (const FileRange& range : ranges) {
    std::string rest; // start of a text that continues in the next piece
    std::uint64_t done = 0;
    while (done < range.size_bytes && max_bytes > 0) {
      const auto wanted = static_cast<std::size_t>(
          std::min<std::uint64_t>({piece_bytes, range.size_bytes - done, max_bytes}));
      const std::string piece = read_at(range.offset + done, wanted);
      if (piece.empty())
        break;
      done += piece.size();
      max_bytes -= std::min<std::uint64_t>(max_bytes, piece.size());
      std::size_t start = 0;
      for (std::size_t at = 0; at < piece.size(); ++at) {
        if (is_printable(piece[at]))
          continue;
        if (piece[at] == '\0') {
          std::string_view text(piece.data() + start, at - start);
          if (!rest.empty()) {
            rest += text;
            text = rest;
          }
          if (text.size() >= least)
            visit(text.substr(text.size() - std::min(text.size(), longest)));
        }
        rest.clear();
        start = at + 1;
      }
      rest.append(piece, start);
      if (rest.size() > longest)
        rest.erase(0, rest.size() - longest);
    }
  }
}

} // namespace shmemctl::libraries
