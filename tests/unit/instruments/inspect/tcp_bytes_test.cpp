// Bytes of TCP connections: the kernel's messages, the recorded form, the window.
#include <gtest/gtest.h>

#include <cstddef>
#include <linux/inet_diag.h>
#include <linux/tcp.h>
#include <string>

#include "src/instruments/inspect/netlink.h"
#include "src/instruments/inspect/tcp_bytes.h"
#include "tests/support/temporary_folder.h"

namespace shmemctl::inspect {
namespace {

/// @param info_bytes as much of tcp_info as that kernel has
std::string socket_message(std::uint32_t inode, std::uint64_t sent, std::uint64_t received,
                           std::size_t info_bytes = sizeof(tcp_info)) {
  inet_diag_msg message{};
  message.idiag_inode = inode;
  tcp_info info{};
  info.tcpi_bytes_acked = sent;
  info.tcpi_bytes_received = received;
  return std::string(reinterpret_cast<const char*>(&message), sizeof message) +
         netlink_attribute(INET_DIAG_CONG, "cubic") +
         netlink_attribute(INET_DIAG_INFO,
                           std::string_view(reinterpret_cast<const char*>(&info), info_bytes));
}

TEST(InspectTcpBytes, OfTheKernel) {
  TcpBytesByInode bytes;
  add_tcp_message(socket_message(77, 5000000000, 7), bytes);
  add_tcp_message(socket_message(0, 1, 1), bytes); // no process has that socket
  ASSERT_EQ(bytes.size(), 1U);
  EXPECT_EQ(bytes[77].acknowledged, 5000000000U);
  EXPECT_EQ(bytes[77].received, 7U);
  // A kernel that does not count bytes, and a message that is cut.
  TcpBytesByInode none;
  add_tcp_message(socket_message(78, 1, 1, offsetof(tcp_info, tcpi_bytes_received)), none);
  add_tcp_message(socket_message(79, 1, 1).substr(0, 20), none);
  EXPECT_TRUE(none.empty());
}

TEST(InspectTcpBytes, WhatIsRecordedIsReadAgain) {
  const TcpBytesByInode before = {{77, {1024, 2048}}, {78, {0, 1}}};
  const TemporaryFolder folder;
  folder.write(std::string(tcp_record_path).substr(1),
               tcp_text(before) + "inode -1 acked-bytes 1 received-bytes 1\nx y\n");
  std::vector<Skipped> skipped;
  const TcpBytesByInode after = read_tcp_bytes(Sysroot(folder.path()), skipped);
  ASSERT_EQ(after.size(), 2U);
  EXPECT_EQ(after.at(77).received, 2048U);
  EXPECT_TRUE(skipped.empty());
}

TEST(InspectTcpBytes, BetweenTwoReadings) {
  std::vector<TcpConnection> connections(4);
  for (std::size_t at = 0; at < connections.size(); ++at)
    connections[at].inode = at + 1;
  const TcpBytesByInode before = {{1, {10, 20}}, {3, {100, 100}}};
  const TcpBytesByInode after = {{1, {15, 20}}, {2, {7, 8}}, {3, {5, 200}}};
  fill_tcp_bytes(before, after, true, connections);
  EXPECT_EQ(connections[0].acknowledged_bytes, 15U);
  EXPECT_EQ(connections[0].window_acknowledged_bytes, 5U);
  EXPECT_EQ(connections[0].window_received_bytes, 0U);
  EXPECT_EQ(connections[1].received_bytes, 8U);
  EXPECT_EQ(connections[1].window_received_bytes, std::nullopt) << "it is new";
  EXPECT_EQ(connections[2].window_acknowledged_bytes, std::nullopt) << "another socket by now";
  EXPECT_EQ(connections[3].acknowledged_bytes, std::nullopt);
  std::vector<TcpConnection> once(1);
  once[0].inode = 1;
  fill_tcp_bytes({}, after, false, once);
  EXPECT_EQ(once[0].acknowledged_bytes, 15U);
  EXPECT_EQ(once[0].window_acknowledged_bytes, std::nullopt);
}

} // namespace
} // namespace shmemctl::inspect
