// Stands in for the transport where libibverbs' headers were missing at build time.
#if !__has_include(<infiniband/verbs.h>)

#include "src/base/error.h"
#include "transports/ibrc/ibrc.h"

namespace shmemctl {

namespace {

constexpr const char* reason = "this build has no ibrc: libibverbs' headers were missing";

class AbsentIbrc final : public Transport {
public:
  const char* name() const override { return "ibrc"; }
  std::string local_info() override { return reason; }
  Reach reach(const PeerPlace&, const PeerPlace&) const override { return {0, reason}; }
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
  [[noreturn]] static void refuse() {
    throw Error(ExitCode::unavailable, "ibrc", "use", reason,
                "install libibverbs-dev (rdma-core-devel) and build again");
  }
};

} // namespace

std::unique_ptr<Transport> make_ibrc_transport(const TransportSetup&) {
  return std::make_unique<AbsentIbrc>();
}

} // namespace shmemctl

#endif
