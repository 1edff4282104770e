// The transports that the proxy is tried on, with one thread and with several.
#include <filesystem>

#include "tests/unit/runtime/proxy/network/network.h"

#if __has_include(<infiniband/verbs.h>)
#include "tests/support/fake_verbs.h"
#include "tests/support/transport_world.h"
#include "transports/ibrc/ibrc_transport.h"
#endif

namespace shmemctl::test {
namespace {

Network by_transport(const std::string& name, const std::string& transport,
                     const Environment& more = {}) {
  Network network;
  network.name = name;
  network.environment = more;
  network.environment["SHMEMCTL_TRANSPORT"] = transport;
  return network;
}

#if __has_include(<infiniband/verbs.h>)
FakeDevice fake_device(const std::string& name, std::uint8_t host) {
  FakeDevice made;
  made.name = name;
  made.ports[0].gids = {link_local_gid(0, host), ipv4_gid(1, host)};
  return made;
}

/// The part of one thread.
void run_thread(TransportPe& me, unsigned threads, const ProxyBody& body) {
  ProxyOptions options;
  options.threads = threads;
  options.timeout_s = me.timeout_s;
  Proxy proxy(std::vector<Transport*>(static_cast<std::size_t>(me.n_pes), me.transport), *me.health,
              options);
  ProxyPe mine;
  mine.pe = me.pe;
  mine.n_pes = me.n_pes;
  mine.proxy = &proxy;
  mine.heap = me.heap;
  mine.at = [](int pe, std::size_t offset_bytes) {
    return RemoteAddress{pe, region::heap, offset_bytes};
  };
  mine.barrier = [&] { me.barrier(); };
  mine.wait_word = [&](std::size_t offset_bytes, std::uint64_t value, int from) {
    const Deadline deadline = me.deadline();
    std::atomic_ref word(*reinterpret_cast<std::uint64_t*>(me.heap + offset_bytes));
    while (word.load(std::memory_order_acquire) != value) {
      me.health->check();
      if (deadline.passed())
        me.health->give_up("word of a proxy", from);
      std::this_thread::yield();
    }
  };
  me.barrier();
  body(mine);
  proxy.stop();
}

/// ibrc over fake devices of this process.
Network over_fake_verbs() {
  Network network;
  network.name = "ibrc_fake";
  network.processes = false;
  network.run_in_threads = [](int n_pes, unsigned threads, const ProxyBody& body) {
    FakeVerbs verbs({fake_device("fake0", 1), fake_device("fake1", 2)});
    TransportWorldOptions wanted;
    wanted.n_pes = n_pes;
    wanted.heap_bytes = proxy_heap_bytes;
    wanted.nics = {{"fake0", 1}, {"fake1", 1}};
    wanted.options = {{"IB_NUM_RC_PER_DEVICE", "4"}}; // a lane for each proxy thread
    const std::string reason = run_transport_world(
        [&](const TransportSetup& setup) {
          return std::make_unique<ibrc::IbrcTransport>(setup, verbs.functions(), "");
        },
        [&](TransportPe& me) { run_thread(me, threads, body); }, wanted);
    EXPECT_EQ(verbs.misuse(), "");
    return reason;
  };
  return network;
}
#endif

std::vector<Network> all() {
  Network shm = by_transport("shm", "shm");
  shm.one_node = true;
  std::vector<Network> list = {
      shm,
      by_transport("libfabric_tcp", "libfabric",
                   {{"SHMEMCTL_LIBFABRIC_PROVIDER", "tcp"}, {"SHMEMCTL_LIBFABRIC_PROFILE", "tcp"}}),
      by_transport("libfabric_efa", "libfabric",
                   {{"SHMEMCTL_LIBFABRIC_PROVIDER", "tcp"}, {"SHMEMCTL_LIBFABRIC_PROFILE", "efa"}}),
      by_transport("ucx", "ucx")};
  if (std::filesystem::exists("/sys/class/infiniband/rxe0")) // the lab
    list.push_back(by_transport("ibrc", "ibrc", {{"SHMEMCTL_IB_TIMEOUT", "14"}}));
#if __has_include(<infiniband/verbs.h>)
  list.push_back(over_fake_verbs());
#endif
  std::vector<Network> each;
  for (Network& network : list)
    for (const unsigned threads : {1u, 3u}) {
      network.threads = threads;
      each.push_back(network);
    }
  return each;
}

INSTANTIATE_TEST_SUITE_P(Over, ProxyNetwork, testing::ValuesIn(all()), by_network);

} // namespace
} // namespace shmemctl::test
