#include "src/memory/gathered_peers.h"

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/error.h"

namespace shmemctl {

namespace {

constexpr std::size_t most_handle_bytes = 64;
constexpr const char* no_handle = "none";
constexpr char digits[] = "0123456789abcdef";

std::string to_hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += digits[value >> 4];
    text += digits[value & 15];
  }
  return text;
}

/// "" for what is no handle.
std::string from_hex(const std::string& text) {
  if (text.size() % 2 != 0 || text.size() > 2 * most_handle_bytes)
    return "";
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const char* const high = std::strchr(digits, text[i]);
    const char* const low = std::strchr(digits, text[i + 1]);
    if (text[i] == 0 || text[i + 1] == 0 || !high || !low)
      return "";
    bytes += static_cast<char>((high - digits) << 4 | (low - digits));
  }
  return bytes;
}

class GatheredPeers final : public LocalPeers {
public:
  GatheredPeers(std::vector<int> pes, int my_slot,
                std::function<std::vector<std::string>(const std::string&)> gather)
      : pes_(std::move(pes)), my_slot_(my_slot), gather_(std::move(gather)) {}

  int slots() const override { return static_cast<int>(pes_.size()); }
  int my_slot() const override { return my_slot_; }

  std::vector<FileDescriptor> exchange(int mine, const Deadline&) override {
    const std::vector<std::string> all =
        gather_(mine < 0 ? no_handle : to_hex(handle_in_file(mine)));
    std::vector<FileDescriptor> theirs(pes_.size());
    for (std::size_t slot = 0; slot < pes_.size(); ++slot) {
      const std::string& said = all.at(static_cast<std::size_t>(pes_[slot]));
      if (static_cast<int>(slot) == my_slot_ || said == no_handle)
        continue;
      const std::string handle = from_hex(said);
      if (handle.empty())
        throw Error(ExitCode::unavailable, "PE " + std::to_string(pes_[slot]),
                    "read its memory handle", "malformed message", "check the output of that PE");
      theirs[slot] = file_of_handle(handle);
    }
    return theirs;
  }

private:
  std::vector<int> pes_;
  int my_slot_;
  std::function<std::vector<std::string>(const std::string&)> gather_;
};

} // namespace

FileDescriptor file_of_handle(const std::string& bytes) {
  FileDescriptor file(::memfd_create("shmemctl-handle", MFD_CLOEXEC));
  if (!file ||
      ::pwrite(file.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw Error(ExitCode::unavailable, "memory handle", "create a file for it",
                std::strerror(errno), "raise the limit of open files: ulimit -n");
  return file;
}

std::string handle_in_file(int file) {
  char bytes[most_handle_bytes + 1];
  const ssize_t count = ::pread(file, bytes, sizeof bytes, 0);
  return count > 0 && count <= static_cast<ssize_t>(most_handle_bytes)
             ? std::string(bytes, static_cast<std::size_t>(count))
             : "";
}

std::unique_ptr<LocalPeers>
make_gathered_peers(std::vector<int> pes, int my_slot,
                    std::function<std::vector<std::string>(const std::string&)> gather) {
  return std::make_unique<GatheredPeers>(std::move(pes), my_slot, std::move(gather));
}

} // namespace shmemctl
