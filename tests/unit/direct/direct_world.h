// Jobs of threads over the direct transports.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "tests/support/expect_error.h"
#include "tests/support/fake_mlx5.h"
#include "tests/support/transport_world.h"
#include "transports/direct/direct.h"
#include "transports/direct/direct_transport.h"

namespace shmemctl::test {

using direct::DirectTransport;
using direct::Flavour;
using Texts = std::map<std::string, std::string>;

inline Texts software(Texts more = {}) {
  more.insert({{"MLX5_DEVICE", "soft"},
               {"SOFT_HCA_OVER", "shm"},
               {"SOFT_HCA_PLACEMENT", placement_text()}});
  return more;
}

inline RemoteAddress heap_at(int pe, std::uint64_t offset_bytes) {
  return {pe, region::heap, offset_bytes};
}

inline DirectTransport& direct_of(const TransportPe& me) {
  return static_cast<DirectTransport&>(*me.transport);
}

/// Over the emulated HCA over memory.
inline void run_direct(Flavour flavour, const std::function<void(TransportPe&)>& body,
                       const Texts& more = {}, int n_pes = 2) {
  TransportWorldOptions wanted;
  wanted.n_pes = n_pes;
  wanted.options = software(more);
  wanted.mapped_memory = true;
  EXPECT_EQ(
      run_transport_world(flavour == Flavour::devx ? make_ibdevx_transport : make_ibgda_transport,
                          body, wanted),
      "");
}

/// Over fake devices.
inline std::string run_made_up(FakeFabric& fabric, const std::function<void(TransportPe&)>& body,
                               const TransportWorldOptions& wanted = {},
                               Flavour flavour = Flavour::devx) {
  return run_transport_world(
      [&](const TransportSetup& setup) {
        return std::make_unique<DirectTransport>(
            setup, fabric.use(direct::read_settings(flavour, *setup.options)));
      },
      body, wanted);
}

} // namespace shmemctl::test
