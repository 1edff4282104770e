// Regions of GPU memory: NICs that look real reach them, CPUs and the emulated HCA do not.
#include <array>
#include <atomic>

#include "tests/support/hidden_memory.h"
#include "tests/support/no_transport.h"
#include "tests/unit/transports/mlx5/transports/mlx5_world.h"
#include "transports/device_memory_user.h"
#include "transports/shm/atomics.h"

namespace shmemctl::test {
namespace {

constexpr std::size_t region_bytes = std::size_t{1} << 20;
constexpr std::size_t half = region_bytes / 2;

RemoteAddress gpu_at(int pe, std::uint64_t offset_bytes) {
  return {pe, region::gpu_heap, offset_bytes};
}

/// What the first half of a PE's region holds.
std::byte byte_of(int pe, std::size_t at) {
  return static_cast<std::byte>(at * 7 + at / 251 + static_cast<std::size_t>(pe) * 13);
}

/// A PE's region, known to the job.
struct GpuHeap {
  explicit GpuHeap(const TransportPe& me, std::size_t size_bytes = region_bytes)
      : memory(std::make_shared<HiddenMemory>(region_bytes)) {
    for (std::size_t at = 0; at < half; ++at)
      memory->reach(memory->base())[at] = byte_of(me.pe, at);
    mlx5_of(me).set_device_region(region::gpu_heap, memory);
    me.publish(region::gpu_heap, memory->base(), size_bytes);
  }
  std::byte* at(std::size_t offset) const { return memory->base() + offset; }
  std::byte seen(std::size_t offset) const { return *memory->reach(at(offset)); }
  std::uint64_t word(std::size_t offset) const {
    std::uint64_t value = 0;
    std::memcpy(&value, memory->reach(at(offset)), sizeof value);
    return value;
  }

