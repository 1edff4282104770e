// Replaces a transport that some PE lacks or cannot open: reaches no PE, and says why.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transports/registry.h"
#include "transports/transport.h"

namespace shmemctl {

class AbsentTransport final : public Transport {
public:
  /// @param reason one line
  AbsentTransport(std::string name, std::string reason, std::string fix)
      : name_(std::move(name)), reason_(std::move(reason)), fix_(std::move(fix)) {}

  const char* name() const override { return name_.c_str(); }
  std::string local_info() override;
  Reach reach(const PeerLocation&, const PeerLocation&) const override { return {0, reason_}; }
  void connect(const std::vector<PeerLocation>&, Exchange&, const Deadline&) override {}
  std::string set_region(const RegionView&) override { return {}; }
  void put(int, const RemoteAddress&, const void*, std::size_t, bool) override { refuse(); }
  void get(int, void*, const RemoteAddress&, std::size_t, bool) override { refuse(); }
  std::uint64_t atomic(int, const RemoteAddress&, const AtomicRequest&) override { refuse(); }
  void put_signal(int, const RemoteAddress&, const void*, std::size_t, const RemoteAddress&,
                  std::uint64_t, SignalOp, bool) override {
    refuse();
  }
  void fence(int) override {}
  void quiet(int) override {}

private:
  [[noreturn]] void refuse() const;

  std::string name_, reason_, fix_;
};

/// The result of a transport's make function in a build without that transport.
std::unique_ptr<Transport> not_built(const TransportRow& row);

/// The number and reason of the first PE that has an AbsentTransport; nothing if none has. If one
/// has, no PE connects the transport, since that PE would not take part in the collective calls of
/// the others.
/// @param info result of local_info() on each PE
std::optional<std::string> missing_somewhere(const std::vector<std::string>& info);

} // namespace shmemctl
