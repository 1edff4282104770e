// Transport for regions of GPU memory over a network that accesses host memory only. A put is
// copied from the GPU to host memory, sent to host memory of the peer, and copied to the peer's GPU
// by the peer's agent, a thread. See docs/explanation/staged.md.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "src/base/error.h"
#include "transports/device_memory_user.h"
#include "transports/forwarding_transport.h"
#include "transports/p2p/copy_engine.h"
#include "transports/region_table.h"
#include "transports/staged/layout.h"
#include "transports/transport.h"

namespace shmemctl {

struct StagedSettings {
  int region = 5; ///< region of the messages (src/abi/device_state.h: region::staging)
  /// Allocates the region, and maps the peers' parts if `below` needs that; collective.
  std::function<RegionView(int region, std::size_t size_bytes, Exchange&)> make_region;
  /// The network, and two of its contexts that no one else uses. It is destroyed before the
  /// region's memory.
  std::shared_ptr<Transport> below;
  int send_context = 0, agent_context = 1;
  std::size_t max_payload_bytes = std::size_t{128} << 10; ///< largest payload of a message
  std::shared_ptr<CopyEngine> copies;                     ///< copies for callers, on their context
  std::shared_ptr<CopyEngine> agent_copies;               ///< copies of the agent, on context 0
  /// The GPU's memory if NICs also write to it directly, past this transport; else nullptr.
  std::shared_ptr<const DeviceMemory> written_by_nics;
};

/// Thread safe as Transport says: a context is used by one thread at a time. All operations on a PE
/// are executed in call order, regardless of contexts.
class StagedTransport final : public ForwardingOperations {
public:
  StagedTransport(const TransportSetup& setup, StagedSettings settings);
  ~StagedTransport() override;
  StagedTransport(const StagedTransport&) = delete;
  StagedTransport& operator=(const StagedTransport&) = delete;

  const char* name() const override { return "staged"; }
  void use_nics(const std::vector<HcaPort>& nics) override { below().use_nics(nics); }
  /// Connects the transport below, too.
  void connect(const std::vector<PeerLocation>& peers, Exchange& exchange,
               const Deadline& deadline) override;
  /// Collective: connects this transport if the one below is already connected.
  void start(Exchange& exchange);
  /// True because the exchange after set_region() ensures that no peer sends to a region that this
  /// PE does not know yet.
  bool has_keys() const override { return true; }
  std::string set_region(const RegionView& region) override;

  void put(int context, const RemoteAddress& target, const void* source, std::size_t size_bytes,
           bool blocking) override;
  void get(int context, void* target, const RemoteAddress& source, std::size_t size_bytes,
           bool blocking) override;
  std::uint64_t atomic(int context, const RemoteAddress& target,
                       const AtomicRequest& request) override;
  void post_atomic(int context, const RemoteAddress& target, const AtomicRequest& request) override;
  void put_signal(int context, const RemoteAddress& target, const void* source,
                  std::size_t size_bytes, const RemoteAddress& signal, std::uint64_t signal_value,
                  SignalOp op, bool blocking) override;
  void fence(int) override {} ///< operations are always executed in order
  void quiet(int context) override;
  void progress() override { check(); }
  /// The target's agent has its GPU execute the atomics.
  bool atomics_coherent_with_cpu() const override { return true; }
  std::string connection(int pe) const override;

private:
  /// Messages to one peer.
  struct Channel {
    std::mutex mutex;
    std::uint64_t issued = 0; ///< number of messages; guarded by the mutex
    std::atomic<std::uint64_t> announced{0};
    /// Slots whose reply has not been read yet.
    std::array<std::atomic<bool>, staged::Layout::slots> awaited{};
  };
  struct Message {
    staged::MessageHead head{};
    const void* payload = nullptr; ///< host or GPU memory
    int context = 0;
  };
  /// A get whose reply has not arrived.
  struct Pending {
    std::uint64_t number;
    std::byte* target;
    std::size_t size_bytes;
  };

  void require(const RemoteAddress& address, std::size_t size_bytes) const;
  staged::MessageHead head_to(staged::MessageOp op, const RemoteAddress& target,
                              std::size_t size_bytes) const;
  std::byte* at(std::size_t offset_bytes) const { return area_.base + offset_bytes; }
  std::uint64_t word(std::size_t offset_bytes) const;

  /// Sends the message if a slot is free. Returns its number, which starts at 1.
  std::optional<std::uint64_t> try_send(int pe, const Message& message);
  std::uint64_t send(int pe, const Message& message);
  void await_reply(int pe, std::uint64_t number);
  void collect(int context, int pe, const Pending& pending);
  Message atomic_message(const RemoteAddress& target, const AtomicRequest& request) const;

  void await_acknowledgements() noexcept;
  void serve() noexcept;
  bool serve_all();
  bool serve_peer(std::size_t peer);
  void carry_out(std::size_t peer, std::uint64_t number);
  void acknowledge(std::size_t peer);
  std::byte* local_at(std::uint32_t region, std::uint64_t offset_bytes, std::uint64_t size_bytes);

  void check() const;
  void fail(const Error& error) noexcept;
  [[noreturn]] void throw_failure() const;

  StagedSettings settings_;
  int pe_;
  std::size_t n_pes_;
  JobHealth& health_;
  double timeout_s_;
  std::string host_;
  staged::Layout layout_;
  RegionView area_;
  RegionTable regions_;
  std::deque<Channel> channels_; ///< by PE
  std::mutex send_mutex_;        ///< guards the send context

  // Used by the agent only.
  struct Inbox {
    std::uint64_t taken = 0, acknowledged = 0;
  };
  std::vector<Inbox> inboxes_;
  unsigned agent_operations_ = 0;

  std::atomic<bool> stop_{false}, failed_{false};
  mutable std::mutex error_mutex_;
  std::optional<Error> error_;
  std::thread agent_; ///< declared last: the thread uses the other members
};

} // namespace shmemctl
