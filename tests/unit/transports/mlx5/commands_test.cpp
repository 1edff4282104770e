// Firmware commands, byte for byte: fields where the device's definition has them.
#include <gtest/gtest.h>

#if __has_include(<infiniband/mlx5dv.h>)

#include "src/base/error.h"
#include "transports/mlx5/devx/commands.h"
#include "transports/mlx5/qp_layout.h"

namespace shmemctl::test {
namespace {

using namespace shmemctl::mlx5;

/// All bytes but those that `set` names must be 0: (offset, bytes in hexadecimal).
template <std::size_t Size>
void expect_bytes(const command::Buffer<Size>& buffer,
                  const std::vector<std::pair<std::size_t, std::string>>& set) {
  std::array<std::uint8_t, Size> expected{};
  for (const auto& [offset, digits] : set)
    for (std::size_t i = 0; i < digits.size(); i += 2)
      expected[offset + i / 2] =
          static_cast<std::uint8_t>(std::stoi(digits.substr(i, 2), nullptr, 16));
  for (std::size_t at = 0; at < Size; ++at)
    EXPECT_EQ(buffer.data()[at], expected[at]) << "at byte 0x" << std::hex << at;
}

TEST(Mlx5Commands, FieldsOfEveryPlaceAndWidth) {
  for (unsigned width = 1; width <= 64; ++width)
    for (unsigned bit = 0; bit + width <= 128; ++bit) {
      command::Buffer<16> buffer;
      const std::uint64_t value = 0x9234'5678'9abc'def1 & (~0ull >> (64 - width));
      buffer.set({bit, width}, value);
      EXPECT_EQ(buffer.get({bit, width}), value);
      if (bit > 0) {
        EXPECT_EQ(buffer.get({0, std::min(bit, 64u)}), 0u);
      }
      // Adjacent bits do not change.
      command::Buffer<16> full;
      for (unsigned i = 0; i < 128; ++i)
        full.set({i, 1}, 1);
      full.set({bit, width}, 0);
      unsigned ones = 0;
      for (unsigned i = 0; i < 128; ++i)
        ones += static_cast<unsigned>(full.get({i, 1}));
      EXPECT_EQ(ones, 128 - width);
    }
}

TEST(Mlx5Commands, Capabilities) {
  expect_bytes(caps_command(command::caps::general_now), {{0, "0100"}, {6, "0001"}});
  expect_bytes(caps_command(command::caps::atomic_now), {{0, "0100"}, {6, "0007"}});

  CapsReply general, atomic;
  general.data()[16 + 0x11] = 15;        // log_max_qp_sz
  general.data()[16 + 0x29] = 4;         // log_max_ra_req_qp: the low 6 bits
  general.data()[16 + 0x2b] = 0xc0 | 3;  // log_max_ra_res_qp
  general.data()[16 + 0x38] = 0xe0 | 30; // log_max_msg: the low 5 bits
  general.data()[16 + 0x43] = 0x02;      // atomic
  atomic.data()[16 + 0x08] = 0x40;       // host order: the high 2 bits
  atomic.data()[16 + 0x13] = 0x0f;       // operations
  atomic.data()[16 + 0x17] = 0x0c;       // sizes
  const DeviceLimits limits = limits_of(general, {}, atomic);
  EXPECT_EQ(limits.log_wqebbs, 15u);
  EXPECT_EQ(limits.log_reads, 3u);
  EXPECT_EQ(limits.log_message_bytes, 30u);
  EXPECT_EQ(limits.atomic_bytes, 12u);
  EXPECT_FALSE(limits.can_force_order);

  atomic.data()[16 + 0x13] = 0x03;
  EXPECT_EQ(limits_of(general, {}, atomic).atomic_bytes, 0u) << "no masked ones";
  atomic.data()[16 + 0x13] = 0x0f;
  atomic.data()[16 + 0x17] = 0x08;
  EXPECT_EQ(limits_of(general, {}, atomic).atomic_bytes, 8u);
  general.data()[16 + 0x43] = 0;
  EXPECT_EQ(limits_of(general, {}, atomic).atomic_bytes, 0u);
  general.data()[16 + 0x11] = 16;
  EXPECT_EQ(limits_of(general, {}, atomic).log_wqebbs, 15u) << "half of what an index counts";
}

QpOptions options_of(CqMode mode) {
  QpOptions options;
  options.wqebbs = 1024;
  options.completions = mode;
  options.page_bytes = 4096;
  return options;
}

const QueueObjects objects{0xa1a2a3a4, 0xb1b2b3, 0xc1c2c3, 0xd1};

TEST(Mlx5Commands, CreateCompletionQueue) {
  // WQEs take 16 pages, completions 16 more; the records are behind them.
  expect_bytes(create_cq_command(options_of(CqMode::ring), objects),
               {{0x00, "0400"},
                {0x10, "02000000"},         // the record is in registered memory
                {0x14, "a1a2a3a4"},         // and in which
                {0x1c, "0ab1b2b3"},         // 2^10 WQEs, register page
                {0x27, "d1"},               // event queue
                {0x48, "0000000000020040"}, // where its record is
                {0x50, "0000000000010000"}, // where its WQEs are
                {0x58, "a1a2a3a4"},
                {0x5c, "80"}});
  expect_bytes(create_cq_command(options_of(CqMode::collapsed), objects),
               {{0x00, "0400"},
                {0x10, "02120000"}, // collapsed, and overrun ignored
                {0x14, "a1a2a3a4"},
                {0x1c, "00b1b2b3"},
                {0x27, "d1"},
                {0x48, "0000000000011040"},
                {0x50, "0000000000010000"},
                {0x58, "a1a2a3a4"},
                {0x5c, "80"}});
}

TEST(Mlx5Commands, CreateQueuePair) {
  expect_bytes(create_qp_command(options_of(CqMode::ring), objects, 0xe1e2e3),
               {{0x00, "0500"},
                {0x18, "00001800"},         // reliable, migrated
                {0x1d, "c1c2c3"},           // protection domain
                {0x22, "50"},               // 2^10 WQEBBs: bits 0x51 to 0x54
                {0x25, "b1b2b3"},           // register page
                {0x95, "e1e2e3"},           // completions of sends
                {0xb5, "e1e2e3"},           // and of receives
                {0xb8, "0000000000020000"}, // its records
                {0xc4, "03"},               // no receive queue
                {0xe8, "10"},               // the records are in registered memory
                {0xfc, "a1a2a3a4"},
                {0x108, "a1a2a3a4"},
                {0x10c, "80"}});
}

/// With pages of 64 KiB, parts of different queues never share one. The device still counts in its
/// own pages, which is the meaning of a log_page_size of 0.
TEST(Mlx5Commands, LargePages) {
  QpOptions options = options_of(CqMode::collapsed);
  options.page_bytes = 65536;
  const QpLayout layout = qp_layout(options);
  for (const std::size_t at :
       {layout.completions_offset, layout.records_offset, layout.words_offset, layout.size_bytes})
    EXPECT_EQ(at % 65536, 0u);
  const CqCommand completions = create_cq_command(options, objects);
  EXPECT_EQ(completions.get(command::cq::umem_offset), layout.completions_offset);
  EXPECT_EQ(completions.get(command::cq::log_page_size), 0u);
  options.page_bytes = 2048;
  EXPECT_THROW(qp_layout(options), Error);
}

TEST(Mlx5Commands, AForcedOrder) {
  QueueObjects forced = objects;
  forced.force_order = true;
  const QpCommand made = create_qp_command(options_of(CqMode::ring), forced, 0xe1e2e3);
  EXPECT_EQ(made.data()[0x1c], 0x01) << "bit 0x27 of the context";
  const QpCommand received = to_receive_command(0xabcdef, {}, {}, true);
  EXPECT_EQ(received.data()[0x1c], 0x01);
  CapsReply general_2;
  general_2.data()[16 + 0x11] = 0x80; // bit 0x88
  EXPECT_TRUE(limits_of({}, general_2, {}).can_force_order);
  expect_bytes(caps_command(command::caps::general_2_now), {{0, "0100"}, {6, "0041"}});
}

TEST(Mlx5Commands, ToInit) {
  expect_bytes(to_init_command(0xabcdef, 2), {{0x00, "0502"},
                                              {0x09, "abcdef"},
                                              {0x18, "00001800"},
                                              {0x55, "02"},     // port
                                              {0xa9, "03e0"}}); // 8-byte atomics, all rights
}

WirePath path_to_peer() {
  WirePath path;
  path.peer_qpn = 0x123456;
  path.peer_first_psn = 0x234567;
  return path;
}

TEST(Mlx5Commands, ToReceiveOnEthernet) {
  WirePath path = path_to_peer();
  path.port = 1;
  path.mtu = 5;
  path.source_gid_index = 3;
  path.peer_gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3};
  path.peer_mac = {0x02, 0x03, 0x04, 0x05, 0x06, 0x07};
  path.options.service_level = 3;
  path.options.traffic_class = 106;
  DeviceLimits limits;
  limits.log_reads = 6;
  path.outstanding_reads = outstanding_reads(limits);
  expect_bytes(to_receive_command(0xabcdef, path, limits),
               {{0x00, "0503"},
                {0x09, "abcdef"},
                {0x10, "0000000e"}, // the rights are given
                {0x20, "be"},       // MTU 5, messages of 2^30
                {0x2d, "123456"},   // the peer's queue
                {0x39, "03"},       // our GID
                {0x3b, "40"},       // hop limit
                {0x40, "00000000000000000000ffff0a010203"},
                {0x51, "1a"},       // DSCP
                {0x52, "f456"},     // UDP port
                {0x54, "30010203"}, // priority, port, MAC
                {0x58, "04050607"},
                {0xa9, "83e0"},       // 2^4 reads, atomics, rights
                {0xac, "0c234567"}}); // RNR timer, first packet number
}

TEST(Mlx5Commands, ToReceiveOnInfiniBand) {
  WirePath path = path_to_peer();
  path.port = 2;
  path.ethernet = false;
  path.global = false;
  path.mtu = 4;
  path.peer_lid = 0x3456;
  path.options.service_level = 5;
  const std::vector<std::pair<std::size_t, std::string>> common = {
      {0x00, "0503"}, {0x09, "abcdef"},  {0x10, "0000000e"},
      {0x20, "9e"},   {0x2d, "123456"},  {0x36, "3456"}, // LID
      {0x54, "0502"},                                    // service level, port
      {0xa9, "03e0"}, {0xac, "0c234567"}};
  expect_bytes(to_receive_command(0xabcdef, path, {}), common);
  path.global = true;
  path.source_gid_index = 1;
  path.peer_gid = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
  path.options.traffic_class = 0xab;
  auto global = common;
  global.insert(global.end(), {{0x35, "80"}, // GRH
                               {0x39, "01"},
                               {0x3b, "40"},
                               {0x3c, "0ab0"}, // traffic class: 8 bits behind 4
                               {0x40, "fe800000000000000102030405060708"}});
  expect_bytes(to_receive_command(0xabcdef, path, {}), global);
}

TEST(Mlx5Commands, ToSend) {
  rc::QpPath path;
  path.options.ack_timeout = 18;
  path.options.retry_count = 6;
  path.first_psn = 0x345678;
  path.outstanding_reads = 4;
  expect_bytes(to_send_command(0xabcdef, path),
               {{0x00, "0504"},
                {0x09, "abcdef"},
                {0x38, "90"},   // timeout: the high 5 bits
                {0x89, "46e0"}, // 2^2 reads (3 bits), 2 free, 6 retries, 7 RNR retries
                {0x91, "345678"}});
}

} // namespace
} // namespace shmemctl::test

#endif
