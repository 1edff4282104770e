// Messages of fixed size that any queue pair of a device receives: a shared receive queue, its
// completions and its buffers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/base/error.h"
#include "transports/rc/pages.h"
#include "transports/verbs/device.h"
#include "transports/verbs/functions.h"
#include "transports/verbs/queue_pair.h"

namespace shmemctl::verbs {

/// How many receives a device can hold in one shared receive queue; 0 if it has none.
std::uint32_t max_shared_receives(const Device& device);

/// A shared receive queue. Not thread safe. Every consumed receive is posted again before poll()
/// returns, so that as many messages can be in flight as the queue is deep. QPs that use it must be
/// destroyed first.
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
  /// size_bytes)` for each. Failed ones are dropped: the sender knows. Returns the number of
  /// completions. Throws Error (unavailable) if the device no longer accepts receives.
  template <class Take>
  int poll(Take&& take) {
    std::array<ibv_wc, batch> arrived;
    const int count = ::ibv_poll_cq(completions_.get(), batch, arrived.data());
    for (int i = 0; i < count; ++i) {
      const ibv_wc& completion = arrived[static_cast<std::size_t>(i)];
      if (completion.status == IBV_WC_SUCCESS)
        take(completion.qp_num, at(completion.wr_id), completion.byte_len);
    }
    if (count > 0)
      post_again(arrived.data(), count);
    return count;
  }

  /// Readable when a message has arrived after arm().
  int descriptor() const { return channel_->fd; }
  /// From now on the next message makes the descriptor readable; poll once more for messages that
  /// came before.
  void arm();
  /// Consumes the event that made the descriptor readable.
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
