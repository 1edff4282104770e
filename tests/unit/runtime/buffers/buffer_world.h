// The Buffers of several PEs in one process.
#pragma once

#include <array>
#include <atomic>
#include <fcntl.h>
#include <functional>
#include <linux/userfaultfd.h>
#include <memory>
#include <poll.h>
#include <random>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <thread>

#include "src/runtime/buffers.h"
#include "tests/support/expect_error.h"
#include "tests/unit/runtime/buffers/buffer_memory.h"

namespace shmemctl::test {

class BufferWorld {
public:
  explicit BufferWorld(int n_pes, const std::function<void(BuffersConfig&)>& change = {}) {
    std::random_device random;
    BuffersConfig config;
    for (std::uint8_t& byte : config.secret)
      byte = static_cast<std::uint8_t>(random());
    for (int pe = 0; pe < n_pes; ++pe)
      config.users.push_back(pe);
    config.health = &health_;
    config.backing = backing_.get();
    config.timeout_s = 60;
    config.max_buffers = 64;
    config.staging_bytes = 16 << 10;
    for (config.pe = 0; config.pe < n_pes; ++config.pe) {
      BuffersConfig mine = config;
      if (change)
        change(mine);
      pes_.push_back(std::make_unique<Buffers>(std::move(mine)));
    }
  }
  Buffers& operator[](int pe) { return *pes_[static_cast<std::size_t>(pe)]; }
  void end(int pe) { pes_[static_cast<std::size_t>(pe)].reset(); }

private:
  JobHealth health_;
  std::unique_ptr<HeapBacking> backing_ = make_host_backing({});
  std::vector<std::unique_ptr<Buffers>> pes_;
};

/// A page whose first reader blocks until the test provides its content.
class BlockingPage {
public:
  BlockingPage()
      : file_(
            static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | user_mode_only))) {
    uffdio_api api{UFFD_API, 0, 0};
    uffdio_register range{{address(), page_bytes()}, UFFDIO_REGISTER_MODE_MISSING, 0};
    works_ = file_ && ::ioctl(file_.get(), UFFDIO_API, &api) == 0 &&
             ::ioctl(file_.get(), UFFDIO_REGISTER, &range) == 0;
  }
  ~BlockingPage() { release(0); }
  bool works() const { return works_; } ///< whether the system permits shared buffers
  std::byte* base() const { return pages_.base(); }
  /// Returns when a thread reads it.
  void wait_for_reader() const {
    pollfd event{file_.get(), POLLIN, 0};
    while (::poll(&event, 1, -1) != 1) {
    }
  }
  /// Its content becomes the pattern of `seed`.
  void release(unsigned seed) {
    const std::vector<std::byte> bytes = patterned(page_bytes(), seed);
    uffdio_copy copy{address(), reinterpret_cast<std::uint64_t>(bytes.data()), page_bytes(), 0, 0};
    ::ioctl(file_.get(), UFFDIO_COPY, &copy); // has no effect the second time
  }

private:
  static constexpr int user_mode_only = 1; ///< which any process may request (Linux 5.11)
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(pages_.base()); }
  Pages pages_{1};
  FileDescriptor file_;
  bool works_ = false;
};

} // namespace shmemctl::test
