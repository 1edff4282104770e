// The server side: responds to other PEs' requests about this PE's registered buffers.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "src/base/deadline.h"
#include "src/runtime/buffers/gpu_buffer_backend.h"
#include "src/runtime/buffers/message.h"
#include "src/runtime/buffers/registration_table.h"
#include "src/runtime/memory/buffers/buffer_pool.h"

namespace shmemctl::buffers {

/// What the service uses besides the pool of buffers.
struct ServiceCallbacks {
  GpuBufferBackend* gpu = nullptr; ///< not owned; nullptr: no buffer is in GPU memory
  /// Unmaps a buffer of another PE, whose memory may be freed after the return.
  std::function<void(int owner_pe, const BufferHandle& theirs)> forget;
};

/// Listens from construction on. The caller drives it by poll(), from one thread at a time.
class BufferService {
public:
  /// @param users the PEs that may send requests, by their index in the registration table
  BufferService(const JobSecret& secret, int pe, std::vector<int> users, BufferPool& pool,
                RegistrationTable& table, ServiceCallbacks callbacks = {});
  BufferService(const BufferService&) = delete;
  BufferService& operator=(const BufferService&) = delete;

  /// Waits for requests for at most `timeout_ms`, and answers them; wake() ends the wait.
  void poll(int timeout_ms);
  void wake() noexcept;
  /// Whether that PE is connected: only then can it use a buffer. A PE that dies is disconnected.
  bool connected(std::size_t user) const {
    return connected_[user].load(std::memory_order_acquire);
  }
  /// Returns the users that may have this GPU buffer mapped, and forgets them. Thread safe.
  std::set<std::size_t> take_openers(const BufferHandle& handle);

private:
  static constexpr std::size_t max_unidentified = 16;
  static constexpr std::size_t nobody = SIZE_MAX;
  struct Link {
    FileDescriptor socket;
    std::size_t user = nobody; ///< nobody: it has not sent its hello yet
  };

  /// The descriptors that are sent with a response.
  struct Files {
    std::vector<int> descriptors;
    std::vector<SharedPiece> pieces; ///< this and `share` keep them open until they are sent
    std::shared_ptr<const GpuShare> share;
  };

  void accept_links();
  /// Answers one request. Returns false if the link is to be closed.
  bool serve(Link& link);
  bool serve_safely(Link& link);
  bool greet(Link& link, const Request& request);
  Response response(const Link& link, const Request& request, Files& files);
  void describe(std::size_t user, const Request& request, Response& response, Files& files);
  void describe_gpu(std::size_t user, const RegisteredBuffer& buffer, Response& response,
                    Files& files);
  void require_not_gone(const RegisteredBuffer& buffer) const;
  void copy(std::size_t user, const Request& request, Response& response);
  void copy_gpu(std::size_t user, const RegisteredBuffer& buffer, const Request& request);
  bool reply(const Link& link, const Response& response, const std::vector<int>& descriptors);
  void end(const Link& link);

  JobSecret secret_;
  int pe_;
  std::vector<int> users_;
  BufferPool& pool_;
  RegistrationTable& table_;
  ServiceCallbacks callbacks_;
  std::mutex openers_mutex_;
  std::map<std::uint64_t, std::set<std::size_t>> openers_; ///< by generation
  FileDescriptor listener_, wake_;
  std::list<Link> links_;
  Deadline deaf_until_ = Deadline::after(std::chrono::seconds(0));
  std::vector<std::atomic<bool>> connected_;
};

/// Owns the registration table, the service, and the thread that drives it. The thread is not that
/// of the proxy: an answer may take as long as copying a buffer, or wait for pages that another
/// thread is replacing, and would block the proxy's ring for that long; and a transport may block
/// the proxy's thread while a peer waits for an answer (docs/explanation/buffers.md).
class BufferServer {
public:
  /// @param users the PEs that may send requests, by their index in the table
  /// Throws Error (unavailable) if there is no memory, socket or thread.
  BufferServer(const TableShape& shape, const char* backing_kind, const JobSecret& secret, int pe,
               std::vector<int> users, BufferPool& pool, ServiceCallbacks callbacks = {});
  /// Ends the thread; later requests find no listener.
  ~BufferServer();
  BufferServer(const BufferServer&) = delete;
  BufferServer& operator=(const BufferServer&) = delete;

  const std::shared_ptr<RegistrationTable>& table() const { return table_; }
  /// As BufferService::connected().
  bool connected(std::size_t user) const { return service_.connected(user); }
  /// As BufferService::take_openers().
  std::set<std::size_t> take_openers(const BufferHandle& handle) {
    return service_.take_openers(handle);
  }

private:
  std::shared_ptr<RegistrationTable>
      table_; ///< shared with this PE's own buffers that it has opened itself
  BufferService service_;
  std::atomic<bool> stop_{false};
  std::thread thread_; ///< declared last: the thread uses the other members
};

} // namespace shmemctl::buffers
