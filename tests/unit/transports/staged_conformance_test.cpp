// Staged transfers, over memory that threads share and over libfabric's TCP; plain memory instead
// of a GPU's.
#include "tests/unit/transports/conformance.h"
#include "tests/unit/transports/copies_behind_a_library.h"
#include "transports/libfabric/libfabric.h"
#include "transports/shm/atomics.h"
#include "transports/shm/shm.h"
#include "transports/staged/staged.h"

namespace shmemctl::test {
namespace {

/// Whole words, like a GPU's copies.
class PlainCopies final : public CopyEngine {
public:
  void copy(int, void* to, const void* from, std::size_t size_bytes) override {
    std::uint64_t word = 0;
    if (size_bytes > sizeof word) {
      std::memcpy(to, from, size_bytes);
      return;
    }
    copy_from_shared(&word, const_cast<void*>(from), size_bytes);
    copy_to_shared(to, &word, size_bytes);
  }
  void store_word(int, void* to, std::uint64_t value) override {
    signal_shared(to, value, SignalOp::set);
  }
  void start_atomic(int, void* word, const AtomicRequest& request) override {
    execute_atomic(word, request);
  }
  std::uint64_t atomic(int, void* word, const AtomicRequest& request) override {
    return execute_atomic(word, request);
  }
  void finish(int) override {}
};

/// Memory that goes with the function. The peers' addresses are those of this process.
RegionView make_area(std::shared_ptr<std::byte>& memory, int region, std::size_t size_bytes,
                     bool mapped, Exchange& exchange) {
  memory.reset(static_cast<std::byte*>(std::aligned_alloc(4096, (size_bytes + 4095) / 4096 * 4096)),
               std::free);
  std::memset(memory.get(), 0, size_bytes);
  RegionView view{region, memory.get(), size_bytes, {}};
  std::byte* base = memory.get();
  std::string text(sizeof base, '\0');
  std::memcpy(text.data(), &base, sizeof base);
  for (const std::string& each : exchange.allgather(text)) {
    std::memcpy(&base, each.data(), sizeof base);
    view.mapped.push_back(mapped ? base : nullptr);
  }
  return view;
}

NamedTransport staged_over(const std::string& name, const MakeTransport& make, bool mapped,
                           std::size_t payload_bytes) {
  NamedTransport transport;
  transport.name = "staged_" + name;
  transport.mapped_memory = mapped;
  transport.make = [make, mapped, payload_bytes](const TransportSetup& setup) {
    StagedSettings settings;
    settings.make_region = [mapped, memory = std::shared_ptr<std::byte>()](
                               int region, std::size_t size_bytes, Exchange& exchange) mutable {
      return make_area(memory, region, size_bytes, mapped, exchange);
    };
    settings.below = make(setup);
    settings.max_payload_bytes = payload_bytes;
    settings.copies = std::make_shared<PlainCopies>();
    settings.agent_copies = settings.copies;
    if (!mapped)
      settings.agent_copies = std::make_shared<CopiesBehindALibrary>(settings.copies);
    return std::make_unique<StagedTransport>(setup, std::move(settings));
  };
  return transport;
}

NamedTransport over_shm(const std::string& name, std::size_t payload_bytes) {
  return staged_over(
      name, [](const TransportSetup&) { return make_shm_transport(); }, true, payload_bytes);
}

INSTANTIATE_TEST_SUITE_P(Staged, Conformance,
                         testing::Values(over_shm("shm", 128 << 10),
                                         over_shm("shm_small_slots", 1024)),
                         by_name);

#if __has_include(<rdma/fabric.h>)
NamedTransport over_tcp() {
  NamedTransport transport =
      staged_over("libfabric_tcp", make_libfabric_transport, false, 32 << 10);
  transport.options = {{"LIBFABRIC_PROVIDER", "tcp"}, {"LIBFABRIC_PROFILE", ""}};
  return transport;
}
INSTANTIATE_TEST_SUITE_P(StagedOverTcp, Conformance, testing::Values(over_tcp()), by_name);
#endif

} // namespace
} // namespace shmemctl::test
