// One connection of the failure detector, alone.
#include <gtest/gtest.h>
#include <stdexcept>
#include <sys/socket.h>
#include <vector>

#include "src/runtime/failure_detector_link.h"

namespace shmemctl::failure_detector {
namespace {

struct Pair {
  Pair() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0)
      throw std::runtime_error("socketpair");
    near = Socket(FileDescriptor(ends[0]), "far");
    far = Socket(FileDescriptor(ends[1]), "near");
  }
  Socket near, far;
};

std::vector<Message> receive_all(Link& link, Ending& ending) {
  std::vector<Message> messages;
  ending = link.receive([&](Message message) { messages.push_back(std::move(message)); });
  return messages;
}

TEST(FailureDetectorLink, MessagesArriveInOrderAndBeforeTheClose) {
  Pair pair;
  Link far(1, std::move(pair.far), "");
  {
    Link near(0, std::move(pair.near), "");
    near.offer_phase({1, "a"});
    near.queue(Goodbye{});
    near.flush();
    EXPECT_FALSE(near.has_unsent());
  }
  Ending ending;
  const std::vector<Message> messages = receive_all(far, ending);
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(std::get<PhaseNotice>(messages[0]).name, "a");
  EXPECT_TRUE(std::holds_alternative<Goodbye>(messages[1]));
  EXPECT_EQ(ending, "its connection ended");
}

TEST(FailureDetectorLink, BytesReadEarlierComeFirst) {
  Pair pair;
  const std::string early = encode(PhaseNotice{1, "a"});
  Link far(1, std::move(pair.far), early.substr(0, 5));
  const std::string rest = early.substr(5) + encode(Goodbye{});
  pair.near.send_all(rest.data(), rest.size(), Deadline::after(std::chrono::seconds(60)));
  Ending ending;
  EXPECT_EQ(receive_all(far, ending).size(), 2U);
  EXPECT_FALSE(ending);
}

TEST(FailureDetectorLink, ANeighbourThatDoesNotReadGetsTheNewestPhaseLater) {
  constexpr std::uint32_t phases = 100000;
  Pair pair;
  Link near(0, std::move(pair.near), ""), far(1, std::move(pair.far), "");
  for (std::uint32_t number = 1; number <= phases; ++number) {
    near.offer_phase({number, "phase"});
    near.flush();
  }
  ASSERT_TRUE(near.has_unsent()) << "the socket took everything: nothing was tested";
  std::uint32_t last = 0, count = 0;
  for (int turn = 0; turn < 10000 && last != phases; ++turn) {
    Ending ending;
    for (const Message& message : receive_all(far, ending)) {
      EXPECT_GT(std::get<PhaseNotice>(message).number, last);
      last = std::get<PhaseNotice>(message).number;
      ++count;
    }
    ASSERT_FALSE(ending);
    near.flush();
    near.offer_phase({phases, "phase"});
    near.flush();
  }
  EXPECT_EQ(last, phases);
  EXPECT_LT(count, phases);
}

TEST(FailureDetectorLink, GarbageEndsIt) {
  Pair pair;
  Link far(1, std::move(pair.far), "");
  const std::string bytes = encode(PhaseNotice{1, "a"}) + "garbage";
  pair.near.send_all(bytes.data(), bytes.size(), Deadline::after(std::chrono::seconds(60)));
  Ending ending;
  EXPECT_EQ(receive_all(far, ending).size(), 1U);
  EXPECT_EQ(ending, "it sent a malformed message");
}

TEST(FailureDetectorLink, SendingToAClosedPeerKeepsItsLastMessageReadable) {
  Pair pair;
  Link near(0, std::move(pair.near), "");
  const std::string words = encode(Goodbye{});
  pair.far.send_all(words.data(), words.size(), Deadline::after(std::chrono::seconds(60)));
  pair.far.close();
  near.offer_phase({1, "a"});
  near.flush();
  EXPECT_FALSE(near.has_unsent());
  Ending ending;
  const std::vector<Message> messages = receive_all(near, ending);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<Goodbye>(messages[0]));
  EXPECT_TRUE(ending);
}

} // namespace
} // namespace shmemctl::failure_detector
