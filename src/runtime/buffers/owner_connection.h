// The client side: a connection to the owner of registered buffers.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <sys/types.h>
#include <vector>

#include "src/base/deadline.h"
#include "src/base/job_health.h"
#include "src/runtime/buffers/message.h"
#include "src/runtime/buffers/registration_table.h"

namespace shmemctl::buffers {

struct Reply {
  Response response;
  std::vector<FileDescriptor> descriptors;
};

/// Copies between the staging area and local memory, which may be GPU memory.
using LocalCopy = std::function<void(void* to, const void* from, std::size_t size_bytes)>;

/// A connection to one owner. Its calls wait for the owner's service until it responds, the
/// deadline passes, the job fails, or the connection ends. Calls of several threads are serialised.
class OwnerConnection {
public:
  /// Connects, and maps the owner's table. Throws Error: unavailable, deadline.
  OwnerConnection(const JobSecret& secret, int my_pe, int owner_pe, JobHealth& health,
                  double timeout_s);
  OwnerConnection(const OwnerConnection&) = delete;
  OwnerConnection& operator=(const OwnerConnection&) = delete;

  const RegistrationTable& table() const { return *table_; }
  int owner_pe() const { return owner_; }
  /// The owner's process number in this PID namespace; 0 if the process is not visible.
  pid_t process() const { return process_; }
  /// False once the owner has closed the connection.
  bool alive() const;

  Reply open(const BufferHandle& handle);
  /// Makes the owner allocate this PE's staging area; must be called before the next two functions.
  void require_stage();
  /// Copy in steps of the size of the staging area. The caller must hold an OperationGuard. Throw
  /// Error as Buffers::put() and get() do.
  void staged_put(const BufferHandle& handle, std::uint64_t offset_bytes, const void* source,
                  std::size_t size_bytes, std::uint32_t user, const LocalCopy& copy);
  void staged_get(void* target, const BufferHandle& handle, std::uint64_t offset_bytes,
                  std::size_t size_bytes, std::uint32_t user, const LocalCopy& copy);

  /// Asks owner_pe() to close a buffer of this PE. On return that PE no longer maps the buffer.
  void close(const BufferHandle& handle);

private:
  void connect(const Deadline& deadline);
  Reply call(Request request);
  Packet wait_for_packet(const Deadline& deadline);
  void pause(short events, int longest_ms, const Deadline& deadline);
  [[noreturn]] void throw_ended();
  void require_done(const Response& response, const char* attempted) const;

  JobSecret secret_;
  int me_, owner_;
  JobHealth& health_;
  double timeout_s_;
  std::mutex mutex_; ///< held during each exchange
  FileDescriptor socket_;
  pid_t process_ = 0;
  std::uint64_t sequence_ = 0;
  bool staged_ = false;
  std::unique_ptr<RegistrationTable> table_;
};

} // namespace shmemctl::buffers
