// CQEs, byte for byte, and their meaning.
#include <gtest/gtest.h>
#include <set>

#include "src/base/error.h"
#include "tests/unit/transports/mlx5/emulated_hca_world.h"
#include "transports/mlx5/syndrome_text.h"

#if __has_include(<infiniband/mlx5dv.h>)
#include <infiniband/mlx5dv.h>
#endif

namespace shmemctl::test {
namespace {

TEST(Mlx5Completions, TailBytes) {
  const std::uint8_t bytes[8] = {0x08, 0xab, 0xcd, 0xef, 0x12, 0x34, 0x00, 0xd1};
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, 8);
  const CqeTail tail = decode_tail(word);
  EXPECT_EQ(tail.opcode, 0x08);
  EXPECT_EQ(tail.qpn, 0xabcdefu);
  EXPECT_EQ(tail.index, 0x1234);
  EXPECT_EQ(tail.kind, 0xd);
  EXPECT_EQ(tail.owner, 1);
  EXPECT_EQ(encode_tail(tail), word);
  EXPECT_TRUE(is_error(tail));
  EXPECT_EQ(std::memcmp(&unwritten_tail, "\0\0\0\0\0\0\0\xf1", 8), 0);
}

TEST(Mlx5Completions, BytesOfOnesAreFresh) {
  EXPECT_TRUE(is_unwritten(decode_tail(~0ull)));
  EXPECT_TRUE(is_unwritten(decode_tail(unwritten_tail)));
  EXPECT_FALSE(is_unwritten(decode_tail(0)));
}

TEST(Mlx5Completions, OwnerChangesWithEveryLap) {
  for (std::uint64_t taken = 0; taken < 64; ++taken)
    for (const std::uint8_t owner : {0, 1}) {
      const CqeTail tail{0, 0, 0, 0, owner};
      EXPECT_EQ(is_new_cqe(tail, taken, 3), owner == (taken / 8) % 2) << taken;
      EXPECT_FALSE(is_new_cqe({0, 0, 0, 15, owner}, taken, 3));
    }
}

TEST(Mlx5Completions, FailureWords) {
  const Failure failure{0x13, 0x88, 0x10, 13, 0xfedc};
  const Failure again = Failure::from_word(failure.to_word());
  EXPECT_EQ(again.syndrome, failure.syndrome);
  EXPECT_EQ(again.vendor_syndrome, failure.vendor_syndrome);
  EXPECT_EQ(again.opcode, failure.opcode);
  EXPECT_EQ(again.kind, failure.kind);
  EXPECT_EQ(again.index, failure.index);
  EXPECT_NE((Failure{}.to_word()), 0u);
}

TEST(Mlx5Completions, EverySyndromeHasATextAndAFix) {
  std::set<std::string> known;
  for (unsigned number = 0; number < 256; ++number) {
    const SyndromeText text = syndrome_text(static_cast<std::uint8_t>(number));
    EXPECT_FALSE(text.status.empty());
    EXPECT_FALSE(text.fix.empty());
    if (text.status.find("unknown") == std::string::npos)
      EXPECT_TRUE(known.insert(text.status).second) << text.status;
    else
      EXPECT_NE(text.status.find("0x"), std::string::npos);
  }
  EXPECT_EQ(known.size(), 14u);
}

TEST(Mlx5Completions, EveryCauseOfTheEmulatedHcaHasWords) {
  std::set<std::string> texts;
  for (unsigned cause = 1; cause <= static_cast<unsigned>(EmulatedFault::flushed); ++cause)
    EXPECT_TRUE(texts.insert(text_of(static_cast<EmulatedFault>(cause))).second) << cause;
  EXPECT_EQ(texts.count(""), 0u);
}

TEST(Mlx5PeerInfo, ThereAndBack) {
  PeerInfo info;
  info.qpn = 0xabcdef;
  info.first_psn = 0x123456;
  info.lid = 0x1234;
  info.mtu = 4;
  info.ethernet = 1;
  info.capabilities = PeerInfo::orders_writes | PeerInfo::atomics_4;
  info.device_id = 0x1122334455667788;
  info.gids = {{verbs::GidKind::v1_link_local,
                {0xfe, 0x80, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
               {verbs::GidKind::infiniband, {}}};
  EXPECT_EQ(from_bytes<PeerInfo>(to_bytes(info)), info);
}

TEST(Mlx5PeerInfo, OtherBytesAreRefused) {
  PeerInfo info;
  info.mtu = 5;
  const std::string good = to_bytes(info);
  EXPECT_TRUE(from_bytes<PeerInfo>(good));
  EXPECT_FALSE(from_bytes<PeerInfo>(""));
  EXPECT_FALSE(from_bytes<PeerInfo>(good + "x"));
  // The upper bytes of qpn and first_psn, then mtu, ethernet and capabilities.
  for (const std::size_t at : {3u, 7u, 10u, 11u, 12u}) {
    std::string bad = good;
    bad[at] = '\x55';
    EXPECT_FALSE(from_bytes<PeerInfo>(bad)) << at;
  }
  info.gids.resize(verbs::gid_kinds);
  EXPECT_TRUE(from_bytes<PeerInfo>(to_bytes(info)));
  info.gids.resize(verbs::gid_kinds + 1);
  EXPECT_FALSE(from_bytes<PeerInfo>(to_bytes(info)));
}

#if __has_include(<infiniband/mlx5dv.h>)
TEST(Mlx5Completions, ThePublicHeadersLayout) {
  mlx5_cqe64 entry{};
  entry.sop_drop_qpn = htobe32(0x10abcdef);
  entry.wqe_counter = htobe16(0x1234);
  entry.byte_cnt = htobe32(0x01020304);
  entry.op_own = MLX5_CQE_REQ_ERR << 4 | 1;
  auto* error = reinterpret_cast<mlx5_err_cqe*>(&entry);
  error->syndrome = MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR;
  error->vendor_err_synd = 0x88;
  std::uint64_t words[8];
  std::memcpy(words, &entry, 64);
  const CqeTail tail = decode_tail(words[cqe_last_word]);
  EXPECT_EQ(tail.opcode, 0x10);
  EXPECT_EQ(tail.qpn, 0xabcdefu);
  EXPECT_EQ(tail.index, 0x1234);
  EXPECT_EQ(tail.owner, 1);
  EXPECT_TRUE(is_error(tail));
  const Failure failure = decode_failure(tail, words[cqe_syndrome_word]);
  EXPECT_EQ(failure.syndrome, 0x13);
  EXPECT_EQ(failure.vendor_syndrome, 0x88);
  EXPECT_EQ(static_cast<std::uint32_t>(to_wire(words[cqe_size_word])), 0x01020304u);
  static_assert(
      static_cast<int>(Syndrome::flushed) == MLX5_CQE_SYNDROME_WR_FLUSH_ERR &&
      static_cast<int>(Syndrome::retries_exceeded) == MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR &&
      static_cast<int>(Syndrome::receiver_not_ready) == MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR &&
      static_cast<int>(Syndrome::remote_aborted) == MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR);
}
#endif

} // namespace
} // namespace shmemctl::test
