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

/// Between the staging area and local memory, which may be a GPU's.
using LocalCopy = std::function<void(void* to, const void* from, std::size_t size_bytes)>;

/// A connection to one owner. Its calls wait for the owner's service: they end with the deadline,
/// when the job fails, or when the connection does. Threads take turns.
class OwnerConnection {
public:
  /// Connects, and maps the owner's table. Throws Error: unavailable, deadline.
  OwnerConnection(const JobSecret& secret, int my_pe, int owner_pe, JobHealth& health,
                  double timeout_s);
  OwnerConnection(const OwnerConnection&) = delete;
  OwnerConnection& operator=(const OwnerConnection&) = delete;

  const RegistrationTable& table() const { return *table_; }
  int owner_pe() const { return owner_; }
  /// The owner's process number as seen from here; 0 if it is not visible.
  pid_t process() const { return process_; }
  /// False once the owner's end is closed.
  bool alive() const;

  Reply open(const BufferHandle& handle);
  /// Asks for this PE's staging area; must have been called before the next two.
  void require_stage();
  /// In steps of the staging area. The caller holds a Lease. Throw Error as put and get do.
  void staged_put(const BufferHandle& handle, std::uint64_t offset_bytes, const void* source,
                  std::size_t size_bytes, std::uint32_t user, const LocalCopy& copy);
  void staged_get(void* target, const BufferHandle& handle, std::uint64_t offset_bytes,
                  std::size_t size_bytes, std::uint32_t user, const LocalCopy& copy);

  /// Tells that PE to forget a buffer of this PE. On return it has no mapping of it any more.
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
  std::mutex mutex_; ///< held over each exchange
  FileDescriptor socket_;
  pid_t process_ = 0;
  std::uint64_t sequence_ = 0;
  bool staged_ = false;
  std::unique_ptr<RegistrationTable> table_;
};

} // namespace shmemctl::buffers
