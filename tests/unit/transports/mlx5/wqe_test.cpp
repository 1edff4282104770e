// WQEs and doorbells, byte for byte. The expected bytes are from the device's definition, not from
// the code under test.
#include <gtest/gtest.h>
#include <numeric>

#include "tests/unit/transports/mlx5/emulated_hca_world.h"

#if __has_include(<infiniband/mlx5dv.h>)
#include <infiniband/mlx5dv.h>
#endif

namespace shmemctl::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr WqeHead head{0xffff'0000'1a2b, 0xabcdef, flag_completion};
constexpr RaddrSegment remote{0x0102030405060708, 0x11121314};
constexpr DataSegment local{0x2122232425262728, 0x31323334, 0x00004142};

template <class Build>
Bytes bytes_of_built(const Build& build) {
  EntryWords entry;
  build(entry);
  Bytes bytes;
  return bytes_of(bytes, entry);
}

Bytes operator+(Bytes one, const Bytes& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

/// "00ff 12" is three bytes.
Bytes hex(const std::string& text) {
  Bytes bytes;
  std::string digits;
  for (const char c : text)
    if (c != ' ')
      digits += c;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  return bytes;
}

/// The control segment for index 0x1a2b of queue 0xabcdef, with a completion.
Bytes control(std::uint8_t modifier, std::uint8_t opcode, std::uint8_t ds_count) {
  return {modifier, 0x1a, 0x2b, opcode, 0xab, 0xcd, 0xef, ds_count, 0, 0, 0, 0x08, 0, 0, 0, 0};
}
const Bytes remote_bytes{1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0, 0, 0, 0};
const Bytes local_bytes{0,    0,    0x41, 0x42, 0x31, 0x32, 0x33, 0x34,
                        0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28};

TEST(Mlx5Wqes, Nop) {
  EXPECT_EQ(bytes_of_built([](auto& out) { build_nop(out, head); }), control(0, 0x00, 1));
}

TEST(Mlx5Wqes, Flags) {
  const std::pair<std::uint8_t, std::uint8_t> flags[] = {
      {0, 0}, {flag_completion | flag_fence, 0x88}, {flag_small_fence, 0x20}, {flag_solicited, 2}};
  for (const auto& [given, byte] : flags) {
    const Bytes bytes = bytes_of_built([&, value = given](auto& out) {
      build_nop(out, {1, 2, value});
    });
    EXPECT_EQ(bytes[11], byte);
  }
}

TEST(Mlx5Wqes, WriteAndRead) {
  EXPECT_EQ(bytes_of_built([](auto& out) { build_write(out, head, remote, local); }),
            control(0, 0x08, 3) + remote_bytes + local_bytes);
  EXPECT_EQ(bytes_of_built([](auto& out) { build_read(out, head, remote, local); }),
            control(0, 0x10, 3) + remote_bytes + local_bytes);
}

TEST(Mlx5Wqes, InlineWriteOfEverySize) {
  Bytes data(220);
  std::iota(data.begin(), data.end(), std::uint8_t{1});
  for (std::uint32_t size = 1; size <= data.size(); ++size) {
    const std::uint32_t ds_count = 2 + (4 + size + 15) / 16;
    Bytes expected = control(0, 0x08, static_cast<std::uint8_t>(ds_count)) + remote_bytes +
                     Bytes{0x80, 0, 0, static_cast<std::uint8_t>(size)};
    expected.insert(expected.end(), data.begin(), data.begin() + size);
    expected.resize(ds_count * 16);
    EXPECT_EQ(bytes_of_built(
                  [&](auto& out) { build_inline_write(out, head, remote, data.data(), size); }),
              expected)
        << size;
    EXPECT_EQ(inline_ds_count(size), ds_count);
  }
  EXPECT_EQ(wqebbs_for(inline_ds_count(28)), 1u);
  EXPECT_EQ(wqebbs_for(inline_ds_count(29)), 2u);
}

TEST(Mlx5Wqes, ValueWriteIsAnInlineWriteOfItsBytes) {
  const std::uint64_t value = 0x8877665544332211;
  for (const std::uint32_t size : {1u, 2u, 4u, 8u}) {
    unsigned char bytes[8];
    const std::uint64_t shortened = size == 8 ? value : value & ((1ull << 8 * size) - 1);
    if (size == 8)
      std::memcpy(bytes, &value, 8);
    else if (size == 4)
      std::memcpy(bytes, std::data({static_cast<std::uint32_t>(value)}), 4);
    else if (size == 2)
      std::memcpy(bytes, std::data({static_cast<std::uint16_t>(value)}), 2);
    else
      bytes[0] = static_cast<std::uint8_t>(value);
    EXPECT_EQ(
        bytes_of_built([&](auto& out) { build_value_write(out, head, remote, shortened, size); }),
        bytes_of_built([&](auto& out) { build_inline_write(out, head, remote, bytes, size); }))
        << size;
  }
}

TEST(Mlx5Wqes, AtomicsOfEightBytes) {
  const Bytes tail = remote_bytes;
  EXPECT_EQ(bytes_of_built([](auto& out) {
              build_atomic(out, head, remote, atomic_add(8, 0x5152535455565758), local);
            }),
            control(0, 0x12, 4) + tail + hex("5152535455565758 0000000000000000") + local_bytes);
  EXPECT_EQ(bytes_of_built([](auto& out) {
              build_atomic(out, head, remote, atomic_compare_swap(8, 0x6162636465666768, 0x5152),
                           local);
            }),
            control(0, 0x11, 4) + tail + hex("0000000000005152 6162636465666768") + local_bytes);
}

TEST(Mlx5Wqes, MaskedAtomicsOfEightBytes) {
  EXPECT_EQ(bytes_of_built([](auto& out) {
              build_atomic(out, head, remote, atomic_xor(8, 0x5152535455565758), local);
            }),
            control(0x09, 0x15, 4) + remote_bytes + hex("5152535455565758 ffffffffffffffff") +
                local_bytes);
  const AtomicFields fields{Opcode::atomic_masked_cs, 8,      0x5152535455565758,
                            0x6162636465666768,       0x7172, 0x8182};
  EXPECT_EQ(bytes_of_built([&](auto& out) { build_atomic(out, head, remote, fields, local); }),
            control(0x09, 0x14, 5) + remote_bytes +
                hex("5152535455565758 6162636465666768 0000000000007172 0000000000008182") +
                local_bytes);
}

TEST(Mlx5Wqes, MaskedAtomicsOfFourBytes) {
  EXPECT_EQ(bytes_of_built([](auto& out) {
              build_atomic(out, head, remote, atomic_add(4, 0x51525354), local);
            }),
            control(0x08, 0x15, 4) + remote_bytes + hex("5152535400000000 0000000000000000") +
                local_bytes);
  const AtomicFields fields{
      Opcode::atomic_masked_cs, 4, 0x51525354, 0x61626364, 0x71727374, 0x81828384};
  EXPECT_EQ(bytes_of_built([&](auto& out) { build_atomic(out, head, remote, fields, local); }),
            control(0x08, 0x14, 4) + remote_bytes + hex("5152535461626364 7172737481828384") +
                local_bytes);
}

TEST(Mlx5Wqes, OpenShmemsAtomics) {
  const auto expect = [](const AtomicFields& fields, Opcode opcode, std::uint64_t operand_mask,
                         std::uint64_t compare_mask) {
    EXPECT_EQ(fields.opcode, opcode);
    if (opcode == Opcode::atomic_masked_cs || opcode == Opcode::atomic_masked_fa) {
      EXPECT_EQ(fields.operand_mask, operand_mask);
      EXPECT_EQ(fields.compare_mask, compare_mask);
    }
  };
  expect(atomic_fetch(8), Opcode::atomic_fa, 0, 0);
  expect(atomic_fetch(4), Opcode::atomic_masked_fa, 0, 0);
  expect(atomic_swap(4, 1), Opcode::atomic_masked_cs, 0xffffffff, 0);
  expect(atomic_swap(8, 1), Opcode::atomic_masked_cs, ~0ull, 0);
  expect(atomic_or(4, 0x1'0000'00f0), Opcode::atomic_masked_cs, 0xf0, 0);
  expect(atomic_and(4, 0xf0), Opcode::atomic_masked_cs, 0xffffff0f, 0);
  expect(atomic_and(8, 0xf0), Opcode::atomic_masked_cs, ~0xf0ull, 0);
  expect(atomic_compare_swap(4, 1, 2), Opcode::atomic_masked_cs, 0xffffffff, 0xffffffff);
  expect(atomic_compare_swap(8, 1, 2), Opcode::atomic_cs, 0, 0);
}

TEST(Mlx5Wqes, Doorbells) {
  const std::uint32_t record = send_dbrec_value(0x1'2345);
  EXPECT_EQ(std::memcmp(&record, "\0\0\x23\x45", 4), 0);
  const std::uint64_t doorbell = doorbell_value(0x1'2345, 0xabcdef);
  EXPECT_EQ(std::memcmp(&doorbell, "\0\x23\x45\0\xab\xcd\xef\0", 8), 0);
  const std::uint32_t taken = cq_dbrec_value(0x12'345678);
  EXPECT_EQ(std::memcmp(&taken, "\0\x34\x56\x78", 4), 0);
}

#if __has_include(<infiniband/mlx5dv.h>)
/// The same by the functions of the public header.
TEST(Mlx5Wqes, TheBytesOfThePublicHeadersFunctions) {
  struct {
    mlx5_wqe_ctrl_seg control;
    mlx5_wqe_raddr_seg remote;
    mlx5_wqe_atomic_seg atomic;
    mlx5_wqe_data_seg data;
  } entry{};
  const auto fill = [&](std::uint8_t opcode, std::uint8_t ds_count) {
    std::memset(&entry, 0, sizeof entry);
    mlx5dv_set_ctrl_seg(&entry.control, 0x1a2b, opcode, 0, 0xabcdef, MLX5_WQE_CTRL_CQ_UPDATE,
                        ds_count, 0, 0);
    entry.remote.raddr = htobe64(remote.address);
    entry.remote.rkey = htobe32(remote.rkey);
  };
  const auto bytes = [&](const void* from, std::size_t count) {
    const auto* start = static_cast<const std::uint8_t*>(from);
    return Bytes(start, start + count);
  };
  fill(MLX5_OPCODE_RDMA_WRITE, 3);
  auto* data = reinterpret_cast<mlx5_wqe_data_seg*>(&entry.atomic);
  mlx5dv_set_data_seg(data, local.size_bytes, local.lkey, local.address);
  EXPECT_EQ(bytes(&entry, 48),
            bytes_of_built([](auto& out) { build_write(out, head, remote, local); }));

  fill(MLX5_OPCODE_ATOMIC_CS, 4);
  entry.atomic.swap_add = htobe64(77);
  entry.atomic.compare = htobe64(88);
  mlx5dv_set_data_seg(&entry.data, local.size_bytes, local.lkey, local.address);
  EXPECT_EQ(bytes(&entry, 64), bytes_of_built([](auto& out) {
              build_atomic(out, head, remote, atomic_compare_swap(8, 88, 77), local);
            }));
  EXPECT_EQ(int{flag_completion}, MLX5_WQE_CTRL_CQ_UPDATE);
  EXPECT_EQ(int{flag_fence}, MLX5_WQE_CTRL_FENCE);
  EXPECT_EQ(int{flag_small_fence}, MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE);
  EXPECT_EQ(inline_bit, unsigned{MLX5_INLINE_SEG});
  EXPECT_EQ(wqebb_bytes, std::size_t{MLX5_SEND_WQE_BB});
  const std::pair<Opcode, int> opcodes[] = {
      {Opcode::nop, MLX5_OPCODE_NOP},
      {Opcode::rdma_write, MLX5_OPCODE_RDMA_WRITE},
      {Opcode::rdma_read, MLX5_OPCODE_RDMA_READ},
      {Opcode::atomic_cs, MLX5_OPCODE_ATOMIC_CS},
      {Opcode::atomic_fa, MLX5_OPCODE_ATOMIC_FA},
      {Opcode::atomic_masked_cs, MLX5_OPCODE_ATOMIC_MASKED_CS},
      {Opcode::atomic_masked_fa, MLX5_OPCODE_ATOMIC_MASKED_FA}};
  for (const auto& [ours, theirs] : opcodes)
    EXPECT_EQ(static_cast<int>(ours), theirs);
}
#endif

} // namespace
} // namespace shmemctl::test
