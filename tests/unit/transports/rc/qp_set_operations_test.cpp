// What a QP set posts for each operation, with a log in place of an HCA.
#include "transports/rc/qp_set_operations.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/expect_error.h"
#include "transports/rc/endpoint_table.h"
#include "transports/rc/qp_path.h"

namespace shmemctl::rc {
namespace {

std::string to_string(Doorbell doorbell) {
  return doorbell == Doorbell::now ? "now" : doorbell == Doorbell::later ? "later" : "lazy";
}

/// PE 1 has two paths and 1 MiB of region 1; requests hold 100 bytes inline and 64 KiB otherwise.
class LoggedQpSet : public QpSetOperations<LoggedQpSet, EndpointPath> {
public:
  using Log = std::vector<std::string>;

  LoggedQpSet(const Job& job, const LocalMemory& local, const RemoteMemory& remote)
      : QpSetOperations(job, local, remote, 0) {}

  Log take_log() { return std::exchange(log_, {}); }

private:
  friend class QpSetOperations<LoggedQpSet, EndpointPath>;

  std::size_t paths_to(int pe) const { return pe == 1 ? 2 : 0; }
  EndpointPath& endpoint(int, std::size_t path) { return endpoints_[path]; }
  EndpointPath& begin(int pe, std::size_t path) {
    log("begin", path);
    return endpoint(pe, path);
  }
  EndpointPath& begin_signal(int pe, SignalOp op) {
    return begin(pe, op == SignalOp::add ? 1 : usual_path(pe));
  }
  static std::size_t max_inline_bytes(const EndpointPath&) { return 100; }
  static std::uint64_t max_piece_bytes(const EndpointPath&, const NicTransfer&) { return 65536; }
  void post_inline(EndpointPath& at, const RdmaAddress& remote, const void*, std::size_t size_bytes,
                   Doorbell doorbell) {
    log("inline " + std::to_string(remote.address) + "+" + std::to_string(size_bytes) + " " +
            to_string(doorbell),
        at.path);
  }
  void post_piece(EndpointPath& at, const Piece& piece, Doorbell doorbell) {
    const NicTransfer& part = piece.transfer;
    log((part.direction == NicTransfer::Direction::put ? "write " : "read ") +
            std::to_string(piece.remote(at.peer_port).address) + "+" +
            std::to_string(part.size_bytes) + " " + to_string(doorbell),
        at.path);
  }
  void post_signal(EndpointPath& at, const RemoteAddress& signal, std::uint64_t value, SignalOp op,
                   bool after_payload, bool await) {
    log(std::string(op == SignalOp::add ? "add " : "set ") +
            std::to_string(remote_word(at, signal, sizeof value).address) + "=" +
            std::to_string(value) + (after_payload ? " after payload" : "") +
            (await ? " await" : ""),
        at.path);
  }
  void wait(EndpointPath& at, const char* step) { log(std::string("wait for ") + step, at.path); }
  void count(const EndpointPath&, NicTransfer::Direction, std::size_t size_bytes) {
    counted_bytes += size_bytes;
  }
  void poll() { log("poll", 0); }
  void log(const std::string& what, std::size_t path) {
    log_.push_back(std::to_string(path) + ": " + what);
  }

  std::array<EndpointPath, 2> endpoints_{{{1, 0, 0, 0, false}, {1, 1, 0, 1, false}}};
  Log log_;

public:
  std::size_t counted_bytes = 0;
};

class LoggedOperations : public testing::Test {
protected:
  LoggedOperations() {
    job_.peer_hosts = {"node0", "node1", "node2"};
    remote_.add(1, {SegmentKey{}, SegmentKey{0, 1 << 20, 1000, {7, 8}}, SegmentKey{}});
    local_.add(memory_.data(), memory_.size());
  }
  using Log = LoggedQpSet::Log;

