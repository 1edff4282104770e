// A shared receive queue for messages of a fixed size, with its completions and buffers. All queue
// pairs of a device can use it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/base/error.h"
#include "transports/rc/pages.h"
#include "transports/verbs/device.h"
#include "transports/verbs/functions.h"
#include "transports/verbs/poll_completions.h"
#include "transports/verbs/queue_pair.h"

namespace shmemctl::verbs {

/// The maximum number of receives in a shared receive queue of the device; 0 if the device does not
/// support such queues.
std::uint32_t max_shared_receives(const Device& device);

/// Not thread safe. poll() posts every consumed receive again before it returns, so up to `depth`
/// messages can be in flight. QPs that use the queue must be destroyed before it.
class SharedReceives {
public:
  /// Throws Error (unavailable).
  /// @param depth at most max_shared_receives()
  SharedReceives(Device& device, std::uint32_t depth, std::size_t message_bytes);
  SharedReceives(const SharedReceives&) = delete;
  SharedReceives& operator=(const SharedReceives&) = delete;
  ~SharedReceives();

  ReceiveTarget place() const { return {queue_.get(), completions_.get()}; }

  /// Takes up to 16 arrived messages, in order, and calls `take(queue_pair_number, bytes,
  /// size_bytes)` for each. Ignores completions with an error, since the sender gets an error too.
  /// Returns the number of completions. Throws Error (unavailable) if the device cannot be polled,
  /// or no longer accepts receives.
  template <class Take>
  int poll(Take&& take) {
    std::array<ibv_wc, batch> arrived;
    const int count = poll_completions(completions_.get(), arrived, [] { return Where(); });
    for (int i = 0; i < count; ++i) {
      const ibv_wc& completion = arrived[static_cast<std::size_t>(i)];
      if (completion.status == IBV_WC_SUCCESS)
        take(completion.qp_num, at(completion.wr_id), completion.byte_len);
    }
    if (count > 0)
      post_again(arrived.data(), count);
    return count;
  }

  /// File descriptor that becomes readable when a message arrives after arm().
  int descriptor() const { return channel_->fd; }
  /// Makes the next message set the descriptor readable. The caller must poll once more afterwards
  /// for messages that arrived before.
  void arm();
  /// Consumes the events that made the descriptor readable.
  void clear_events();

private:
  static constexpr int batch = 16;

  const std::byte* at(std::uint64_t index) const { return memory_.data() + index * message_bytes_; }
  void post_again(const ibv_wc* arrived, int count);
  int post(const std::uint64_t* indices, int count);
  Error failure(const char* what, const char* action, int error_number) const;

  Device& device_;
  std::size_t message_bytes_;
  rc::Pages memory_;
  MemoryRegion registered_;
  CompletionChannel channel_;
  CompletionQueue completions_;
  SharedReceiveQueue queue_;
  unsigned unacknowledged_ = 0;
};

} // namespace shmemctl::verbs
