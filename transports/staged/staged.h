// Regions of GPU memory over a network that accesses host memory only: a put is copied from the GPU
// to host memory, sent to host memory of the peer, and copied into its GPU by a thread of the peer,
// the agent. See docs/explanation/staged.md.
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
  int region = 5; ///< for messages (state.h: region::staging)
  /// Memory for it, and where peers' parts are mapped, if `below` needs that; collective.
  std::function<RegionView(int region, std::size_t size_bytes, Exchange&)> make_region;
  /// The network; contexts of it that no one else uses. Goes before the memory.
  std::shared_ptr<Transport> below;
  int send_context = 0, agent_context = 1;
  std::size_t max_payload_bytes = std::size_t{128} << 10; ///< of a message
  std::shared_ptr<CopyEngine> copies;                     ///< of callers, by their context
  std::shared_ptr<CopyEngine> agent_copies;               ///< of the agent: context 0
  /// The GPU's memory, if NICs write it in addition to the messages; else nullptr.
  std::shared_ptr<const DeviceMemory> written_by_nics;
};

/// Thread safe beyond Transport's requirements: contexts are ignored, and all operations on a PE
/// are performed in call order.
class StagedTransport final : public ForwardingOperations {
public:
  StagedTransport(const TransportSetup& setup, StagedSettings settings);
  ~StagedTransport() override;
  StagedTransport(const StagedTransport&) = delete;
  StagedTransport& operator=(const StagedTransport&) = delete;

  const char* name() const override { return "staged"; }
  void use_nics(const std::vector<HcaPort>& nics) override { below().use_nics(nics); }
  /// Connects the underlying transport, too.
  void connect(const std::vector<PeerLocation>& peers, Exchange& exchange,
               const Deadline& deadline) override;
  /// Collective: the same for a transport below that is connected.
  void start(Exchange& exchange);
  /// The exchange that follows set_region(): no peer sends before the region is known here.
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
  void fence(int) override {} ///< operations are executed in order anyway
  void quiet(int context) override;
  void progress() override { check(); }
  /// Atomics are executed by the target's agent and its GPU.
  bool atomics_coherent_with_cpu() const override { return true; }
  std::string connection(int pe) const override;

private:
  /// Messages to one peer.
  struct Channel {
    std::mutex mutex;
    std::uint64_t issued = 0; ///< messages; under the mutex
    std::atomic<std::uint64_t> announced{0};
    /// Slots whose reply has not been read yet.
    std::array<std::atomic<bool>, staged::Layout::slots> awaited{};
  };
  struct Message {
    staged::MessageHead head{};
    const void* payload = nullptr; ///< of any kind of memory
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

  /// Sends it if there is a slot; its number, from 1 on.
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
  std::mutex send_mutex_;        ///< of the send context

  // The agent's own.
  struct Inbox {
    std::uint64_t taken = 0, acknowledged = 0;
  };
  std::vector<Inbox> inboxes_;
  unsigned agent_operations_ = 0;

  std::atomic<bool> stop_{false}, failed_{false};
  mutable std::mutex error_mutex_;
  std::optional<Error> error_;
  std::thread agent_; ///< last: it uses the others
};

} // namespace shmemctl