  std::vector<std::byte> memory_ = std::vector<std::byte>(1 << 20);
  Job job_;
  LocalMemory local_{[](std::byte* base, std::size_t size_bytes,
                        const std::shared_ptr<const DeviceMemory>&, const std::string&) {
    Registration made;
    made.begin = reinterpret_cast<std::uint64_t>(base);
    made.end = made.begin + size_bytes;
    made.keys = {{1, 2}};
    return made;
  }};
  RemoteMemory remote_;
  LoggedQpSet qp_set_{job_, local_, remote_};
};

TEST_F(LoggedOperations, SmallPutsGoInline) {
  qp_set_.put({1, 1, 16}, memory_.data(), 8, true);
  EXPECT_EQ(qp_set_.take_log(), (Log{"0: begin", "0: inline 1016+8 now"}));
  qp_set_.put({1, 1, 16}, memory_.data(), 8, false);
  EXPECT_EQ(qp_set_.take_log(), (Log{"0: begin", "0: inline 1016+8 lazy"}));
  EXPECT_EQ(qp_set_.counted_bytes, 16u);
  qp_set_.put({1, 1, 16}, memory_.data(), 0, true);
  qp_set_.get(memory_.data(), {1, 1, 16}, 0, true);
  EXPECT_EQ(qp_set_.take_log(), Log());
}

TEST_F(LoggedOperations, OnlyTheLastPieceRingsTheDoorbell) {
  qp_set_.get(memory_.data(), {1, 1, 0}, 20000, true);
  EXPECT_EQ(qp_set_.take_log(), (Log{"0: begin", "0: read 1000+20000 now", "0: wait for get"}));
  remote_.add(1, {SegmentKey{}, SegmentKey{1 << 20, 10000, 5000000, {7, 8}}, SegmentKey{}});
  qp_set_.get(memory_.data(), {1, 1, (1 << 20) - 10000}, 20000, false);
  EXPECT_EQ(qp_set_.take_log(),
            (Log{"0: begin", "0: read 1039576+10000 later", "0: read 5000000+10000 now"}));
}

TEST_F(LoggedOperations, LargeTransfersAreStripedAndAllUsedPathsWaitedFor) {
  qp_set_.put({1, 1, 0}, memory_.data(), 65536, true);
  EXPECT_EQ(qp_set_.take_log(),
            (Log{"0: begin", "0: begin", "0: write 1000+32768 now", "1: begin",
                 "1: write 33768+32768 now", "0: wait for put", "1: wait for put"}));
  EXPECT_EQ(qp_set_.counted_bytes, 65536u);
  qp_set_.put({1, 1, 0}, memory_.data(), 65536, false);
  EXPECT_EQ(qp_set_.take_log(), (Log{"0: begin", "0: begin", "0: write 1000+32768 now", "1: begin",
                                     "1: write 33768+32768 now"}));
}

TEST_F(LoggedOperations, ASignalComesAfterItsPayloadOnTheSamePath) {
  qp_set_.put_signal({1, 1, 0}, memory_.data(), 8, {1, 1, 64}, 5, SignalOp::set, true);
  EXPECT_EQ(qp_set_.take_log(),
            (Log{"0: begin", "0: inline 1000+8 later", "0: set 1064=5 after payload"}));
  qp_set_.put_signal({1, 1, 0}, memory_.data(), 20000, {1, 1, 64}, 5, SignalOp::add, true);
  EXPECT_EQ(qp_set_.take_log(),
            (Log{"1: begin", "1: write 1000+20000 later", "1: add 1064=5 after payload await",
                 "1: wait for put with signal"}));
  qp_set_.put_signal({1, 1, 0}, nullptr, 0, {1, 1, 64}, 5, SignalOp::set, true);
  EXPECT_EQ(qp_set_.take_log(), (Log{"0: begin", "0: set 1064=5"}));
}

TEST_F(LoggedOperations, ASignalWaitsForAStripedPayload) {
  qp_set_.put_signal({1, 1, 0}, memory_.data(), 65536, {1, 1, 64}, 5, SignalOp::set, false);
  EXPECT_EQ(qp_set_.take_log(),
            (Log{"0: begin", "0: begin", "0: write 1000+32768 now", "1: begin",
                 "1: write 33768+32768 now", "0: wait for put with signal",
                 "1: wait for put with signal", "0: set 1064=5 after payload"}));
}

TEST_F(LoggedOperations, PesWithoutAPathAreRefused) {
  test::expect_error(ExitCode::unavailable, {"PE 2 on node2", "not connected"}, [&] {
    qp_set_.put({2, 1, 0}, memory_.data(), 8, true);
  });
  qp_set_.progress(); // the lock is free again
  EXPECT_EQ(qp_set_.take_log(), Log{"0: poll"});
}

TEST(MoveQp, ChangesStateInOrderUntilOneIsRefused) {
  std::vector<QpState> states;
  const auto accept = [&](QpState state) {
    states.push_back(state);
    return 0;
  };
  EXPECT_EQ(move_qp(QpState::reset, QpState::rts, accept), 0);
  EXPECT_EQ(states, (std::vector{QpState::init, QpState::rtr, QpState::rts}));
  states.clear();
  EXPECT_EQ(move_qp(QpState::rtr, QpState::rts, accept), 0);
  EXPECT_EQ(states, std::vector{QpState::rts});
  states.clear();
  EXPECT_EQ(move_qp(QpState::reset, QpState::rts,
                    [&](QpState state) {
                      states.push_back(state);
                      return state == QpState::rtr ? 22 : 0;
                    }),
            22);
  EXPECT_EQ(states, (std::vector{QpState::init, QpState::rtr}));
}

} // namespace
} // namespace shmemctl::rc
