// QP tables: lookups, and posting through a copy of one as a kernel does.
#include "src/abi/send_queue.h"
#include "tests/unit/transports/mlx5/transports/mlx5_world.h"
#include "transports/mlx5/host_memory.h"
#include "transports/mlx5/table_builder.h"

namespace shmemctl::test {
namespace {

using namespace shmemctl::mlx5;

TEST(QpTable, FindsTheFirstSegment) {
  TableBuilder builder(3, 2);
  builder.set_queues(1, {{{}, 0, 5, {}}, {{}, 0, 6, {}}, {{}, 1, 7, {}}, {{}, 1, 8, {}}});
  builder.set_queues(2, {{{}, 0, 9, {}}, {{}, 0, 9, {}}});
  builder.add_local({1500, 3000, {12}});
  builder.add_local({1000, 2000, {11}});
  builder.add_local({9000, 9001, {13}});
  builder.add_remote(1, 1, {0, 100, 0x30000, {23}});
  builder.add_remote(1, 1, {4096, 4096, 0x20000, {22}});
  builder.add_remote(1, 1, {0, 4096, 0x10000, {21}});
  builder.add_remote(2, 0, {0, 64, 0x40000, {24}});
  builder.add_remote(3, 0, {0, 64, 0, {}});  // no such PE
  builder.add_remote(2, 16, {0, 64, 0, {}}); // no such region
  const TableImage image = builder.build();
  const QpTable& table = image.table();
  EXPECT_EQ(table.paths_to(0), 0u);
  EXPECT_EQ(table.paths_to(1), 2u);
  EXPECT_EQ(table.paths_to(2), 1u);
  EXPECT_EQ(table.paths_to(3), 0u);
  EXPECT_EQ(table.queue(1, 0, 1).peer_port, 6u);
  EXPECT_EQ(table.queue(1, 1, 0).peer_port, 7u);
  EXPECT_EQ(table.queue(2, 0, 1).peer_port, 9u);
  EXPECT_EQ(table.find_local(1999)->lkeys[0], 12u);
  EXPECT_EQ(table.find_local(1000)->lkeys[0], 11u);
  EXPECT_EQ(table.find_local(9000)->lkeys[0], 13u);
  EXPECT_EQ(table.find_local(999), nullptr);
  EXPECT_EQ(table.find_local(3000), nullptr);
  EXPECT_EQ(table.find_remote(1, 1, 99)->rkeys[0], 23u);
  EXPECT_EQ(table.find_remote(1, 1, 100)->rkeys[0], 21u);
  EXPECT_EQ(table.find_remote(1, 1, 8191)->rkeys[0], 22u);
  EXPECT_EQ(table.find_remote(1, 1, 8192), nullptr);
  EXPECT_EQ(table.find_remote(1, 0, 0), nullptr);
  EXPECT_EQ(table.find_remote(2, 0, 63)->address, 0x40000u);
  EXPECT_EQ(table.find_remote(3, 0, 0), nullptr);
  EXPECT_EQ(table.find_remote(2, 16, 0), nullptr);
  EXPECT_EQ(TableBuilder(0, 1).build().table().paths_to(0), 0u);
}

/// What a kernel has: the table's bytes at another address, and none of the host's objects.
class Kernel {
public:
  explicit Kernel(const Mlx5Transport& transport) {
    const TableImage image = transport.queue_table();
    words_.resize((image.table().size_bytes + 7) / 8);
    std::memcpy(words_.data(), image.data(), image.table().size_bytes);
  }
  const QpTable& table() const { return *reinterpret_cast<const QpTable*>(words_.data()); }

