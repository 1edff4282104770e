#include "src/memory/program_data.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <vector>

#include "src/base/error.h"
#include "src/base/file_descriptor.h"
#include "src/base/round_up.h"
#include "src/memory/siphash.h"

namespace shmemctl {

namespace {

constexpr const char* subject = "this program's global variables";
constexpr const char* keep_private =
    "build it with an ordinary linker script; or keep symmetric variables in shmem_malloc";

bool overlap(const PageRange& left, const PageRange& right) {
  return left.begin < right.end && right.begin < left.end;
}

PageRange common(const PageRange& left, const PageRange& right) {
  const PageRange both{std::max(left.begin, right.begin), std::min(left.end, right.end)};
  return both.begin < both.end ? both : PageRange{};
}

/// `ranges` without `hole`.
std::vector<PageRange> without(const std::vector<PageRange>& ranges, const PageRange& hole) {
  std::vector<PageRange> rest;
  for (const PageRange& range : ranges)
    for (const PageRange& part :
         {PageRange{range.begin, std::clamp(hole.begin, range.begin, range.end)},
          PageRange{std::clamp(hole.end, range.begin, range.end), range.end}})
      if (part.size_bytes() > 0)
        rest.push_back(part);
  return rest;
}

/// Sorted, with those that touch or overlap as one.
std::vector<PageRange> joined(std::vector<PageRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const PageRange& left, const PageRange& right) { return left.begin < right.begin; });
  std::vector<PageRange> out;
  for (const PageRange& range : ranges)
    if (!out.empty() && range.begin <= out.back().end)
      out.back().end = std::max(out.back().end, range.end);
    else if (range.size_bytes() > 0)
      out.push_back(range);
  return out;
}

/// A hash of the file that is run, for linkers that write no build id.
std::string hash_of_program_file() {
  const FileDescriptor file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  if (!file)
    throw system_error("/proc/self/exe", "read", errno, "mount /proc in this container");
  std::array<std::uint8_t, 16> chain{};
  std::array<std::byte, 1 << 16> block;
  while (true) {
    const ssize_t size_bytes = ::read(file.get(), block.data(), block.size());
    if (size_bytes < 0 && errno == EINTR)
      continue;
    if (size_bytes < 0)
      throw system_error("/proc/self/exe", "read", errno, "check the file system it is on");
    if (size_bytes == 0)
      break;
    const std::uint64_t hash = siphash(chain, block.data(), static_cast<std::size_t>(size_bytes));
    std::memcpy(chain.data(), &hash, sizeof hash);
  }
  std::uint64_t hash = 0;
  std::memcpy(&hash, chain.data(), sizeof hash);
  return fmt::format("contents-{:016x}", hash);
}

struct Search {
  DataLayout layout;
  std::uintptr_t load_address = 0;
  std::optional<std::string> build_id;
};

/// The first object is the main program; the walk ends with it.
int look_at_main_program(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  const std::span headers(info->dlpi_phdr, info->dlpi_phnum);
  search.load_address = info->dlpi_addr;
  search.layout =
      data_layout(headers, info->dlpi_addr, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  for (const ElfW(Phdr) & header : headers)
    if (header.p_type == PT_NOTE && !search.build_id)
      search.build_id = find_build_id(
          {reinterpret_cast<const std::byte*>(info->dlpi_addr + header.p_vaddr), header.p_memsz});
  return 1;
}

} // namespace

DataLayout data_layout(std::span<const ElfW(Phdr)> headers, std::uintptr_t load_address,
                       std::size_t page_bytes) {
  const auto down = [&](std::uintptr_t address) { return address / page_bytes * page_bytes; };
  const auto up = [&](std::uintptr_t address) { return down(address + page_bytes - 1); };
  PageRange relro;
  std::vector<PageRange> writable, read_only, code;
  DataLayout layout;
  for (const ElfW(Phdr) & header : headers) {
    const std::uintptr_t begin = load_address + header.p_vaddr;
    // The loader protects whole pages only: a page that RELRO ends in stays writable.
    if (header.p_type == PT_GNU_RELRO)
      relro = {down(begin), down(begin + header.p_memsz)};
    if (header.p_type != PT_LOAD || header.p_memsz == 0)
      continue;
    const PageRange pages{down(begin), up(begin + header.p_memsz)};
    const bool is_writable = (header.p_flags & PF_W) != 0, is_code = (header.p_flags & PF_X) != 0;
    if (is_writable && is_code)
      layout.problem = "a segment of it is writable and executable";
    (is_code ? code : is_writable ? writable : read_only).push_back(pages);
    if (is_writable && !is_code && header.p_filesz > 0)
      layout.stored.push_back({pages.begin, up(begin + header.p_filesz)});
  }
  writable = joined(without(writable, relro));
  if (layout.problem.empty() && writable.empty())
    layout.problem = "no segment of it is writable and not executable";
  if (!layout.problem.empty())
    return layout;
  layout.pages = {writable.front().begin, writable.back().end};
  code.push_back(relro);
  for (const PageRange& range : code)
    if (overlap(range, layout.pages))
      layout.problem = "code, or what the loader protects (RELRO), lies between its writable "
                       "segments";
  std::vector<PageRange> between{layout.pages};
  for (const PageRange& range : writable)
    between = without(between, range);
  for (const PageRange& range : read_only)
    for (const PageRange& gap : between)
      if (const PageRange part = common(range, gap); part.size_bytes() > 0)
        layout.constants.push_back(part);
  layout.constants = joined(std::move(layout.constants));
  for (const PageRange& range : layout.constants)
    between = without(between, range);
  layout.gaps = std::move(between);
  layout.stored = joined(without(layout.stored, relro));
  layout.zeroed = std::move(writable);
  for (const PageRange& range : layout.stored)
    layout.zeroed = without(layout.zeroed, range);
  return layout;
}

std::optional<std::string> find_build_id(std::span<const std::byte> notes) {
  const auto padded = [](std::uint64_t size_bytes) { return round_up(size_bytes, 4); };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes.data(), sizeof note);
    const std::uint64_t name_bytes = padded(note.n_namesz), text_bytes = padded(note.n_descsz);
    if (sizeof note + name_bytes + text_bytes > notes.size())
      return std::nullopt;
    const std::byte* name = notes.data() + sizeof note;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
      std::string text;
      for (const std::byte byte : notes.subspan(sizeof note + name_bytes, note.n_descsz))
        text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
      return text;
    }
    notes = notes.subspan(sizeof note + name_bytes + text_bytes);
  }
  return std::nullopt;
}

ProgramData find_program_data() {
  Search search;
  ::dl_iterate_phdr(look_at_main_program, &search);
  if (!search.layout.problem.empty())
    throw Error(ExitCode::unavailable, subject, "share", search.layout.problem, keep_private);
  return {std::move(search.layout), search.load_address,
          search.build_id ? *search.build_id : hash_of_program_file()};
}

} // namespace shmemctl
