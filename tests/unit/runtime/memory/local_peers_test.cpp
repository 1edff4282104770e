#include <atomic>
#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <thread>

#include "src/runtime/memory/local_peers.h"
#include "src/runtime/memory/siphash.h"
#include "tests/support/expect_error.h"
#include "tests/support/forked_pes.h"
#include "tests/support/socket_noise.h"
#include "tests/support/thread_peers.h"

namespace shmemctl {
namespace {

using test::ChildEnds;
using test::ForkedPes;
using test::new_secret;
using test::open_descriptors;
using test::require;

Deadline soon() {
  return Deadline::after(std::chrono::seconds(60));
}

std::vector<int> pes_from(int first, int count) {
  std::vector<int> pes;
  for (int at = 0; at < count; ++at)
    pes.push_back(first + at);
  return pes;
}

/// A file that contains one number.
FileDescriptor file_with(int number) {
  FileDescriptor file(::memfd_create("test", MFD_CLOEXEC));
  require(::pwrite(file.get(), &number, sizeof number, 0) == sizeof number, "pwrite");
  return file;
}

int number_in(const FileDescriptor& file) {
  int number = -1;
  return ::pread(file.get(), &number, sizeof number, 0) == sizeof number ? number : -1;
}

/// Exchanges files that name their sender, several times, and checks all that arrive.
void exchange_and_check(LocalPeers& peers, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    const FileDescriptor mine = file_with(1000 * round + peers.my_slot());
    const std::vector<FileDescriptor> theirs = peers.exchange(mine.get(), soon());
    require(static_cast<int>(theirs.size()) == peers.slots(), "one for each slot");
    for (int slot = 0; slot < peers.slots(); ++slot) {
      const FileDescriptor& file = theirs[static_cast<std::size_t>(slot)];
      if (slot == peers.my_slot()) {
        require(!file, "nothing of my own");
        continue;
      }
      require(number_in(file) == 1000 * round + slot, "the file of that slot and round");
      require((::fcntl(file.get(), F_GETFD) & FD_CLOEXEC) != 0, "close-on-exec");
    }
  }
}

void exchange_in_threads(int slots, int rounds,
                         const std::function<std::unique_ptr<LocalPeers>(int)>& make) {
  std::vector<std::unique_ptr<LocalPeers>> all;
  for (int slot = 0; slot < slots; ++slot)
    all.push_back(make(slot));
  std::vector<std::string> ends(static_cast<std::size_t>(slots));
  std::vector<std::thread> threads;
  for (int slot = 0; slot < slots; ++slot)
    threads.emplace_back([&, slot] {
      try {
        exchange_and_check(*all[static_cast<std::size_t>(slot)], rounds);
      } catch (const std::exception& error) {
        ends[static_cast<std::size_t>(slot)] = error.what();
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(ends, std::vector<std::string>(static_cast<std::size_t>(slots)));
}

TEST(SipHash, GivesThePublishedValue) {
  JobSecret key;
  std::array<std::uint8_t, 15> data;
  for (std::size_t at = 0; at < key.size(); ++at)
    key[at] = static_cast<std::uint8_t>(at);
  for (std::size_t at = 0; at < data.size(); ++at)
    data[at] = static_cast<std::uint8_t>(at);
  EXPECT_EQ(siphash(key, data.data(), data.size()), 0xa129ca6149be45e5u);
}

TEST(PeerMessages, AreRefusedWhenAnyBitDiffers) {
  const JobSecret secret = new_secret();
  const PeerDatagram whole = encode({3, 4, 7, true}, secret);
  const auto message = decode(whole.data(), whole.size(), secret);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->from_pe, 3u);
  EXPECT_EQ(message->to_pe, 4u);
  EXPECT_EQ(message->sequence, 7u);
  EXPECT_TRUE(message->has_descriptor);
  EXPECT_FALSE(decode(whole.data(), whole.size() - 1, secret));
  EXPECT_FALSE(decode(whole.data(), whole.size(), new_secret()));
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    PeerDatagram other = whole;
    other[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_FALSE(decode(other.data(), other.size(), secret)) << "bit " << bit;
  }
}

TEST(LocalPeers, ThreadsExchangeDescriptors) {
  test::ThreadPeersGroup group(5);
  exchange_in_threads(5, 4, [&](int slot) { return group.peers(slot); });
}

TEST(LocalPeers, ThreadsExchangeAndLeaveNoDescriptor) {
  const std::size_t before = open_descriptors();
  for (const int slots : {1, 2, 3, 8}) {
    const JobSecret secret = new_secret();
    exchange_in_threads(slots, 12, [&](int slot) {
      return make_local_peers(secret, pes_from(10, slots), slot, {});
    });
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(LocalPeers, NothingMayBeGiven) {
  const JobSecret secret = new_secret();
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int slot = 0; slot < 3; ++slot)
    threads.emplace_back([&, slot] {
      const auto peers = make_local_peers(secret, pes_from(0, 3), slot, {});
      const FileDescriptor mine = file_with(slot);
      const auto theirs = peers->exchange(slot == 1 ? -1 : mine.get(), soon());
      right += !theirs[1] && static_cast<bool>(theirs[0]) == (slot != 0) &&
               static_cast<bool>(theirs[2]) == (slot != 2);
    });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(right, 3);
}

TEST(LocalPeers, SixtyFourProcessesDoNotBlockEachOther) {
  constexpr int n_pes = 64;
  const JobSecret secret = new_secret();
  ForkedPes pes(n_pes, [&](int pe) {
    const std::size_t before = open_descriptors();
    {
      const auto peers = make_local_peers(secret, pes_from(0, n_pes), pe, {});
      exchange_and_check(*peers, 3);
      require(open_descriptors() == before + 1, "only the socket stays");
    }
    require(open_descriptors() == before, "no descriptor is left");
  });
  EXPECT_EQ(pes.ends(), ChildEnds(n_pes));
}

TEST(LocalPeers, TwoGroupsOfOneJobDoNotMix) {
  const JobSecret secret = new_secret();
  ForkedPes pes(6, [&](int pe) {
    const auto peers = make_local_peers(secret, pes_from(pe < 3 ? 0 : 3, 3), pe % 3, {});
    exchange_and_check(*peers, 3);
  });
  EXPECT_EQ(pes.ends(), ChildEnds(6));
}

// The kernel counts a user's descriptors in flight against the limit of open files.
TEST(LocalPeers, WorksWithFewDescriptorsInFlight) {
  constexpr int n_pes = 16;
  const JobSecret secret = new_secret();
  ForkedPes pes(n_pes, [&](int pe) {
    const rlimit few{48, 48};
    require(::setrlimit(RLIMIT_NOFILE, &few) == 0, "setrlimit");
    if (::geteuid() == 0)
      require(::setgroups(0, nullptr) == 0 && ::setgid(65534) == 0 && ::setuid(65534) == 0,
              "become nobody");
    const auto peers = make_local_peers(secret, pes_from(0, n_pes), pe, {});
    exchange_and_check(*peers, 5);
  });
  EXPECT_EQ(pes.ends(), ChildEnds(n_pes));
}

TEST(LocalPeers, TooFewOpenFilesAreNamed) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer opens files itself when it looks at objects";
#endif
  const JobSecret secret = new_secret();
  ForkedPes pes(2, [&](int pe) {
    const auto peers = make_local_peers(secret, {0, 1}, pe, {});
    const FileDescriptor mine = file_with(pe);
    if (pe == 0) {
      const rlimit none{static_cast<rlim_t>(mine.get()) + 1, 4096};
      require(::setrlimit(RLIMIT_NOFILE, &none) == 0, "setrlimit");
    }
    peers->exchange(-1, soon());
    // PE 0 may fail before or after it has sent its own.
    peers->exchange(mine.get(), pe == 0 ? soon() : Deadline::after(std::chrono::seconds(3)));
  });
  const ChildEnds ends = pes.ends();
  EXPECT_EQ(ends[0], "PE 1: cannot receive its memory: too many open files | raise the limit of "
                     "open files: ulimit -n");
}

TEST(LocalPeers, OnePeTwiceIsRefused) {
  const JobSecret secret = new_secret();
  const auto first = make_local_peers(secret, {5, 6}, 1, {});
  try {
    make_local_peers(secret, {5, 6}, 1, {});
    FAIL() << "taken twice";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::unavailable);
    EXPECT_NE(error.message().find("another process is already PE 6"), std::string::npos);
  }
}

} // namespace
} // namespace shmemctl

