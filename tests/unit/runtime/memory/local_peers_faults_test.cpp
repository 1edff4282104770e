// Peers that are missing or die, and messages of other processes.
#include <chrono>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <thread>

#include "src/runtime/memory/local_peers.h"
#include "tests/support/forked_pes.h"
#include "tests/support/socket_noise.h"

namespace shmemctl {
namespace {

using test::ChildEnds;
using test::Flood;
using test::ForkedPes;
using test::new_secret;
using test::open_descriptors;
using test::require;
using test::send_to_name;

Deadline in_seconds(double seconds) {
  return Deadline::after(std::chrono::duration<double>(seconds));
}

template <class Function>
std::string message_of(const Function& function, ExitCode code) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.message();
  }
  return "nothing was thrown";
}

TEST(LocalPeersFaults, ATimeoutNamesTheMissingPes) {
  const auto peers = make_local_peers(new_secret(), {4, 7, 8}, 0, {});
  EXPECT_EQ(message_of([&] { peers->exchange(-1, in_seconds(0.1)); }, ExitCode::deadline),
            "exchange of memory handles on this node: cannot finish: timed out waiting for "
            "PEs 7, 8");
}

TEST(LocalPeersFaults, DeadlineNamesAFewOfMany) {
  const auto peers = make_local_peers(new_secret(), {0, 1, 2, 3, 4, 5, 6}, 0, {});
  EXPECT_EQ(message_of([&] { peers->exchange(-1, in_seconds(0.05)); }, ExitCode::deadline),
            "exchange of memory handles on this node: cannot finish: timed out waiting for "
            "PEs 1, 2, 3, 4, and 2 more");
}

TEST(LocalPeersFaults, NamesOnlyThePeThatSentNothing) {
  const auto secret = new_secret();
  const auto first = make_local_peers(secret, {0, 1, 2}, 0, {});
  const auto second = make_local_peers(secret, {0, 1, 2}, 1, {});
  std::string of_second;
  std::thread thread([&] {
    of_second = message_of([&] { second->exchange(-1, in_seconds(3)); }, ExitCode::deadline);
  });
  const std::string of_first =
      message_of([&] { first->exchange(-1, in_seconds(3)); }, ExitCode::deadline);
  thread.join();
  const std::string wanted =
      "exchange of memory handles on this node: cannot finish: timed out waiting for PE 2";
  EXPECT_EQ(of_first, wanted);
  EXPECT_EQ(of_second, wanted);
}

TEST(LocalPeersFaults, AFailedJobEndsTheWait) {
  int checks = 0;
  const auto peers = make_local_peers(new_secret(), {0, 1}, 0, [&] {
    if (++checks == 3)
      throw Error(ExitCode::unavailable, "PE 1", "go on", "it was killed", "see its output");
  });
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(message_of([&] { peers->exchange(-1, in_seconds(60)); }, ExitCode::unavailable),
            "PE 1: cannot go on: it was killed");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(40));
}

TEST(LocalPeersFaults, AKilledPeerIsNamed) {
  const auto secret = new_secret();
  ForkedPes pes(3, [&](int pe) {
    const auto peers = make_local_peers(secret, {0, 1, 2}, pe, {});
    peers->exchange(-1, in_seconds(60));
    if (pe == 1)
      ::raise(SIGKILL);
    peers->exchange(-1, in_seconds(3));
  });
  const ChildEnds ends = pes.ends();
  EXPECT_EQ(ends[1], "signal 9");
  for (const int pe : {0, 2})
    EXPECT_NE(ends[static_cast<std::size_t>(pe)].find("waiting for PE 1"), std::string::npos)
        << ends[static_cast<std::size_t>(pe)];
}

/// Two PEs, the second of which is this thread: other processes write to the first.
class LocalPeersForeignMessages : public testing::Test {
protected:
  void SetUp() override { peers_ = make_local_peers(secret_, {0, 1}, 0, {}); }

  std::vector<FileDescriptor> run_exchange() {
    const FileDescriptor mine(::memfd_create("mine", MFD_CLOEXEC));
    return peers_->exchange(mine.get(), in_seconds(60));
  }

  JobSecret secret_ = new_secret();
  std::string name_ = peer_socket_name(secret_, 0);
  std::unique_ptr<LocalPeers> peers_;
};

TEST_F(LocalPeersForeignMessages, AreIgnoredAndTheirDescriptorsClosed) {
  const auto other = make_local_peers(secret_, {0, 1}, 1, {});
  const FileDescriptor zero(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  const std::size_t before = open_descriptors();
  const PeerDatagram forged = encode({1, 0, 0, true}, new_secret());
  const PeerDatagram not_for_me = encode({1, 5, 0, true}, secret_);
  const PeerDatagram from_nobody = encode({9, 0, 0, true}, secret_);
  const PeerDatagram from_myself = encode({0, 0, 0, true}, secret_);
  const PeerDatagram too_early = encode({1, 0, 2, true}, secret_);
  const PeerDatagram unannounced = encode({1, 0, 0, false}, secret_);
  for (const PeerDatagram& datagram :
       {forged, not_for_me, from_nobody, from_myself, too_early, unannounced})
    ASSERT_TRUE(send_to_name(name_, datagram.data(), datagram.size(), {zero.get()}));
  ASSERT_TRUE(send_to_name(name_, "", 0, {zero.get(), zero.get()}));
  std::thread thread([&] {
    const FileDescriptor theirs(::memfd_create("theirs", MFD_CLOEXEC));
    other->exchange(theirs.get(), in_seconds(60));
  });
  const auto received = run_exchange();
  thread.join();
  ASSERT_TRUE(received[1]);
  EXPECT_EQ(open_descriptors(), before + 1);
}

TEST_F(LocalPeersForeignMessages, ADuplicateMessageCountsOnce) {
  const FileDescriptor zero(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  const std::size_t before = open_descriptors();
  const auto other = make_local_peers(secret_, {0, 1}, 1, {}); // receives, but never replies
  for (const std::uint64_t sequence : {0, 0, 1, 1}) {
    const PeerDatagram datagram = encode({1, 0, sequence, true}, secret_);
    ASSERT_TRUE(send_to_name(name_, datagram.data(), datagram.size(), {zero.get()}));
  }
  EXPECT_TRUE(run_exchange()[1]);
  EXPECT_TRUE(run_exchange()[1]);
  const PeerDatagram old = encode({1, 0, 0, true}, secret_);
  ASSERT_TRUE(send_to_name(name_, old.data(), old.size(), {zero.get()}));
  EXPECT_EQ(message_of([&] { peers_->exchange(-1, in_seconds(0.1)); }, ExitCode::deadline),
            "exchange of memory handles on this node: cannot finish: timed out waiting for PE 1");
  EXPECT_EQ(open_descriptors(), before + 1); // the socket of `other`
}

TEST_F(LocalPeersForeignMessages, AFloodDoesNotDisturb) {
  constexpr int rounds = 20;
  const auto other = make_local_peers(secret_, {0, 1}, 1, {});
  const std::size_t before = open_descriptors();
  {
    const Flood flood(name_);
    while (flood.sent() < 5)
      std::this_thread::yield();
    std::thread thread([&] {
      for (int round = 0; round < rounds; ++round) {
        const FileDescriptor theirs(::memfd_create("theirs", MFD_CLOEXEC));
        other->exchange(theirs.get(), in_seconds(60));
      }
    });
    for (int round = 0; round < rounds; ++round)
      EXPECT_TRUE(run_exchange()[1]);
    thread.join();
  }
  EXPECT_EQ(open_descriptors(), before);
}

} // namespace
} // namespace shmemctl
