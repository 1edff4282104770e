// Bases of transports over another one: every call arrives below with its arguments, except for
// what would lead a caller past them. tests/style/test_transports.py holds the list of functions
// against the interface.
#include "transports/forwarding_transport.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace shmemctl::test {
namespace {

std::string text_of(const RemoteAddress& address) {
  return std::to_string(address.pe) + ":" + std::to_string(address.region) + "+" +
         std::to_string(address.offset_bytes);
}

/// Writes down each call with its arguments; each result is one that no default gives.
class CallLog final : public Transport {
public:
  mutable std::vector<std::string> calls;

  const char* name() const override { return "log"; }
  std::string local_info() override { return note("local_info", "info"); }
  Reach reach(const PeerLocation& me, const PeerLocation& peer) const override {
    return {7, note("reach " + std::to_string(me.pe) + " " + std::to_string(peer.pe), "why")};
  }
  void use_nics(const std::vector<HcaPort>& nics) override {
    note("use_nics " + nics.at(0).device, "");
  }
  void connect(const std::vector<PeerLocation>& peers, Exchange&, const Deadline&) override {
    note("connect " + std::to_string(peers.size()), "");
  }
  bool has_keys() const override { return true; }
  std::string set_region(const RegionView& region) override {
    return note("set_region " + std::to_string(region.region), "key");
  }
  void set_keys(int region, const std::vector<std::string>& keys) override {
    note("set_keys " + std::to_string(region) + " " + keys.at(0), "");
  }
  void add_local(void* base, std::size_t size_bytes) override {
    note("add_local " + std::to_string(*static_cast<int*>(base)) + " " + std::to_string(size_bytes),
         "");
  }
  void remove_local(void* base) override {
    note("remove_local " + std::to_string(*static_cast<int*>(base)), "");
  }
  void put(int context, const RemoteAddress& target, const void* source, std::size_t size_bytes,
           bool blocking) override {
    transfer("put", context, target, source, size_bytes, blocking);
  }
  void get(int context, void* target, const RemoteAddress& source, std::size_t size_bytes,
           bool blocking) override {
    transfer("get", context, source, target, size_bytes, blocking);
  }
  std::uint64_t atomic(int context, const RemoteAddress& target,
                       const AtomicRequest& request) override {
    note("atomic " + std::to_string(context) + " " + text_of(target) + " " +
             std::to_string(request.operand),
         "");
    return 42;
  }
  void post_atomic(int context, const RemoteAddress& target,
                   const AtomicRequest& request) override {
    note("post_atomic " + std::to_string(context) + " " + text_of(target) + " " +
             std::to_string(request.operand),
         "");
  }
  void put_signal(int context, const RemoteAddress& target, const void* source,
                  std::size_t size_bytes, const RemoteAddress& signal, std::uint64_t signal_value,
                  SignalOp op, bool blocking) override {
    transfer("put_signal " + text_of(signal) + " " + std::to_string(signal_value) +
                 (op == SignalOp::add ? " add" : " set"),
             context, target, source, size_bytes, blocking);
  }
  void fence(int context) override { note("fence " + std::to_string(context), ""); }
  void quiet(int context) override { note("quiet " + std::to_string(context), ""); }
  void progress() override { note("progress", ""); }
  bool is_load_store() const override { return true; }
  bool has_direct_atomics() const override { return true; }
  bool atomics_coherent_with_cpu() const override { return false; }
  std::vector<NicTraffic> traffic() const override { return {{{"nic0", 1}, 1, 2, 3, 4, 5}}; }
  std::string connection(int pe) const override {
    return note("connection " + std::to_string(pe), "by cable");
  }
  std::vector<NicPair> nics_to(int pe) const override {
    note("nics_to " + std::to_string(pe), "");
    return {{{"nic0", 1}, {"nic1", 2}}};
  }

private:
  std::string note(std::string call, std::string result) const {
    calls.push_back(std::move(call));
    return result;
  }
  void transfer(const std::string& what, int context, const RemoteAddress& address,
                const void* local, std::size_t size_bytes, bool blocking) {
    note(what + " " + std::to_string(context) + " " + text_of(address) + " " +
             std::to_string(*static_cast<const int*>(local)) + " " + std::to_string(size_bytes) +
             (blocking ? " blocking" : ""),
         "");
  }
};

class Nobody final : public Exchange {
public:
  std::vector<std::string> allgather(const std::string& mine) override { return {mine}; }
  std::vector<std::string> alltoall(const std::vector<std::string>& to_each) override {
    return to_each;
  }
};

class All final : public ForwardingTransport {
public:
  explicit All(Transport& below) : ForwardingTransport(below) {}
};
class Owner final : public ForwardingTransport {
public:
  explicit Owner(std::unique_ptr<Transport> below) : ForwardingTransport(std::move(below)) {}
};
class Operations final : public ForwardingOperations {
public:
  explicit Operations(Transport& below) : ForwardingOperations(below) {}
};

using Calls = std::vector<std::string>;

void set_up(Transport& transport) {
  Nobody exchange;
  int word = 5;
  transport.use_nics({{"nic0", 1}});
  transport.connect({{0, 1, 1, ""}, {1, 2, 2, ""}}, exchange,
                    Deadline::after(std::chrono::seconds(60)));
  transport.set_region({3, nullptr, 0, {}});
  transport.set_keys(3, {"key"});
  transport.add_local(&word, 4);
  transport.remove_local(&word);
}

/// Operations and what a transport says of itself: all that does not set it up.
/// @param counts_traffic false: the owner of the transport below counts it
void expect_operations(Transport& transport, const CallLog& below, bool counts_traffic) {
  below.calls.clear();
  int word = 5;
  const RemoteAddress there{1, 2, 8}, signal{1, 0, 16};
  EXPECT_STREQ(transport.name(), "log");
  EXPECT_EQ(transport.local_info(), "info");
  const Reach reach = transport.reach({0, 1, 1, ""}, {1, 2, 2, ""});
  EXPECT_EQ(reach.capabilities, 7u);
  EXPECT_EQ(reach.reason, "why");
  transport.put(6, there, &word, 4, true);
  transport.get(6, &word, there, 4, false);
  EXPECT_EQ(transport.atomic(6, there, {AtomicOp::add, 8, 9}), 42u);
  transport.post_atomic(6, there, {AtomicOp::add, 8, 9});
  transport.put_signal(6, there, &word, 4, signal, 11, SignalOp::add, true);
  transport.fence(6);
  transport.quiet(6);
  transport.progress();
  EXPECT_FALSE(transport.atomics_coherent_with_cpu());
  ASSERT_EQ(transport.traffic().size(), counts_traffic ? 1u : 0u);
  if (counts_traffic) {
    EXPECT_EQ(transport.traffic()[0].put_bytes, 1u);
  }
  EXPECT_EQ(transport.connection(1), "by cable");
  EXPECT_EQ(transport.nics_to(1), (std::vector<NicPair>{{{"nic0", 1}, {"nic1", 2}}}));
  EXPECT_EQ(below.calls, (Calls{"local_info", "reach 0 1", "put 6 1:2+8 5 4 blocking",
                                "get 6 1:2+8 5 4", "atomic 6 1:2+8 9", "post_atomic 6 1:2+8 9",
                                "put_signal 1:0+16 11 add 6 1:2+8 5 4 blocking", "fence 6",
                                "quiet 6", "progress", "connection 1", "nics_to 1"}));
  // A caller that bypasses the transport would bypass what a derived class changes.
  EXPECT_FALSE(transport.is_load_store());
  EXPECT_FALSE(transport.has_direct_atomics());
  EXPECT_EQ(&transport.for_host_memory(), &transport);
}

TEST(ForwardingTransport, ForwardsEveryCall) {
  CallLog below;
  All transport(below);
  set_up(transport);
  EXPECT_TRUE(transport.has_keys());
  EXPECT_EQ(transport.set_region({3, nullptr, 0, {}}), "key");
  EXPECT_EQ(below.calls, (Calls{"use_nics nic0", "connect 2", "set_region 3", "set_keys 3 key",
                                "add_local 5 4", "remove_local 5", "set_region 3"}));
  expect_operations(transport, below, true);
}

TEST(ForwardingTransport, MayOwnTheTransportBelow) {
  auto made = std::make_unique<CallLog>();
  const CallLog& below = *made;
  Owner transport(std::move(made));
  expect_operations(transport, below, true);
}

TEST(ForwardingOperations, LeavesTheSetUpToTheOwner) {
  CallLog below;
  Operations transport(below);
  set_up(transport);
  EXPECT_FALSE(transport.has_keys());
  EXPECT_EQ(below.calls, Calls{});
  expect_operations(transport, below, false);
}

} // namespace
} // namespace shmemctl::test
