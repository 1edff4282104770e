#include "transports/loopback.h"

#include <gtest/gtest.h>

#include <cstring>

#include "src/base/error.h"
#include "transports/shm/shm.h"

namespace shmemctl::test {
namespace {

constexpr double loopback_timeout_s = 30;

/// Failures of a transport that reports success.
enum class Wrong { nothing, put, get, atomic, signal, reach };

/// Memory copies, with one defect.
class Mistaken final : public Transport {
public:
  explicit Mistaken(Wrong wrong) : wrong_(wrong) {}
  const char* name() const override { return "mistaken"; }
  std::string local_info() override { return {}; }
  Reach reach(const PeerLocation&, const PeerLocation&) const override {
    return wrong_ == Wrong::reach ? Reach{0, "no cable"}
                                  : Reach{can_put | can_get | can_atomics, ""};
  }
  void use_nics(const std::vector<HcaPort>& nics) override { nics_ = nics; }
  void connect(const std::vector<PeerLocation>& peers, Exchange&, const Deadline&) override {
    EXPECT_EQ(peers.size(), 1u);
  }
  std::string set_region(const RegionView& region) override {
    base_ = region.base;
    return {};
  }
  void put(int, const RemoteAddress& target, const void* source, std::size_t size_bytes,
           bool) override {
    std::memcpy(base_ + target.offset_bytes, source, size_bytes - (wrong_ == Wrong::put));
  }
  void get(int, void* target, const RemoteAddress& source, std::size_t size_bytes, bool) override {
    const bool page = size_bytes > 8;
    std::memcpy(target, base_ + source.offset_bytes, size_bytes - (page && wrong_ == Wrong::get));
  }
  std::uint64_t atomic(int, const RemoteAddress& target, const AtomicRequest& request) override {
    std::uint64_t old = 0;
    std::memcpy(&old, base_ + target.offset_bytes, 8);
    const std::uint64_t sum = old + request.operand + (wrong_ == Wrong::atomic);
    std::memcpy(base_ + target.offset_bytes, &sum, 8);
    return old;
  }
  void put_signal(int context, const RemoteAddress& target, const void* source,
                  std::size_t size_bytes, const RemoteAddress& signal, std::uint64_t value,
                  SignalOp, bool) override {
    if (wrong_ != Wrong::signal)
      put(context, signal, &value, sizeof value, true);
    put(context, target, source, size_bytes, true);
  }
  void fence(int) override {}
  void quiet(int) override {}
  std::string connection(int) const override {
    return nics_.empty() ? "" : nics_.front().device + " to itself";
  }

private:
  Wrong wrong_;
  std::vector<HcaPort> nics_;
  std::byte* base_ = nullptr;
};

TEST(Loopback, PassesOverSharedMemory) {
  const auto shm = make_shm_transport();
  EXPECT_EQ(run_loopback(*shm, {}, loopback_timeout_s).unusable, "");
}

TEST(Loopback, SaysHowItIsConnected) {
  Mistaken right(Wrong::nothing);
  EXPECT_EQ(run_loopback(right, {{"rxe0", 1}}, loopback_timeout_s).connection, "rxe0 to itself");
}

TEST(Loopback, SaysWhyItCannotBeUsed) {
  Mistaken unusable(Wrong::reach);
  EXPECT_EQ(run_loopback(unusable, {}, loopback_timeout_s).unusable, "no cable");
}

TEST(Loopback, FindsEachMistake) {
  for (const auto& [wrong, operation] : {std::pair{Wrong::put, "put"}, std::pair{Wrong::get, "get"},
                                         std::pair{Wrong::atomic, "perform an atomic add"},
                                         std::pair{Wrong::signal, "put with signal"}}) {
    Mistaken transport(wrong);
    try {
      run_loopback(transport, {}, loopback_timeout_s);
      ADD_FAILURE() << operation << " was not found";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::finding);
      EXPECT_EQ(error.attempted(), operation);
    }
  }
}

} // namespace
} // namespace shmemctl::test
