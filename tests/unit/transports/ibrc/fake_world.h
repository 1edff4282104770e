// A job of threads over ibrc over fake devices.
#pragma once

#include <memory>
#include <string>

#include "tests/support/fake_verbs.h"
#include "tests/support/transport_world.h"
#include "transports/ibrc/ibrc_transport.h"

namespace shmemctl::test {

/// A RoCE device: fe80::<host> at 0, 10.0.0.<host> at 1.
inline FakeDevice roce_device(const std::string& name, std::uint8_t host = 1) {
  FakeDevice device;
  device.name = name;
  device.ports[0].gids = {link_local_gid(0, host), ipv4_gid(1, host)};
  return device;
}

inline std::unique_ptr<ibrc::IbrcTransport> make_over(const FakeVerbs& fake,
                                                      const TransportSetup& setup) {
  return std::make_unique<ibrc::IbrcTransport>(setup, fake.functions(), "");
}

/// Runs `body`, then checks that everything was closed and no rule was violated.
inline void run_over(FakeVerbs& fake, const std::function<void(TransportPe&)>& body,
                     const TransportWorldOptions& wanted = {}) {
  EXPECT_EQ(run_transport_world([&](const TransportSetup& setup) { return make_over(fake, setup); },
                                body, wanted),
            "");
  EXPECT_EQ(fake.misuse(), "");
  EXPECT_EQ(fake.open_objects.load(), 0u);
}

inline RemoteAddress heap_at(int pe, std::uint64_t offset_bytes) {
  return {pe, region::heap, offset_bytes};
}

} // namespace shmemctl::test
