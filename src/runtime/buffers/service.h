// The side of a PE that answers others about its registered buffers.
#pragma once

#include <atomic>
#include <list>
#include <vector>

#include "src/base/deadline.h"
#include "src/memory/buffers/buffer_pool.h"
#include "src/runtime/buffers/control.h"
#include "src/runtime/buffers/message.h"
#include "src/runtime/buffers/packet_socket.h"

namespace shmemctl::buffers {

/// Listens from construction on. Who drives it calls poll(); one thread at a time.
class Service {
public:
  /// @param users the PEs that may ask, by their number in the control table
  Service(const JobSecret& secret, int pe, std::vector<int> users, BufferPool& pool,
          Control& control);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  /// Answers what has been asked, after waiting for at most that long; returns at once after
  /// wake().
  void poll(int timeout_ms);
  void wake() noexcept;
  /// Whether that PE is connected: only then can it use a buffer. One that dies no longer is.
  bool connected(std::size_t user) const {
    return connected_[user].load(std::memory_order_acquire);
  }

private:
  static constexpr std::size_t most_strangers = 16;
  static constexpr std::size_t nobody = SIZE_MAX;
  struct Link {
    FileDescriptor socket;
    std::size_t user = nobody; ///< before its hello
  };

  void accept_links();
  /// False: the link ends.
  bool serve(Link& link);
  bool serve_safely(Link& link);
  bool greet(Link& link, const Request& request);
  Answer answer(const Link& link, const Request& request, std::vector<int>& descriptors,
                std::vector<SharedPiece>& held);
  void describe(const Request& request, Answer& answer, std::vector<int>& descriptors,
                std::vector<SharedPiece>& held);
  void copy(std::size_t user, const Request& request, Answer& answer);
  bool reply(const Link& link, const Answer& answer, const std::vector<int>& descriptors);
  void end(const Link& link);

  JobSecret secret_;
  int pe_;
  std::vector<int> users_;
  BufferPool& pool_;
  Control& control_;
  FileDescriptor listener_, wake_;
  std::list<Link> links_;
  Deadline deaf_until_ = Deadline::after(std::chrono::seconds(0));
  std::vector<std::atomic<bool>> connected_;
};

} // namespace shmemctl::buffers
