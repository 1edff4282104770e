// Jobs of threads over ibdevx and ibgda.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "tests/support/expect_error.h"
#include "tests/support/fake_mlx5.h"
#include "tests/support/transport_world.h"
#include "transports/ibdevx/ibdevx.h"
#include "transports/ibgda/ibgda.h"
#include "transports/mlx5/mlx5_transport.h"

namespace shmemctl::test {

using mlx5::Mlx5Transport;
using Texts = std::map<std::string, std::string>;

enum class Variant { ibdevx, ibgda };

inline mlx5::Settings settings_of(Variant variant, const Options& options) {
  return variant == Variant::ibdevx ? ibdevx::read_settings(options)
                                    : ibgda::read_settings(options);
}

inline Texts emulated(Texts more = {}) {
  more.insert({{"MLX5_DEVICE", "emulated"},
               {"EMULATED_HCA_OVER", "shm"},
               {"EMULATED_HCA_PLACEMENT", placement_text()}});
  return more;
}

inline RemoteAddress heap_at(int pe, std::uint64_t offset_bytes) {
  return {pe, region::heap, offset_bytes};
}

inline Mlx5Transport& mlx5_of(const TransportPe& me) {
  return static_cast<Mlx5Transport&>(*me.transport);
}

/// Over the emulated HCA over memory.
inline void run_mlx5(Variant variant, const std::function<void(TransportPe&)>& body,
                     const Texts& more = {}, int n_pes = 2) {
  TransportWorldOptions wanted;
  wanted.n_pes = n_pes;
  wanted.options = emulated(more);
  wanted.mapped_memory = true;
  EXPECT_EQ(
      run_transport_world(variant == Variant::ibdevx ? make_ibdevx_transport : make_ibgda_transport,
                          body, wanted),
      "");
}

/// Over fake devices.
inline std::string run_on_fakes(FakeFabric& fabric, const std::function<void(TransportPe&)>& body,
                                const TransportWorldOptions& wanted = {},
                                Variant variant = Variant::ibdevx) {
  return run_transport_world(
      [&](const TransportSetup& setup) {
        return std::make_unique<Mlx5Transport>(setup,
                                               fabric.use(settings_of(variant, *setup.options)));
      },
      body, wanted);
}

} // namespace shmemctl::test
