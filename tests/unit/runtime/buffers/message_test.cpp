#include "src/runtime/buffers/message.h"

#include <gtest/gtest.h>
#include <random>

namespace shmemctl::buffers {
namespace {

constexpr JobSecret secret{1, 2, 3}, other_secret{1, 2, 4};

Response sample_response() {
  Response response;
  response.sequence = 77;
  response.outcome = Outcome::failed;
  response.descriptors = 2;
  response.shape = {4096, 8, 65536};
  response.address = 0x7f0000001234;
  response.size_bytes = 1 << 20;
  response.page_gap_bytes = 0x234;
  response.writable = true;
  response.parts = {{0, 4096, 8192}, {1, 0, 4096}};
  response.memory = BufferMemory::gpu_descriptors;
  response.device = "GPU-0123";
  response.handle = std::string("\0\1\2", 3);
  response.reason = "why";
  return response;
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
  const Response sent = sample_response();
  const std::string bytes = encode(sent, secret);
  const auto read = decode_response(bytes.data(), bytes.size(), secret);
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
  Response response = sample_response();
  response.descriptors = max_parts;
  response.parts.assign(max_parts, {max_parts - 1, 0, 4096});
  response.device.assign(max_device_bytes, 'd');
  response.handle.assign(max_handle_bytes, 'h');
  response.reason.assign(10000, 'x');
  const std::string bytes = encode(response, secret);
  EXPECT_LE(bytes.size(), max_message_bytes);
  const auto read = decode_response(bytes.data(), bytes.size(), secret);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->reason.size(), max_reason_bytes);
}

TEST(BufferMessage, AnyChangeIsNoticed) {
  const std::string request = encode(Request{}, secret);
  const std::string response = encode(sample_response(), secret);
  EXPECT_FALSE(decode_request(request.data(), request.size(), other_secret));
  EXPECT_FALSE(decode_response(response.data(), response.size(), other_secret));
  EXPECT_FALSE(decode_request(response.data(), response.size(), secret));
  EXPECT_FALSE(decode_response(request.data(), request.size(), secret));
  for (const std::string& whole : {request, response})
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 1);
      EXPECT_FALSE(decode_request(changed.data(), changed.size(), secret));
      EXPECT_FALSE(decode_response(changed.data(), changed.size(), secret));
      EXPECT_FALSE(decode_request(whole.data(), at, secret));
      EXPECT_FALSE(decode_response(whole.data(), at, secret));
    }
}

TEST(BufferMessage, PartsMustNameReceivedDescriptors) {
  Response response = sample_response();
  response.descriptors = 1;
  const std::string bytes = encode(response, secret);
  EXPECT_FALSE(decode_response(bytes.data(), bytes.size(), secret));
}

TEST(BufferMessage, NamesDifferByPeAndJob) {
  EXPECT_NE(socket_name(secret, 0), socket_name(secret, 1));
  EXPECT_NE(socket_name(secret, 0), socket_name(other_secret, 0));
  EXPECT_NE(socket_name(secret, 0), peer_socket_name(secret, 0));
}

} // namespace
} // namespace shmemctl::buffers
