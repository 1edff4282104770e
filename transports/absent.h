// Stands in for a transport whose library's headers were missing at build time: it reaches nobody,
// and says why.
#pragma once

#include <string>
#include <utility>

#include "src/base/error.h"
#include "transports/transport.h"

namespace shmemctl {

class AbsentTransport final : public Transport {
public:
  /// @param package what has to be installed before the next build
  AbsentTransport(std::string name, std::string package)
      : name_(std::move(name)), package_(std::move(package)) {}

  const char* name() const override { return name_.c_str(); }
  std::string local_info() override { return {}; }
  Reach reach(const PeerPlace&, const PeerPlace&) const override { return {0, reason()}; }
  void connect(const std::vector<PeerPlace>&, Exchange&, const Deadline&) override {}
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
  std::string reason() const {
    return "this build has no " + name_ + ": the headers of " + package_ + " were missing";
  }
  [[noreturn]] void refuse() const {
    throw Error(ExitCode::unavailable, name_, "use", reason(),
                "install " + package_ + " and build again");
  }

  std::string name_, package_;
};

} // namespace shmemctl
