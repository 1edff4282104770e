// Memory in a GPU's place: a processor that touches it where operations name it faults.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <stdexcept>
#include <string>

#include "transports/device_memory_user.h"

namespace shmemctl::test {

class HiddenMemory final : public DeviceMemory {
public:
  explicit HiddenMemory(std::size_t size_bytes) : size_bytes_(size_bytes) {
    const FileDescriptor file(::memfd_create("hidden", MFD_CLOEXEC));
    if (::ftruncate(file.get(), static_cast<off_t>(size_bytes)) != 0)
      throw std::runtime_error("memory for a test");
    const auto map = [&](int rights) {
      void* const at = ::mmap(nullptr, size_bytes, rights, MAP_SHARED, file.get(), 0);
      if (at == MAP_FAILED)
        throw std::runtime_error("memory for a test");
      return static_cast<std::byte*>(at);
    };
    named_ = map(PROT_NONE);
    reached_ = map(PROT_READ | PROT_WRITE);
  }
  ~HiddenMemory() override {
    ::munmap(named_, size_bytes_);
    ::munmap(reached_, size_bytes_);
  }
  HiddenMemory(const HiddenMemory&) = delete;
  HiddenMemory& operator=(const HiddenMemory&) = delete;

  std::byte* base() const { return named_; }
  /// Where the test, and the NIC that it makes up, find what operations call `named`.
  std::byte* reach(const void* named) const {
    return reached_ + (static_cast<const std::byte*>(named) - named_);
  }
  std::string refusal; ///< error of NICs that refuse the memory; "" if they accept it

  std::string text() const override { return "GPU 0"; }
  std::string why_no_dma_buf() const override { return {}; }
  std::optional<DmaBuf> export_dma_buf(std::uintptr_t, std::size_t, std::string&) const override {
    return std::nullopt;
  }
  std::string why_unordered() const override { return {}; }
  bool needs_flush() const override { return false; }
  void flush() const override {}

private:
  std::size_t size_bytes_;
  std::byte *named_ = nullptr, *reached_ = nullptr;
};

} // namespace shmemctl::test
