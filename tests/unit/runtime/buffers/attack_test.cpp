// Any process of the machine may connect to the socket of a PE, and send anything.
#include <gtest/gtest.h>
#include <random>

#include "src/base/socket.h"
#include "src/runtime/buffers/message.h"
#include "src/runtime/buffers/service.h"
#include "tests/support/expect_error.h"
#include "tests/unit/runtime/buffers/buffer_memory.h"

namespace shmemctl::buffers {
namespace {

class BufferServiceTest : public testing::Test {
protected:
  BufferServiceTest() {
    std::random_device random;
    for (std::uint8_t& byte : secret)
      byte = static_cast<std::uint8_t>(random());
    service = std::make_unique<BufferService>(secret, 0, std::vector<int>{0, 1}, pool, table);
  }
  FileDescriptor connect() const {
    FileDescriptor socket = packet_socket();
    const SocketAddress address = SocketAddress::abstract_unix(socket_name(secret, 0));
    EXPECT_EQ(::connect(socket.get(), address.raw(), address.length()), 0);
    return socket;
  }
  /// Sends and lets the service run until it has replied or closed the connection.
  Packet ask(const FileDescriptor& socket, const std::string& bytes,
             const std::vector<int>& descriptors = {}) {
    int error = 0;
    EXPECT_TRUE(send_packet(socket.get(), bytes, descriptors, error)) << error;
    for (;;) {
      service->poll(0);
      Packet packet = receive_packet(socket.get());
      if (packet.state != Packet::State::none)
        return packet;
    }
  }
  Response ask(const FileDescriptor& socket, const Request& request) {
    const Packet packet = ask(socket, encode(request, secret));
    EXPECT_EQ(packet.state, Packet::State::here);
    return decode_response(packet.bytes.data(), packet.bytes.size(), secret).value_or(Response{});
  }

  JobSecret secret{};
  std::unique_ptr<HeapBacking> backing = make_host_backing({});
  BufferPool pool{*backing, 8};
  RegistrationTable table{{8, 2, 8192}, "memfd"};
  std::unique_ptr<BufferService> service;
};

TEST_F(BufferServiceTest, GarbageEndsItsConnectionOnly) {
  const FileDescriptor good = connect();
  EXPECT_EQ(ask(good, Request{.from_pe = 1}).shape, table.shape());
  for (const std::string& bytes :
       {std::string("x"), std::string(4096, '\xff'), encode(Request{}, JobSecret{1}),
        encode(Request{.kind = RequestKind::open, .from_pe = 1}, secret), // before its hello
        encode(Request{.from_pe = 2}, secret),                            // no such PE
        encode(Request{.from_pe = 1}, secret),                            // is connected already
        encode(Request{.from_pe = 0, .to_pe = 1}, secret)}) {
    const FileDescriptor stranger = connect();
    EXPECT_EQ(ask(stranger, bytes, {0, 1, 2}).state, Packet::State::ended);
  }
  EXPECT_TRUE(service->connected(1));
  EXPECT_EQ(ask(good, {.kind = RequestKind::open, .from_pe = 1, .sequence = 5}).outcome,
            Outcome::refused);
}

TEST_F(BufferServiceTest, DropsSilentConnections) {
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < 18; ++i) {
    silent.push_back(connect());
    service->poll(0);
  }
  const FileDescriptor good = connect();
  EXPECT_EQ(ask(good, Request{.from_pe = 1}).shape, table.shape());
}

TEST_F(BufferServiceTest, ADisconnectedPeIsNoUserAndMayReconnect) {
  {
    const FileDescriptor socket = connect();
    ask(socket, Request{.from_pe = 1});
    EXPECT_TRUE(service->connected(1));
  }
  while (service->connected(1))
    service->poll(0);
  const FileDescriptor again = connect();
  EXPECT_EQ(ask(again, Request{.from_pe = 1}).shape, table.shape());
}

TEST_F(BufferServiceTest, CopiesStayInTheBuffer) {
  const test::Pages pages(3);
  test::fill(pages.base(), pages.size_bytes(), 1);
  const BufferHandle handle = pool.add(pages.base() + page_bytes(), page_bytes());
  const FileDescriptor socket = connect();
  ask(socket, Request{.from_pe = 1});
  EXPECT_EQ(ask(socket, {.kind = RequestKind::stage, .from_pe = 1}).outcome, Outcome::done);
  for (const auto& [offset, size] :
       std::vector<std::pair<std::uint64_t, std::uint64_t>>{{0, page_bytes() + 1},
                                                            {page_bytes(), 1},
                                                            {UINT64_MAX, 2},
                                                            {UINT64_MAX - 4095, 4096},
                                                            {0, UINT64_MAX}})
    for (const RequestKind kind : {RequestKind::put, RequestKind::get})
      EXPECT_NE(ask(socket, {kind, 1, 0, 9, handle, offset, size}).outcome, Outcome::done);
  EXPECT_EQ(test::first_wrong(pages.base(), pages.size_bytes(), 1), pages.size_bytes());
  std::memset(table.stage(1), 0x77, 16);
  EXPECT_EQ(ask(socket, {RequestKind::put, 1, 0, 9, handle, 8, 16}).outcome, Outcome::done);
  EXPECT_EQ(pages.base()[page_bytes() + 8], std::byte{0x77});
  EXPECT_EQ(pages.base()[page_bytes() + 24], test::pattern(page_bytes() + 24, 1));
}

TEST_F(BufferServiceTest, AnImplausibleTableIsRefused) {
  const auto copy = [&] { return FileDescriptor(::dup(table.descriptor())); };
  for (const TableShape& shape :
       {TableShape{0, 2, 8192}, TableShape{8, 0, 8192}, TableShape{8, 2, 0}, TableShape{8, 2, 100},
        TableShape{UINT32_MAX, UINT32_MAX, UINT64_MAX}, TableShape{8, 2, 4096},
        TableShape{8, 3, 8192}})
    test::expect_error(ExitCode::unavailable, {"table"}, [&] { RegistrationTable(copy(), shape); });
}

} // namespace
} // namespace shmemctl::buffers