  std::shared_ptr<HiddenMemory> memory;
};

TransportWorldOptions with_both() {
  TransportWorldOptions wanted;
  wanted.nics = {{"mlx5_0", 1}, {"mlx5_1", 1}};
  return wanted;
}

TEST(Mlx5GpuMemory, IsReadAndWrittenByTheNicAlone) {
  for (const Variant variant : {Variant::ibdevx, Variant::ibgda}) {
    FakeFabric fabric({{"mlx5_0", 1, true, ""}, {"mlx5_1", 1, true, ""}});
    const std::string reason = run_on_fakes(
        fabric,
        [](TransportPe& me) {
          const GpuHeap heap(me, half + half / 2); // the rest arrives later
          me.publish(region::gpu_heap, heap.memory->base(), region_bytes);
          const int peer = 1 - me.pe;
          std::size_t place = half;
          // Inline sizes, those that are copied otherwise, those that several NICs share otherwise.
          for (const std::size_t size : {1u, 8u, 92u, 93u, 4096u, 8192u, 9000u, 100'000u}) {
            for (const bool blocking : {true, false}) {
              me.transport->put(1, gpu_at(peer, place), heap.at(size), size, blocking);
              me.transport->quiet(1);
              me.barrier();
              for (std::size_t i = 0; i < size; ++i)
                ASSERT_EQ(heap.seen(place + i), byte_of(peer, size + i)) << size << " at " << i;
              place += size;
            }
          }
          std::vector<std::byte> here(100'000);
          me.transport->get(0, here.data(), gpu_at(peer, 5), here.size(), true);
          for (std::size_t i = 0; i < here.size(); ++i)
            ASSERT_EQ(here[i], byte_of(peer, 5 + i));
          me.barrier();
          me.transport->get(0, heap.at(half), gpu_at(peer, 11), here.size(), false); // GPU to GPU
          me.transport->quiet(0);
          for (std::size_t i = 0; i < here.size(); ++i)
            ASSERT_EQ(heap.seen(half + i), byte_of(peer, 11 + i));
          me.barrier();
        },
        with_both(), variant);
    EXPECT_EQ(reason, "");
  }
}

/// No specification promises the order of two NICs' writes in a GPU.
TEST(Mlx5GpuMemory, OneNicCarriesATransferAndItsSignal) {
  FakeFabric fabric({{"mlx5_0", 1, true, ""}, {"mlx5_1", 1, true, ""}});
  EXPECT_EQ(run_on_fakes(
                fabric,
                [](TransportPe& me) {
                  const GpuHeap heap(me);
                  const int peer = 1 - me.pe;
                  me.transport->put_signal(0, gpu_at(peer, half), heap.at(0), 100'000,
                                           gpu_at(peer, region_bytes - 8), 77, SignalOp::set, true);
                  me.transport->put(0, gpu_at(peer, half), heap.at(0), 100'000, false);
                  me.transport->quiet(0);
                  me.barrier();
                  EXPECT_EQ(heap.word(region_bytes - 8), 77u);
                  EXPECT_EQ(heap.seen(half + 99'999), byte_of(peer, 99'999));
                  int used = 0;
                  for (const NicTraffic& port : me.transport->traffic())
                    used += port.put_bytes > 0 ? 1 : 0;
                  EXPECT_EQ(used, 1);
                  me.barrier();
                },
                with_both()),
            "");
}

TEST(Mlx5GpuMemory, ATrialRegistrationIsUndone) {
  FakeFabric fabric({{"mlx5_0", 1, true, ""}});
  EXPECT_EQ(run_on_fakes(fabric,
                         [](TransportPe& me) {
                           auto memory = std::make_shared<HiddenMemory>(region_bytes);
                           DeviceReach reach =
                               mlx5_of(me).try_device_memory(memory, memory->base(), region_bytes);
                           EXPECT_EQ(reach.method, "dma-buf");
                           EXPECT_EQ(reach.reason, "");
                           memory->refusal = "dma-buf: Operation not supported";
                           reach =
                               mlx5_of(me).try_device_memory(memory, memory->base(), region_bytes);
                           EXPECT_EQ(reach.method, "");
                           EXPECT_EQ(reach.reason, "mlx5_0: dma-buf: Operation not supported");
                           me.barrier();
                         }),
            "");
}

TEST(Mlx5GpuMemory, IsDeregisteredWhenItIsFreed) {
  FakeFabric fabric({{"mlx5_0", 1, true, ""}});
  EXPECT_EQ(
      run_on_fakes(fabric,
                   [](TransportPe& me) {
                     const std::uint64_t value = 3;
                     {
                       const GpuHeap heap(me);
                       me.transport->put(0, gpu_at(1 - me.pe, 0), &value, 8, true);
                       me.transport->quiet(0);
                       me.barrier();
                       EXPECT_EQ(heap.word(0), 3u);
                       const auto place = reinterpret_cast<std::uint64_t>(heap.at(0));
                       EXPECT_NE(mlx5_of(me).queue_table().table().find_local(place), nullptr);
                       mlx5_of(me).drop_device_region(region::gpu_heap);
                       EXPECT_EQ(mlx5_of(me).queue_table().table().find_local(place), nullptr);
                       me.barrier();
                     }
                     expect_error(ExitCode::unavailable, {"region 3", "not registered by"}, [&] {
                       me.transport->put(0, gpu_at(1 - me.pe, 0), &value, 8, true);
                     });
                     me.transport->put(0, heap_at(1 - me.pe, 0), &value, 8, true); // goes on
                     me.transport->quiet(0);
                     me.barrier();
                   }),
      "");
}

// The emulated HCA.

TEST(Mlx5GpuMemory, TheEmulatedHcaSaysThatItReachesTheHostOnly) {
  run_mlx5(Variant::ibgda, [](TransportPe& me) {
    auto memory = std::make_shared<HiddenMemory>(region_bytes);
    const DeviceReach reach = mlx5_of(me).try_device_memory(memory, memory->base(), region_bytes);
    EXPECT_EQ(reach.method, "");
    EXPECT_NE(reach.reason.find(host_memory_only), std::string::npos) << reach.reason;
    me.barrier();
  });
}

/// A WQE that names such memory fails; the process does not.
TEST(Mlx5GpuMemory, TheEmulatedHcaRefusesGpuMemoryWithoutStaging) {
  run_mlx5(Variant::ibgda, [](TransportPe& me) {
    const GpuHeap heap(me);
    if (me.pe == 0) {
      expect_error(ExitCode::unavailable, {"PE 1", "memory of a GPU"}, [&] {
        me.transport->put(0, heap_at(1, 0), heap.at(0), 4096, true);
        me.transport->quiet(0);
      });
      expect_error(ExitCode::unavailable, {"PE 1", "no memory is registered under this remote key"},
                   [&] {
                     const std::uint64_t value = 1;
                     me.transport->put(1, gpu_at(1, 0), &value, 8, true);
                     me.transport->quiet(1);
                   });
    }
    me.barrier();
  });
}

/// Reaches the regions of all PEs of this process, by where they are reached.
class Copies final : public NoTransport {
public:
  explicit Copies(std::vector<std::shared_ptr<HiddenMemory>> heaps) : heaps_(std::move(heaps)) {}
  const char* name() const override { return "copies"; }
  void put(int, const RemoteAddress& target, const void* source, std::size_t size_bytes,
           bool) override {
    std::memcpy(at(target), here(source), size_bytes);
  }
  void get(int, void* target, const RemoteAddress& source, std::size_t size_bytes, bool) override {
    std::memcpy(here(target), at(source), size_bytes);
  }
  std::uint64_t atomic(int, const RemoteAddress& target, const AtomicRequest& request) override {
    return execute_atomic(at(target), request);
  }
  void put_signal(int, const RemoteAddress&, const void*, std::size_t size_bytes,
                  const RemoteAddress& signal, std::uint64_t value, SignalOp op, bool) override {
    EXPECT_EQ(size_bytes, 0u);
    signal_shared(at(signal), value, op);
    ++signals;
  }

  std::atomic<int> signals{0}; ///< words that were stored in one piece

private:
  std::byte* at(const RemoteAddress& address) const {
    const HiddenMemory& heap = *heaps_[static_cast<std::size_t>(address.pe)];
    return heap.reach(heap.base() + address.offset_bytes);
  }
  void* here(const void* local) const {
    for (const auto& heap : heaps_)
      if (local >= heap->base() && local < heap->base() + region_bytes)
        return heap->reach(local);
    return const_cast<void*>(local);
  }
  std::vector<std::shared_ptr<HiddenMemory>> heaps_;
};

TEST(Mlx5GpuMemory, TheEmulatedHcaUsesStagedCopies) {
  std::array<std::shared_ptr<HiddenMemory>, 2> heaps;
  run_mlx5(Variant::ibgda, [&](TransportPe& me) {
    auto& memory = heaps[static_cast<std::size_t>(me.pe)];
    memory = std::make_shared<HiddenMemory>(region_bytes);
    me.barrier();
    Copies copies({heaps[0], heaps[1]});
    Mlx5Transport& transport = mlx5_of(me);
    transport.set_device_region(region::gpu_heap, memory);
    transport.use_for_gpu_memory(copies, 56);
    me.publish(region::gpu_heap, memory->base(), region_bytes);
    const int peer = 1 - me.pe;
    const auto tag = static_cast<std::byte>(me.pe + 1), theirs = static_cast<std::byte>(peer + 1);
    std::memset(memory->reach(memory->base()), static_cast<int>(tag), half);
    me.barrier(); // the other PE reads the memory
    std::byte* const source = memory->base();
    const std::uint64_t word = 42;
    transport.put(0, gpu_at(peer, half), source, 10'000, false); // GPU to GPU
    transport.put(0, gpu_at(peer, half + 10'000), &word, 8, false);
    EXPECT_EQ(transport.atomic(0, gpu_at(peer, half + 10'008), {AtomicOp::add, 8, 5}), 0u);
    transport.put(0, heap_at(peer, 64), &word, 8, false); // between them a put to host memory
    transport.get(0, memory->base() + half + 20'000, gpu_at(peer, 100), 5000, false);
    transport.quiet(0);
    me.barrier();
    const auto seen = [&](std::size_t at) { return *memory->reach(memory->base() + at); };
    EXPECT_EQ(seen(half), theirs);
    EXPECT_EQ(seen(half + 9'999), theirs);
    EXPECT_EQ(seen(half + 10'000), std::byte{42});
    EXPECT_EQ(seen(half + 10'008), std::byte{5});
    EXPECT_EQ(seen(half + 24'999), theirs);
    EXPECT_EQ(me.heap[64], std::byte{42});
    EXPECT_EQ(copies.signals, 1);
    me.barrier();
    transport.drop_device_region(region::gpu_team_flags); // the other region stays
    transport.put(0, gpu_at(peer, half), source + 8, 1000, true);
    transport.quiet(0);
    EXPECT_EQ(transport.atomic(0, gpu_at(peer, half + 10'008), {AtomicOp::add, 8, 5}), 5u);
    me.barrier();
    transport.drop_device_region(region::gpu_heap); // before the path is destroyed
    expect_error(ExitCode::unavailable, {"region 3", "not registered by"},
                 [&] { transport.put(0, gpu_at(peer, 0), &word, 8, true); });
    me.barrier();
  });
}

} // namespace
} // namespace shmemctl::test