namespace shmemctl::test {
// Handles that are sent to all PEs instead of descriptors.

namespace {

Deadline soon() {
  return Deadline::after(std::chrono::seconds(60));
}

/// PE 2 of a job of four, in a group with PEs 0 and 3.
struct Group {
  std::vector<std::string> said = {"", "nonsense of a PE that is not in the group", "", ""};
  std::string mine;
  std::unique_ptr<LocalPeers> peers = make_gathered_peers({0, 2, 3}, 1, [this](const auto& text) {
    mine = text;
    said[2] = text;
    return said;
  });
};

TEST(ExchangedHandles, EveryPesHandleArrivesInAFile) {
  Group group;
  EXPECT_EQ(group.peers->slots(), 3);
  EXPECT_EQ(group.peers->my_slot(), 1);
  const std::string handle("\x00\xff handle\n", 9);
  const FileDescriptor file = file_of_handle(handle);
  group.said[0] = "0010";
  group.said[3] = "none";
  const std::vector<FileDescriptor> theirs = group.peers->exchange(file.get(), soon());
  ASSERT_EQ(theirs.size(), 3u);
  EXPECT_EQ(handle_in_file(theirs[0].get()), std::string("\x00\x10", 2));
  EXPECT_FALSE(theirs[1]) << "its own";
  EXPECT_FALSE(theirs[2]) << "it has none";
  EXPECT_EQ(group.mine.size(), 18u);
  // What it sent is what another PE would read.
  group.said[0] = group.mine;
  group.said[3] = group.mine;
  const std::vector<FileDescriptor> again = group.peers->exchange(-1, soon());
  EXPECT_EQ(group.mine, "none");
  EXPECT_EQ(handle_in_file(again[0].get()), handle);
  EXPECT_EQ(handle_in_file(again[2].get()), handle);
}

TEST(ExchangedHandles, AMalformedHandleNamesItsPe) {
  for (const std::string& text :
       {std::string(), std::string("abc"), std::string("xy"), std::string(130, 'a')}) {
    Group group;
    group.said[0] = "none";
    group.said[3] = text;
    expect_error(ExitCode::unavailable, {"PE 3", "cannot read its memory handle"},
                 [&] { group.peers->exchange(-1, soon()); });
  }
}

TEST(ExchangedHandles, OnlyHandlesAreReadFromFiles) {
  EXPECT_EQ(handle_in_file(-1), "");
  EXPECT_EQ(handle_in_file(file_of_handle(std::string(65, 'a')).get()), "") << "too long";
  EXPECT_EQ(handle_in_file(file_of_handle(std::string(64, 'a')).get()), std::string(64, 'a'));
}

} // namespace
} // namespace shmemctl::test
