// A transport that reaches no PE and whose operations do nothing: tests override what they are
// about.
#pragma once

#include <string>
#include <vector>

#include "transports/transport.h"

namespace shmemctl::test {

class NoTransport : public Transport {
public:
  const char* name() const override { return "none"; }
  std::string local_info() override { return {}; }
  Reach reach(const PeerLocation&, const PeerLocation&) const override { return {}; }
  void connect(const std::vector<PeerLocation>&, Exchange&, const Deadline&) override {}
  std::string set_region(const RegionView&) override { return {}; }
  void put(int, const RemoteAddress&, const void*, std::size_t, bool) override {}
  void get(int, void*, const RemoteAddress&, std::size_t, bool) override {}
  std::uint64_t atomic(int, const RemoteAddress&, const AtomicRequest&) override { return 0; }
  void put_signal(int, const RemoteAddress&, const void*, std::size_t, const RemoteAddress&,
                  std::uint64_t, SignalOp, bool) override {}
  void fence(int) override {}
  void quiet(int) override {}
};

} // namespace shmemctl::test
