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

/// The parts of `range` in front of and behind `hole`.
void subtract(const PageRange& range, const PageRange& hole, std::vector<PageRange>& rest) {
  const PageRange before{range.begin, std::clamp(hole.begin, range.begin, range.end)};
  const PageRange behind{std::clamp(hole.end, range.begin, range.end), range.end};
  if (before.size_bytes() > 0)
    rest.push_back(before);
  if (behind.size_bytes() > 0)
    rest.push_back(behind);
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
      throw system_error("/proc/self/exe", "read", errno, "look at the file system it is on");
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
  std::optional<PageRange> pages;
  std::uintptr_t load_address = 0;
  std::optional<std::string> build_id;
};

/// The first object is the main program; the walk ends with it.
int look_at_main_program(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  const std::span headers(info->dlpi_phdr, info->dlpi_phnum);
  search.load_address = info->dlpi_addr;
  search.pages =
      writable_pages(headers, info->dlpi_addr, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
  for (const ElfW(Phdr) & header : headers)
    if (header.p_type == PT_NOTE && !search.build_id)
      search.build_id = find_build_id(
          {reinterpret_cast<const std::byte*>(info->dlpi_addr + header.p_vaddr), header.p_memsz});
  return 1;
}

} // namespace

std::optional<PageRange> writable_pages(std::span<const ElfW(Phdr)> headers,
                                        std::uintptr_t load_address, std::size_t page_bytes) {
  const auto down = [&](std::uintptr_t address) { return address / page_bytes * page_bytes; };
  const auto up = [&](std::uintptr_t address) { return down(address + page_bytes - 1); };
  // The loader protects whole pages only: a page that RELRO ends in stays writable.
  PageRange relro;
  for (const ElfW(Phdr) & header : headers)
    if (header.p_type == PT_GNU_RELRO)
      relro = {down(load_address + header.p_vaddr),
               down(load_address + header.p_vaddr + header.p_memsz)};
  std::vector<PageRange> pieces;
  for (const ElfW(Phdr) & header : headers) {
    if (header.p_type != PT_LOAD || (header.p_flags & PF_W) == 0 || header.p_memsz == 0)
      continue;
    if ((header.p_flags & PF_X) != 0)
      return std::nullopt;
    const std::uintptr_t begin = load_address + header.p_vaddr;
    subtract({down(begin), up(begin + header.p_memsz)}, relro, pieces);
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const PageRange& left, const PageRange& right) { return left.begin < right.begin; });
  std::optional<PageRange> largest;
  PageRange joined;
  for (const PageRange& piece : pieces) {
    if (joined.size_bytes() > 0 && piece.begin <= joined.end)
      joined.end = std::max(joined.end, piece.end);
    else
      joined = piece;
    if (!largest || joined.size_bytes() > largest->size_bytes())
      largest = joined;
  }
  return largest;
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
  if (!search.pages)
    throw Error(ExitCode::unavailable, subject, "share",
                "no segment of it is writable and not executable", keep_private);
  return {*search.pages, search.load_address,
          search.build_id ? *search.build_id : hash_of_program_file()};
}

} // namespace shmemctl
