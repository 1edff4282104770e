// A transport whose operations are executed by QP sets: the implementation of Transport that ibrc,
// ibdevx and ibgda share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/error.h"
#include "transports/device_memory_user.h"
#include "transports/rc/job.h"
#include "transports/rc/segment_key.h"
#include "transports/transport.h"

namespace shmemctl::rc {

/// Index of the QP set, of `qp_sets` (at least one), that serves a context. Context 0 has a set of
/// its own and the other contexts share the rest; a single set serves all.
inline std::size_t qp_set_of(int context, std::size_t qp_sets) {
  const auto number = static_cast<std::size_t>(context);
  return number == 0 || qp_sets == 1 ? 0 : 1 + (number - 1) % (qp_sets - 1);
}

/// @tparam QpSet has Transport's operations, without the parameter `context`
template <class QpSet>
class QpSetTransport : public Transport, public DeviceMemoryUser {
public:
  bool has_keys() const override { return true; }

  void put(int context, const RemoteAddress& target, const void* source, std::size_t size_bytes,
           bool blocking) override {
    qp_set(context).put(target, source, size_bytes, blocking);
  }
  void get(int context, void* target, const RemoteAddress& source, std::size_t size_bytes,
           bool blocking) override {
    qp_set(context).get(target, source, size_bytes, blocking);
  }
  std::uint64_t atomic(int context, const RemoteAddress& target,
                       const AtomicRequest& request) override {
    return qp_set(context).atomic(target, request);
  }
  void post_atomic(int context, const RemoteAddress& target,
                   const AtomicRequest& request) override {
    qp_set(context).post_atomic(target, request);
  }
  void put_signal(int context, const RemoteAddress& target, const void* source,
                  std::size_t size_bytes, const RemoteAddress& signal, std::uint64_t signal_value,
                  SignalOp op, bool blocking) override {
    qp_set(context).put_signal(target, source, size_bytes, signal, signal_value, op, blocking);
  }
  void fence(int context) override {
    if (!qp_sets_.empty())
      qp_set(context).fence();
  }
  void quiet(int context) override {
    if (!qp_sets_.empty())
      qp_set(context).quiet();
  }

protected:
  /// progress() polls only once in this many calls: a caller that waits for a word of memory calls
  /// it in a loop, and polling each time would cost more than it gains.
  static constexpr unsigned calls_between_polls = 16;

  /// Why this PE cannot use the transport; "" if it can, even if it is not connected yet.
  virtual const std::string& reason() const = 0;
  virtual const Job& job() const = 0;

  QpSet& qp_set(int context) const {
    if (qp_sets_.empty()) [[unlikely]]
      throw_unconnected();
    return *qp_sets_[qp_set_of(context, host_qp_sets_)];
  }
  [[noreturn]] void throw_unconnected() const {
    throw Error(ExitCode::unavailable, name(), "use",
                reason().empty() ? "this PE is not connected" : reason(),
                "run shmemctl bringup to see which PEs can reach each other", job().where());
  }
  /// Decodes the key that a peer's set_region() returned. Throws Error (unavailable) for malformed
  /// bytes, and for a key that lacks the rkey of a port that this PE is connected to.
  SegmentKey read_key(int pe, const std::string& bytes, std::size_t max_ports) const {
    std::optional<SegmentKey> key = from_bytes<SegmentKey>(bytes);
    if (key && key->keys.size() > max_ports)
      key.reset();
    const std::size_t paths = qp_sets_.empty() ? 0 : qp_sets_[0]->paths_to(pe);
    for (std::size_t path = 0; key && key->size_bytes > 0 && path < paths; ++path)
      if (qp_sets_[0]->endpoint(pe, path).peer_port >= key->keys.size())
        key.reset();
    if (!key)
      throw job().malformed(pe, "its rkeys");
    return std::move(*key);
  }
  /// The result of try_device_memory() if there are no connections.
  DeviceReach unconnected_reach() const {
    return {"", reason().empty() ? "this PE is not connected" : reason()};
  }
  /// Counts a call of progress(), and polls the QP sets once in calls_between_polls calls.
  /// @return the number of earlier calls
  unsigned poll_qp_sets() {
    const unsigned call = progress_calls_.fetch_add(1, std::memory_order_relaxed);
    if (call % calls_between_polls == 0)
      for (const std::unique_ptr<QpSet>& each : qp_sets_)
        each->progress();
    return call;
  }

  /// Empty if this PE has no connections. The destructor of a derived class destroys the QP sets
  /// before the members that they use.
  std::vector<std::unique_ptr<QpSet>> qp_sets_;
  /// How many QP sets, counted from the first, serve contexts of the host; at least 1 if there are
  /// any.
  std::size_t host_qp_sets_ = 1;

private:
  std::atomic<unsigned> progress_calls_{0};
};

} // namespace shmemctl::rc
