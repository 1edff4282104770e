#include "src/runtime/buffers/message.h"

#include <gtest/gtest.h>
#include <random>

namespace shmemctl::buffers {
namespace {

constexpr JobSecret secret{1, 2, 3}, other_secret{1, 2, 4};

Answer sample_answer() {
  Answer answer;
  answer.sequence = 77;
  answer.outcome = Outcome::failed;
  answer.descriptors = 2;
  answer.shape = {4096, 8, 65536};
  answer.address = 0x7f0000001234;
  answer.size_bytes = 1 << 20;
  answer.page_gap_bytes = 0x234;
  answer.writable = true;
  answer.parts = {{0, 4096, 8192}, {1, 0, 4096}};
  answer.memory = BufferMemory::gpu_descriptors;
  answer.device = "GPU-0123";
  answer.handle = std::string("\0\1\2", 3);
  answer.reason = "why";
  return answer;
}

TEST(BufferMessage, RoundTripsRequests) {
  const Request sent{RequestKind::put, 3, 4, 99, {7, 1234567890123}, 4096, 1 << 20};
  const std::string bytes = encode(sent, secret);
  const auto read = decode_request(bytes.data(), bytes.size(), secret);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->kind, sent.kind);
  EXPECT_EQ(read->from_pe, 3u);
  EXPECT_EQ(read->to_pe, 4u);
  EXPECT_EQ(read->sequence, 99u);
  EXPECT_EQ(read->handle, sent.handle);
  EXPECT_EQ(read->offset_bytes, 4096u);
  EXPECT_EQ(read->size_bytes, 1u << 20);
}

TEST(BufferMessage, RoundTripsResponses) {
  const Answer sent = sample_answer();
  const std::string bytes = encode(sent, secret);
  const auto read = decode_answer(bytes.data(), bytes.size(), secret);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->sequence, sent.sequence);
  EXPECT_EQ(read->outcome, sent.outcome);
  EXPECT_EQ(read->descriptors, 2u);
  EXPECT_EQ(read->shape, sent.shape);
  EXPECT_EQ(read->address, sent.address);
  EXPECT_EQ(read->size_bytes, sent.size_bytes);
  EXPECT_EQ(read->page_gap_bytes, sent.page_gap_bytes);
  EXPECT_TRUE(read->writable);
  EXPECT_EQ(read->parts, sent.parts);
  EXPECT_EQ(read->memory, sent.memory);
  EXPECT_EQ(read->device, sent.device);
  EXPECT_EQ(read->handle, sent.handle);
  EXPECT_EQ(read->reason, "why");
}

TEST(BufferMessage, TheLargestFitsAndLongReasonsAreCut) {
  Answer answer = sample_answer();
  answer.descriptors = max_parts;
  answer.parts.assign(max_parts, {max_parts - 1, 0, 4096});
  answer.device.assign(max_device_bytes, 'd');
  answer.handle.assign(max_handle_bytes, 'h');
  answer.reason.assign(10000, 'x');
  const std::string bytes = encode(answer, secret);
  EXPECT_LE(bytes.size(), max_message_bytes);
  const auto read = decode_answer(bytes.data(), bytes.size(), secret);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->reason.size(), max_reason_bytes);
}

TEST(BufferMessage, AnyChangeIsNoticed) {
  const std::string request = encode(Request{}, secret);
  const std::string answer = encode(sample_answer(), secret);
  EXPECT_FALSE(decode_request(request.data(), request.size(), other_secret));
  EXPECT_FALSE(decode_answer(answer.data(), answer.size(), other_secret));
  EXPECT_FALSE(decode_request(answer.data(), answer.size(), secret));
  EXPECT_FALSE(decode_answer(request.data(), request.size(), secret));
  for (const std::string& whole : {request, answer})
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 1);
      EXPECT_FALSE(decode_request(changed.data(), changed.size(), secret));
      EXPECT_FALSE(decode_answer(changed.data(), changed.size(), secret));
      EXPECT_FALSE(decode_request(whole.data(), at, secret));
      EXPECT_FALSE(decode_answer(whole.data(), at, secret));
    }
}

TEST(BufferMessage, PartsMustNameReceivedDescriptors) {
  Answer answer = sample_answer();
  answer.descriptors = 1;
  const std::string bytes = encode(answer, secret);
  EXPECT_FALSE(decode_answer(bytes.data(), bytes.size(), secret));
}

TEST(BufferMessage, NamesDifferByPeAndJob) {
  EXPECT_NE(socket_name(secret, 0), socket_name(secret, 1));
  EXPECT_NE(socket_name(secret, 0), socket_name(other_secret, 0));
  EXPECT_NE(socket_name(secret, 0), peer_socket_name(secret, 0));
}

} // namespace
} // namespace shmemctl::buffers
