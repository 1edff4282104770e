// ibrc over this machine's devices, and over fake devices of this process.
#if __has_include(<infiniband/verbs.h>)

#include <filesystem>

#include "tests/support/fake_verbs.h"
#include "tests/unit/transports/conformance.h"
#include "transports/ibrc/ibrc.h"
#include "transports/ibrc/ibrc_transport.h"

namespace shmemctl::test {
namespace {

FakeDevice device(const std::string& name, std::uint8_t host) {
  FakeDevice made;
  made.name = name;
  made.ports[0].gids = {link_local_gid(0, host), ipv4_gid(1, host)};
  return made;
}

/// For all tests of this program; processes that a test forks have no part in it.
FakeVerbs& fake() {
  FakeDevice without_atomics = device("fake2", 3);
  without_atomics.atomic_cap = IBV_ATOMIC_NONE;
  // As HCAs may behave with adaptive routing, with atomics and without.
  FakeDevice any_order = device("fake3", 4), any_order_too = device("fake4", 5);
  any_order.any_order = any_order_too.any_order = true;
  any_order.vendor_id = any_order_too.vendor_id = 0x2c9;
  FakeDevice any_order_without = device("fake5", 6);
  any_order_without.any_order = true;
  any_order_without.vendor_id = 0x2c9;
  any_order_without.atomic_cap = IBV_ATOMIC_NONE;
  static FakeVerbs verbs({device("fake0", 1), device("fake1", 2), without_atomics, any_order,
                          any_order_too, any_order_without});
  return verbs;
}

NamedTransport over_fake(const std::string& name, const std::vector<HcaPort>& nics,
                         const std::map<std::string, std::string>& options = {}) {
  NamedTransport transport;
  transport.name = name;
  transport.make = [](const TransportSetup& setup) {
    return std::make_unique<ibrc::IbrcTransport>(setup, fake().functions(), "");
  };
  transport.nics = nics;
  transport.options = options;
  transport.served_by_device = true;
  return transport;
}

NamedTransport over_devices(const std::string& name, const std::vector<HcaPort>& nics,
                            bool by_message = false) {
  NamedTransport transport;
  transport.name = name;
  transport.nics = nics;
  transport.make = [](const TransportSetup& setup) { return make_ibrc_transport(setup); };
  // A peer that has exited is noticed within a second.
  transport.options = {{"IB_TIMEOUT", "14"}};
  if (by_message)
    transport.options["IB_ATOMICS"] = "message";
  transport.served_by_device = !by_message;
  return transport;
}

/// Two NICs only if there are two.
std::vector<NamedTransport> all() {
  std::vector<NamedTransport> list = {
      over_devices("ibrc", {}),
      over_fake("fake", {{"fake0", 1}}),
      over_fake("fake_two_nics", {{"fake0", 1}, {"fake1", 1}}, {{"IB_NUM_RC_PER_DEVICE", "3"}}),
      over_devices("ibrc_message", {}, true),
      over_fake("fake_message", {{"fake0", 1}}, {{"IB_ATOMICS", "message"}}),
      over_fake("fake_message_two_nics", {{"fake0", 1}, {"fake1", 1}},
                {{"IB_ATOMICS", "message"}, {"IB_NUM_RC_PER_DEVICE", "3"}, {"SRQ_DEPTH", "32"}}),
      over_fake("fake_without_atomics", {{"fake2", 1}}),
      over_fake("fake_any_order", {{"fake3", 1}}),
      over_fake("fake_two_nics_any_order", {{"fake3", 1}, {"fake4", 1}}),
      over_fake("fake_any_order_message", {{"fake3", 1}}, {{"IB_ATOMICS", "message"}}),
      over_fake("fake_any_order_without_atomics", {{"fake5", 1}})};
  if (std::filesystem::exists("/sys/class/infiniband/rxe1"))
    list.push_back(over_devices("ibrc_two_nics", {{"rxe0", 1}, {"rxe1", 1}}));
  return list;
}

INSTANTIATE_TEST_SUITE_P(Ibrc, Conformance, testing::ValuesIn(all()), by_name);

} // namespace
} // namespace shmemctl::test

#endif