  /// Posts a write and waits for its completion; 0, or the failure.
  std::uint64_t write(std::uint32_t pe, std::uint32_t qp_set, const std::byte* source,
                      std::uint64_t offset_bytes, std::uint32_t size_bytes,
                      std::uint32_t more_rkey = 0) const {
    const TableQp& entry = table().queue(pe, 0, qp_set);
    const auto address = reinterpret_cast<std::uint64_t>(source);
    const LocalSegment& local = *table().find_local(address);
    const RemoteSegment& remote = *table().find_remote(pe, region::heap, offset_bytes);
    const mlx5::SendQueue<mlx5::DeviceShape, mlx5::HostMemory> queue(entry.view);
    const std::uint64_t start = queue.reserve(1);
    std::uint64_t known = queue.completed();
    while (!queue.has_room(start + 1, known))
      queue.poll_for_room(start + 1, known);
    mlx5::WqeSlot slot(queue, start);
    mlx5::build_write(slot, {start, entry.view.qpn, mlx5::flag_completion},
                      {remote.address + (offset_bytes - remote.offset_bytes),
                       remote.rkeys[entry.peer_port] + more_rkey},
                      {address, local.lkeys[entry.port], size_bytes});
    mlx5::PublishResult turn = mlx5::PublishResult::not_my_turn;
    while (turn == mlx5::PublishResult::not_my_turn)
      turn = queue.try_publish(start, 1, {start + 1, start + 1}, mlx5::DoorbellMode::now);
    while (turn == mlx5::PublishResult::ring && !queue.try_ring(start + 1))
      std::this_thread::yield();
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    while (queue.completed() < start + 1 && queue.failure() == 0 && !deadline.passed()) {
      queue.poll();
      std::this_thread::yield();
    }
    EXPECT_TRUE(queue.completed() >= start + 1 || queue.failure() != 0);
    return queue.failure();
  }

private:
  std::vector<std::uint64_t> words_;
};

std::uint64_t word_at(const std::byte* place) {
  std::uint64_t word = 0;
  std::memcpy(&word, place, sizeof word);
  return word;
}

class BothTransports : public testing::TestWithParam<Variant> {};

/// Host and kernel on the same queues, by turns.
TEST_P(BothTransports, AKernelPostsThroughACopy) {
  run_mlx5(
      GetParam(),
      [](TransportPe& me) {
        std::vector<std::byte> buffer(4096);
        me.transport->add_local(buffer.data(), buffer.size());
        const Kernel kernel(mlx5_of(me));
        EXPECT_EQ(kernel.table().n_qp_sets, 2u);
        const auto pe = static_cast<std::uint32_t>(1 - me.pe);
        for (std::uint64_t round = 1; round <= 3000; ++round) {
          const std::uint64_t value = round * 2 + static_cast<unsigned>(me.pe);
          std::byte* const source = round % 3 == 0 ? buffer.data() : me.heap + (1 << 20);
          std::memcpy(source, &value, sizeof value);
          ASSERT_EQ(kernel.write(pe, round % 2, source, 64, 8), 0u);
          me.transport->put(static_cast<int>(round % 2), heap_at(1 - me.pe, 128), &value, 8, false);
          me.transport->quiet(static_cast<int>(round % 2));
        }
        me.barrier();
        EXPECT_EQ(word_at(me.heap + 64), 6000 + static_cast<unsigned>(1 - me.pe));
        EXPECT_EQ(word_at(me.heap + 128), 6000 + static_cast<unsigned>(1 - me.pe));
        me.transport->remove_local(buffer.data());
        EXPECT_EQ(
            Kernel(mlx5_of(me)).table().find_local(reinterpret_cast<std::uint64_t>(buffer.data())),
            nullptr);
        me.barrier();
      },
      {{"QP_DEPTH", "128"}});
}

TEST_P(BothTransports, AWrongKeyIsARemoteAccessError) {
  run_mlx5(GetParam(), [](TransportPe& me) {
    if (me.pe == 0) {
      const Kernel kernel(mlx5_of(me));
      const auto failure = mlx5::Failure::from_word(kernel.write(1, 0, me.heap, 64, 8, 0x1000));
      EXPECT_EQ(failure.syndrome, static_cast<std::uint8_t>(mlx5::Syndrome::remote_access));
      const std::uint64_t value = 1;
      const std::string text =
          expect_error(ExitCode::unavailable,
                       {"host0", "PE 0", "emulated-mlx5", "port 1", "PE 1", "syndrome"}, [&] {
                         me.transport->put(0, heap_at(1, 0), &value, 8, true);
                         me.transport->quiet(0);
                       });
      EXPECT_NE(text.find("no memory is registered under this remote key"), std::string::npos)
          << text;
      // The other QP set continues.
      me.transport->put(1, heap_at(1, 0), &value, 8, true);
      me.transport->quiet(1);
    }
    me.barrier();
  });
}

TEST_P(BothTransports, ReadsBeyondARegionAreRefused) {
  run_mlx5(GetParam(), [](TransportPe& me) {
    std::uint64_t value = 0;
    expect_error(ExitCode::unavailable, {"region 1", "PE 1 on host1"},
                 [&] { me.transport->get(0, &value, heap_at(1, me.heap_bytes - 4), 8, true); });
    expect_error(ExitCode::unavailable, {"region 1"}, [&] {
      me.transport->atomic(0, heap_at(1, me.heap_bytes), {AtomicOp::add, 8, 1});
    });
    expect_error(ExitCode::unavailable, {"region 7"}, [&] {
      me.transport->put(0, {1, 7, 0}, &value, 8, true);
    });
    expect_error(ExitCode::unavailable, {"PE 5", "not connected"},
                 [&] { me.transport->put(0, heap_at(5, 0), &value, 8, true); });
    me.barrier();
  });
}

INSTANTIATE_TEST_SUITE_P(Mlx5, BothTransports, testing::Values(Variant::ibdevx, Variant::ibgda),
                         [](const auto& tested) {
                           return tested.param == Variant::ibdevx ? "ibdevx" : "ibgda";
                         });

} // namespace
} // namespace shmemctl::test
