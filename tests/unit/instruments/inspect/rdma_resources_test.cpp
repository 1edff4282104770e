// Netlink messages of RDMA resources, built here as the kernel builds them, and the recorded form.
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <rdma/rdma_netlink.h>
#include <string>

#include "src/instruments/inspect/netlink.h"
#include "src/instruments/inspect/rdma_resources.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl::inspect {
namespace {

template <class T>
std::string raw_bytes(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
std::string u8_attribute(int type, std::uint8_t value) {
  return netlink_attribute(type, raw_bytes(value));
}
std::string u32_attribute(int type, std::uint32_t value) {
  return netlink_attribute(type, raw_bytes(value));
}
std::string u64_attribute(int type, std::uint64_t value) {
  return netlink_attribute(type, raw_bytes(value));
}
std::string text_attribute(int type, const std::string& text) {
  return netlink_attribute(type, text + '\0');
}
/// What the kernel sends of one device: its index and name, and a table of entries.
std::string table_message(int table, int entry, const std::vector<std::string>& entries) {
  std::string rows;
  for (const std::string& each : entries)
    rows += netlink_attribute(entry | NLA_F_NESTED, each);
  return u32_attribute(RDMA_NLDEV_ATTR_DEV_INDEX, 3) +
         text_attribute(RDMA_NLDEV_ATTR_DEV_NAME, "mlx5_0") +
         netlink_attribute(table | NLA_F_NESTED, rows);
}
std::string queue_pair_entry(std::uint32_t number, std::uint8_t type, std::uint8_t state) {
  return u32_attribute(RDMA_NLDEV_ATTR_PORT_INDEX, 1) +
         u32_attribute(RDMA_NLDEV_ATTR_RES_LQPN, number) +
         u8_attribute(RDMA_NLDEV_ATTR_RES_TYPE, type) +
         u8_attribute(RDMA_NLDEV_ATTR_RES_STATE, state);
}
std::string netlink_message(int type, std::uint32_t sequence, const std::string& body) {
  nlmsghdr header{};
  header.nlmsg_len = static_cast<std::uint32_t>(sizeof header + body.size());
  header.nlmsg_type = static_cast<std::uint16_t>(type);
  header.nlmsg_seq = sequence;
  std::string bytes = raw_bytes(header) + body;
  bytes.resize((bytes.size() + 3) / 4 * 4, '\0');
  return bytes;
}

TEST(InspectNetlink, MessagesOfADatagram) {
  NetlinkAnswer answer;
  add_netlink_messages(netlink_message(5, 7, "first") + netlink_message(5, 6, "of another") +
                           netlink_message(5, 7, "second"),
                       7, answer);
  EXPECT_EQ(answer.bodies, (std::vector<std::string>{"first", "second"}));
  EXPECT_FALSE(answer.ended);
  add_netlink_messages(netlink_message(NLMSG_DONE, 7, raw_bytes(std::int32_t{0})) +
                           netlink_message(5, 7, "after the end"),
                       7, answer);
  EXPECT_TRUE(answer.ended);
  EXPECT_EQ(answer.error_number, 0);
  EXPECT_EQ(answer.bodies.size(), 2U);
}

TEST(InspectNetlink, ErrorsAndWhatIsMalformed) {
  NetlinkAnswer refused;
  add_netlink_messages(netlink_message(NLMSG_ERROR, 1, raw_bytes(std::int32_t{-EPERM})), 1,
                       refused);
  EXPECT_TRUE(refused.ended);
  EXPECT_EQ(refused.error_number, EPERM);
  const std::string whole = netlink_message(5, 1, "12345678");
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    NetlinkAnswer answer;
    add_netlink_messages(whole.substr(0, cut), 1, answer);
    EXPECT_TRUE(answer.bodies.empty()) << cut;
  }
}

TEST(InspectNetlink, AttributesEndAtTheFirstThatIsMalformed) {
  std::string bytes = u32_attribute(1, 5) + text_attribute(2, "mlx5_0");
  std::size_t seen = 0;
  each_attribute(bytes, [&seen](int type, std::string_view value) {
    ++seen;
    if (type == 1)
      EXPECT_EQ(attribute_u32(value), 5U);
    else
      EXPECT_EQ(attribute_text(value), "mlx5_0");
    EXPECT_EQ(attribute_u64(value), std::nullopt) << "of another size";
  });
  EXPECT_EQ(seen, 2U);
  bytes += std::string("\x03\x00\x01\x00", 4); // shorter than its own header
  bytes += u32_attribute(9, 9);
  seen = 0;
  each_attribute(bytes, [&seen](int, std::string_view) { ++seen; });
  EXPECT_EQ(seen, 2U);
}

TEST(InspectRdmaResources, QueuePairsOfTheKernel) {
  constexpr std::uint8_t rc = 2, ud = 4, driver = 0xff, rts = 3, reset = 0;
  RdmaResources found;
  add_rdma_message(
      RdmaResource::queue_pair,
      table_message(
          RDMA_NLDEV_ATTR_RES_QP, RDMA_NLDEV_ATTR_RES_QP_ENTRY,
          {queue_pair_entry(280, rc, rts) + u32_attribute(RDMA_NLDEV_ATTR_RES_RQPN, 281) +
               u32_attribute(RDMA_NLDEV_ATTR_RES_PID, 4711),
           queue_pair_entry(1, 1, rts) + text_attribute(RDMA_NLDEV_ATTR_RES_KERN_NAME, "ib_core"),
           queue_pair_entry(282, ud, reset) + u32_attribute(RDMA_NLDEV_ATTR_RES_PID, 4711),
           queue_pair_entry(5, driver, rts) + u32_attribute(RDMA_NLDEV_ATTR_RES_PID, 4712)}),
      found);
  ASSERT_EQ(found.by_pid.size(), 2U) << "the kernel's own has no PID";
  const RdmaUse& use = found.by_pid[4711];
  ASSERT_EQ(use.queue_pairs.size(), 2U);
  EXPECT_EQ(use.queue_pairs[0].device, "mlx5_0");
  EXPECT_EQ(use.queue_pairs[0].port, 1);
  EXPECT_EQ(use.queue_pairs[0].type, "RC");
  EXPECT_EQ(use.queue_pairs[0].state, "RTS");
  EXPECT_EQ(use.queue_pairs[0].number, 280U);
  EXPECT_EQ(use.queue_pairs[0].remote_number, 281U);
  EXPECT_TRUE(use.queue_pairs[0].connected());
  EXPECT_EQ(use.queue_pairs[1].type, "UD");
  EXPECT_EQ(use.queue_pairs[1].remote_number, std::nullopt);
  EXPECT_FALSE(use.queue_pairs[1].connected());
  EXPECT_EQ(found.by_pid[4712].queue_pairs[0].type, "DRIVER");
}

TEST(InspectRdmaResources, CountsAndConnectionsOfTheKernel) {
  const std::string pid = u32_attribute(RDMA_NLDEV_ATTR_RES_PID, 7);
  RdmaResources found;
  add_rdma_message(RdmaResource::completion_queue,
                   table_message(RDMA_NLDEV_ATTR_RES_CQ, RDMA_NLDEV_ATTR_RES_CQ_ENTRY, {pid, pid}),
                   found);
  add_rdma_message(RdmaResource::memory_region,
                   table_message(RDMA_NLDEV_ATTR_RES_MR, RDMA_NLDEV_ATTR_RES_MR_ENTRY,
                                 {u64_attribute(RDMA_NLDEV_ATTR_RES_MRLEN, 65536) + pid,
                                  u64_attribute(RDMA_NLDEV_ATTR_RES_MRLEN, ~0ULL) + pid}),
                   found);
  sockaddr_storage local{}, remote{};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(4711);
  ASSERT_EQ(::inet_pton(AF_INET, "10.0.0.1", &address.sin_addr), 1);
  std::memcpy(&local, &address, sizeof address);
  sockaddr_in6 address6{};
  address6.sin6_family = AF_INET6;
  address6.sin6_port = htons(80);
  ASSERT_EQ(::inet_pton(AF_INET6, "fe80::1", &address6.sin6_addr), 1);
  std::memcpy(&remote, &address6, sizeof address6);
  add_rdma_message(
      RdmaResource::connection,
      table_message(RDMA_NLDEV_ATTR_RES_CM_ID, RDMA_NLDEV_ATTR_RES_CM_ID_ENTRY,
                    {pid + u32_attribute(RDMA_NLDEV_ATTR_PORT_INDEX, 2) +
                     u8_attribute(RDMA_NLDEV_ATTR_RES_STATE, 5) +
                     netlink_attribute(RDMA_NLDEV_ATTR_RES_SRC_ADDR, raw_bytes(local)) +
                     netlink_attribute(RDMA_NLDEV_ATTR_RES_DST_ADDR, raw_bytes(remote))}),
      found);
  const RdmaUse& use = found.by_pid[7];
  EXPECT_EQ(use.completion_queues, 2U);
  EXPECT_EQ(use.memory_regions, 2U);
  EXPECT_EQ(use.memory_bytes, 65536U) << "a region of all addresses has no length that counts";
  ASSERT_EQ(use.connections.size(), 1U);
  EXPECT_EQ(use.connections[0].state, "CONNECT");
  EXPECT_EQ(use.connections[0].port, 2);
  EXPECT_EQ(use.connections[0].local, "10.0.0.1:4711");
  EXPECT_EQ(use.connections[0].remote, "[fe80::1]:80");
}

TEST(InspectRdmaResources, IndexAndNameOfADevice) {
  const auto device = parse_rdma_device(u32_attribute(RDMA_NLDEV_ATTR_DEV_INDEX, 3) +
                                        text_attribute(RDMA_NLDEV_ATTR_DEV_NAME, "rxe0"));
  ASSERT_TRUE(device);
  EXPECT_EQ(device->index, 3U);
  EXPECT_EQ(device->name, "rxe0");
  EXPECT_FALSE(parse_rdma_device(u32_attribute(RDMA_NLDEV_ATTR_DEV_INDEX, 3)));
  EXPECT_FALSE(parse_rdma_device("x"));
}

TEST(InspectRdmaResources, TextAsRdmaResourceShowWritesIt) {
  RdmaResources found;
  add_rdma_text(RdmaResource::queue_pair,
                "link mlx5_0/1 lqpn 280 rqpn 281 type RC state RTS rq-psn 1 sq-psn 2 "
                "path-mig-state MIGRATED pdn 4 pid 4711 comm my app pid 9\n"
                "link mlx5_0/1 lqpn 1 type GSI state RTS sq-psn 0 comm ib_core\n"
                "link mlx5_1/- lqpn 290 type UD state RESET sq-psn 0 pid 4711 comm x\n"
                "nonsense\npid\nlink mlx5_0/999999999999 lqpn -5 pid 4711\n",
                found);
  ASSERT_EQ(found.by_pid.size(), 1U) << "a name does not change the PID";
  const auto& pairs = found.by_pid[4711].queue_pairs;
  ASSERT_EQ(pairs.size(), 3U);
  EXPECT_EQ(pairs[0].remote_number, 281U);
  EXPECT_EQ(pairs[1].device, "mlx5_1");
  EXPECT_EQ(pairs[1].port, 0);
  EXPECT_EQ(pairs[2].port, 0);
  EXPECT_EQ(pairs[2].number, 0U);
}

TEST(InspectRdmaResources, WhatIsRecordedIsReadAgain) {
  RdmaResources before;
  RdmaUse& use = before.by_pid[42];
  use.queue_pairs = {{"mlx5_0", 1, "RC", "RTS", 280, 281}, {"mlx5_1", 0, "UD", "RESET", 7, {}}};
  use.completion_queues = 3;
  use.memory_regions = 2;
  use.memory_bytes = 123456;
  use.connections = {{"mlx5_0", 1, "CONNECT", "10.0.0.1:1", "10.0.0.2:2"},
                     {"", 0, "LISTEN", "0.0.0.0:5", ""}};
  const TemporaryFolder folder;
  for (const RdmaResource kind : {RdmaResource::queue_pair, RdmaResource::completion_queue,
                                  RdmaResource::memory_region, RdmaResource::connection})
    folder.write(rdma_record_path(kind).substr(1), rdma_text(kind, before));
  const RdmaResources after = read_rdma_resources(Sysroot(folder.path()));
  EXPECT_TRUE(after.known);
  ASSERT_EQ(after.by_pid.count(42), 1U);
  const RdmaUse& again = after.by_pid.at(42);
  ASSERT_EQ(again.queue_pairs.size(), 2U);
  EXPECT_EQ(again.queue_pairs[0].number, 280U);
  EXPECT_EQ(again.queue_pairs[1].state, "RESET");
  EXPECT_EQ(again.completion_queues, 3U);
  EXPECT_EQ(again.memory_regions, 2U);
  EXPECT_EQ(again.memory_bytes, 123456U);
  ASSERT_EQ(again.connections.size(), 2U);
  EXPECT_EQ(again.connections[0].remote, "10.0.0.2:2");
  EXPECT_EQ(again.connections[1].device, "");
  for (const RdmaResource kind : {RdmaResource::queue_pair, RdmaResource::connection})
    EXPECT_EQ(rdma_text(kind, after), rdma_text(kind, before));
  EXPECT_TRUE(after.skipped.empty());
  EXPECT_TRUE(after.of(42).completion_queues_known && after.of(42).memory_regions_known);
  const TemporaryFolder empty;
  EXPECT_FALSE(read_rdma_resources(Sysroot(empty.path())).known);
  EXPECT_TRUE(read_rdma_resources(Sysroot(empty.path())).skipped.empty());
}

TEST(InspectRdmaResources, AKindThatTheRecordingLacksIsNamed) {
  const TemporaryFolder folder;
  folder.write(rdma_record_path(RdmaResource::queue_pair).substr(1), "");
  folder.write(rdma_record_path(RdmaResource::connection).substr(1), "");
  const RdmaResources read = read_rdma_resources(Sysroot(folder.path()));
  EXPECT_TRUE(read.known);
  std::vector<std::string> names;
  for (const Skipped& one : read.skipped)
    names.push_back(one.what);
  EXPECT_EQ(names, (std::vector<std::string>{"rdma resource cq", "rdma resource mr"}));
  EXPECT_FALSE(read.of(42).completion_queues_known);
  EXPECT_FALSE(read.of(42).memory_regions_known);
}

} // namespace
} // namespace shmemctl::inspect
