// The failure detector's wire format: round trips of every message, and every kind of malformed
// one.
#include <gtest/gtest.h>
#include <random>

#include "src/runtime/failure_detector_wire.h"

namespace shmemctl::failure_detector {
namespace {

/// As a PE announces it, with its own error.
Failure announced() {
  Failure failure;
  failure.pe = 3;
  failure.host = "a";
  failure.phase = "heap";
  failure.message = "PE 3 (host a) failed in phase heap: ...";
  failure.fix = "free memory";
  failure.error = Error(failure.code, "the heap", "reserve", "no space", failure.fix,
                        {"a", 3, "mlx5_1", std::nullopt});
  return failure;
}

std::vector<Message> samples() {
  Hello hello;
  hello.proof = {1, 2, 3, 250, 251, 252};
  hello.rank = 3;
  hello.size = 7;
  Failure failure;
  failure.pe = -1;
  failure.host = "a";
  failure.phase = "heap";
  failure.message = std::string("PE 3 \0 \xff", 8);
  failure.fix = "replace it";
  failure.code = ExitCode::deadline;
  failure.unresponsive = true;
  Status status;
  status.proof = {9};
  status.phase = {4, "teams"};
  status.step = "barrier";
  status.waiting_for = 2;
  status.calls = 0xfedcba9876543210U;
  status.knows_other = true;
  status.other = {9, ""};
  return {hello,
          Welcome{{7}, 5},
          Query{hello, -1},
          Query{hello, 6},
          PhaseNotice{0xffffffffU, "nics"},
          failure,
          Goodbye{},
          status,
          Status{},
          ConnectionRequest{{1, 2}},
          Challenge{{3, 4}},
          announced(),
          Printed{announced()},
          Printed{failure}};
}

TEST(FailureDetectorWire, RoundTripsEveryMessage) {
  for (const Message& message : samples()) {
    const std::string frame = encode(message);
    const Decoded decoded = decode(frame + "rest", max_frame_bytes);
    ASSERT_EQ(decoded.state, Decoding::complete) << message.index();
    EXPECT_EQ(decoded.size_bytes, frame.size());
    EXPECT_EQ(decoded.message.index(), message.index());
    EXPECT_EQ(encode(decoded.message), frame);
  }
}

TEST(FailureDetectorWire, FieldsKeepTheirValues) {
  const std::vector<Message> all = samples();
  const Failure failure = std::get<Failure>(decode(encode(all[5]), max_frame_bytes).message);
  EXPECT_EQ(failure.pe, -1);
  EXPECT_EQ(failure.message.size(), 8U);
  EXPECT_EQ(failure.code, ExitCode::deadline);
  EXPECT_EQ(failure.fix, "replace it");
  EXPECT_TRUE(failure.unresponsive);
  EXPECT_FALSE(failure.error);
  const Failure own = std::get<Failure>(decode(encode(all[11]), max_frame_bytes).message);
  ASSERT_TRUE(own.error);
  EXPECT_EQ(own.error->message(),
            "the heap (host a, PE 3, device mlx5_1): cannot reserve: no space");
  EXPECT_EQ(own.error->fix(), "free memory");
  EXPECT_EQ(own.error->code(), ExitCode::unavailable);
  const Printed printed = std::get<Printed>(decode(encode(all[12]), max_frame_bytes).message);
  ASSERT_TRUE(printed.failure.error);
  EXPECT_TRUE(same_failure(*printed.failure.error, *own.error));
  const Status status = std::get<Status>(decode(encode(all[7]), max_frame_bytes).message);
  EXPECT_EQ(status.calls, 0xfedcba9876543210U);
  EXPECT_EQ(status.waiting_for, 2);
  EXPECT_EQ(status.phase.name, "teams");
  EXPECT_TRUE(status.knows_other);
}

TEST(FailureDetectorWire, EncodesThePeThatAPeWaitsFor) {
  for (const bool by_network : {false, true})
    for (const std::int32_t peer : {-1, 0, 7, 0x7ffffffd}) {
      Status status;
      status.waiting_for = peer;
      status.by_network = by_network;
      const Status back = std::get<Status>(decode(encode(status), max_frame_bytes).message);
      EXPECT_EQ(back.waiting_for, peer);
      EXPECT_EQ(back.by_network, by_network) << peer;
    }
}

TEST(FailureDetectorWire, APrefixIsIncomplete) {
  for (const Message& message : samples()) {
    const std::string frame = encode(message);
    for (std::size_t length = 0; length < frame.size(); ++length)
      EXPECT_EQ(decode(std::string_view(frame).substr(0, length), max_frame_bytes).state,
                Decoding::incomplete)
          << message.index() << " at " << length;
  }
}

TEST(FailureDetectorWire, GarbageIsDetectedAtItsFirstByte) {
  for (const std::string& text :
       {std::string("G"), std::string("GET / HTTP/1.1\r\n"), std::string("\0", 1),
        std::string("SSH-2.0-"), std::string("sX"), std::string("sL\0", 3),
        std::string("sL\x0b", 3), std::string("sL\x01\x01", 4), std::string("sL\xff", 3)})
    EXPECT_EQ(decode(text, max_frame_bytes).state, Decoding::garbage) << text;
}

TEST(FailureDetectorWire, LengthsAreLimited) {
  std::string frame = encode(PhaseNotice{1, "heap"});
  for (const char high : {'\x10', '\x7f', '\xff'}) {
    frame[7] = high;
    EXPECT_EQ(decode(frame, max_frame_bytes).state, Decoding::garbage);
  }
  Failure failure;
  failure.message = std::string(100, 'x');
  EXPECT_EQ(decode(encode(failure), max_unproven_bytes).state, Decoding::garbage);
  EXPECT_EQ(decode(encode(Query{}), max_unproven_bytes).state, Decoding::garbage) << "rank 0 of 0";
  EXPECT_EQ(decode(encode(Query{Hello{{}, 0, 1}, 0}), max_unproven_bytes).state,
            Decoding::complete);
}

TEST(FailureDetectorWire, LongTextsAreTruncated) {
  Failure failure;
  const std::string text(70000, 'x');
  failure.host = failure.phase = failure.message = failure.fix = text;
  failure.error = Error(failure.code, text, text, text, text, {text, 1, text, 2});
  const std::string frame = encode(failure);
  EXPECT_LE(frame.size(), max_frame_bytes);
  const Decoded decoded = decode(frame, max_frame_bytes);
  ASSERT_EQ(decoded.state, Decoding::complete);
  EXPECT_EQ(std::get<Failure>(decoded.message).message.size(), max_message_bytes);
  EXPECT_EQ(std::get<Failure>(decoded.message).phase.size(), max_name_bytes);
}

TEST(FailureDetectorWire, WrongFieldsAreGarbage) {
  std::string other_version = encode(ConnectionRequest{});
  other_version[8] = 1;
  EXPECT_EQ(decode(other_version, max_frame_bytes).state, Decoding::garbage);
  for (const Hello& bad : {Hello{{}, 7, 7}, Hello{{}, -1, 7}, Hello{{}, 0, 0}, Hello{{}, 0, -5}})
    EXPECT_EQ(decode(encode(bad), max_frame_bytes).state, Decoding::garbage);
  Failure no_failure;
  no_failure.code = ExitCode::ok;
  EXPECT_EQ(decode(encode(no_failure), max_frame_bytes).state, Decoding::garbage);
  std::string too_long = encode(Goodbye{});
  too_long[4] = 1;
  EXPECT_EQ(decode(too_long + "x", max_frame_bytes).state, Decoding::garbage);
}

TEST(FailureDetectorWire, AProofHoldsForOneMessageOnOneConnection) {
  const Handshake here{{1}, {2}}, there{{1}, {3}};
  const Secret secret = {7}, other = {8};
  const Message hello = proven(here, secret, Hello{{}, 3, 7});
  EXPECT_TRUE(is_proven(here, secret, hello));
  EXPECT_FALSE(is_proven(there, secret, hello));
  EXPECT_FALSE(is_proven(here, other, hello));
  Hello another = std::get<Hello>(hello);
  another.rank = 4;
  EXPECT_FALSE(is_proven(here, secret, another));
  // Nor for another kind of message: a Query that carries it, or a Welcome that sends it back.
  EXPECT_FALSE(is_proven(here, secret, Query{std::get<Hello>(hello), -1}));
  EXPECT_FALSE(is_proven(here, secret, Welcome{std::get<Hello>(hello).proof, 3}));
  EXPECT_TRUE(is_proven(here, secret, proven(here, secret, Query{{{}, 3, 7}, 1})));
  EXPECT_TRUE(is_proven(here, secret, proven(here, secret, Welcome{{}, 1})));
  EXPECT_TRUE(is_proven(here, secret, proven(here, secret, Status{})));
  for (const Message& without :
       {Message(Goodbye{}), Message(ConnectionRequest{}), Message(Failure{})})
    EXPECT_FALSE(is_proven(here, secret, without));
}

TEST(FailureDetectorWire, SurvivesDamagedFrames) {
  std::mt19937 random(5);
  for (int round = 0; round < 20000; ++round) {
    const std::vector<Message> all = samples();
    std::string frame = encode(all[random() % all.size()]);
    for (unsigned change = 0; change <= random() % 3; ++change)
      frame[random() % frame.size()] = static_cast<char>(random());
    const Decoded decoded = decode(frame, max_frame_bytes);
    if (decoded.state == Decoding::complete) {
      EXPECT_EQ(encode(decoded.message), frame.substr(0, decoded.size_bytes));
    }
  }
}

} // namespace
} // namespace shmemctl::failure_detector
