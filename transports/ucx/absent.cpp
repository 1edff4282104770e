#include "transports/ucx/ucx.h"

#if !__has_include(<ucp/api/ucp.h>)

#include "src/base/error.h"

namespace shmemctl {

namespace {

class AbsentUcx final : public Transport {
public:
  const char* name() const override { return "ucx"; }
  std::string local_info() override { return std::string("!") + reason; }
  Reach reach(const PeerPlace&, const PeerPlace&) const override { return {0, reason}; }
  void connect(const std::vector<PeerPlace>&, Exchange& exchange, const Deadline&) override {
    exchange.allgather({});
  }
  bool has_keys() const override { return true; }
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
  static constexpr const char* reason =
      "this program was built without UCX's headers (package libucx-dev)";
  [[noreturn]] static void refuse() {
    throw Error(ExitCode::unavailable, "ucx", "use", reason, "build it where they are installed");
  }
};

} // namespace

std::unique_ptr<Transport> make_ucx_transport(const TransportSetup&, const UcxSettings&) {
  return std::make_unique<AbsentUcx>();
}

bool built_with_ucx() {
  return false;
}

} // namespace shmemctl

#endif
