// What the worlds of dispatch and combine on threads of the host have in common: ranks with their
// tokens, where things lie in their memory, and what rows must be.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/moe/token_metadata.cuh"
#include "kernels/moe/token_metadata.h"
#include "src/model/moe/oracle.h"
#include "tests/support/host_kernels.h"

namespace shmemctl::test {

/// Parts of a rank's memory, one behind the other.
struct HostParts {
  std::size_t size_bytes = 0;

protected:
  static std::size_t size(std::int64_t number) { return static_cast<std::size_t>(number); }
  std::size_t add(std::size_t part_bytes) {
    const std::size_t offset = size_bytes;
    size_bytes += (part_bytes + 63) / 64 * 64;
    return offset;
  }
};

class MoeHostWorld {
public:
  HostKernels& kernels() { return kernels_; }

protected:
  /// @param size_bytes of each rank's memory
  MoeHostWorld(const moe::Shape& shape, moe::Scales scales, std::uint32_t seed,
               moe::Routing routing, std::size_t size_bytes, double wait_s)
      : kernels_(shape.n_ranks, size_bytes, wait_s), sent_(shape), scales_(scales),
        layout_(shape, scales), seed_(seed), routing_(std::move(routing)) {}
  ~MoeHostWorld() = default;

  DeviceJob& job(std::int32_t rank) { return kernels_.job(rank); }
  template <class T>
  static T* at(const DeviceJob& job, std::size_t offset) {
    return reinterpret_cast<T*>(job.heap + offset);
  }
  std::int64_t value_bytes() const { return sent_.value_bytes(moe::format_of(scales_)); }
  std::int32_t tokens(std::int32_t rank) const {
    return routing_[static_cast<std::size_t>(rank)].tokens();
  }
  const std::int32_t* choices(const moe::RowSource& row) const {
    return routing_[static_cast<std::size_t>(row.rank)].choices(row.token);
  }
  std::uint32_t key(const moe::RowSource& row) const {
    return moe::row_key(seed_, row.rank, row.token);
  }
  std::vector<std::uint16_t> read(const moe::RowSource& row) const {
    return moe::expected_read(sent_, key(row), moe::format_of(scales_), moe::are_powers(scales_));
  }
  bool same_values(const std::byte* values, const std::uint32_t* record,
                   const moe::RowSource& row) const {
    if (scales_ == moe::Scales::none)
      return std::memcmp(values, moe::expected_values(sent_, key(row)).data(),
                         static_cast<std::size_t>(value_bytes())) == 0;
    const moe::Fp8Row expected = moe::expected_fp8(sent_, key(row), moe::are_powers(scales_));
    for (std::int32_t word = 0; word < layout_.scale_words; ++word)
      if (record[word] != moe::scale_word(sent_, scales_, expected.scales.data(), word))
        return false;
    return std::memcmp(values, expected.values.data(), expected.values.size()) == 0;
  }
  /// Where a rank has its tokens.
  struct Tokens {
    std::size_t experts, weights, values, scales;
  };
  void fill_tokens(std::int32_t rank, const Tokens& lies) {
    const DeviceJob& to = job(rank);
    const moe::RankRouting& mine = routing_[static_cast<std::size_t>(rank)];
    std::copy(mine.experts.begin(), mine.experts.end(), at<std::int32_t>(to, lies.experts));
    for (std::int32_t token = 0; token < mine.tokens(); ++token) {
      const moe::RowSource row{rank, token};
      const auto i = static_cast<std::size_t>(token);
      const auto weights = moe::expected_weights(key(row), sent_.top_k);
      std::copy(weights.begin(), weights.end(), at<float>(to, lies.weights) + i * weights.size());
      if (scales_ == moe::Scales::none) {
        const auto values = moe::expected_values(sent_, key(row));
        std::copy(values.begin(), values.end(),
                  at<std::uint16_t>(to, lies.values) + i * values.size());
        continue;
      }
      const moe::Fp8Row cast = moe::expected_fp8(sent_, key(row), moe::are_powers(scales_));
      std::copy(cast.values.begin(), cast.values.end(),
                at<std::uint8_t>(to, lies.values) + i * cast.values.size());
      std::copy(cast.scales.begin(), cast.scales.end(),
                at<float>(to, lies.scales) + i * cast.scales.size());
    }
  }

  HostKernels kernels_;
  const moe::Shape sent_;
  const moe::Scales scales_;
  const moe::MetadataLayout layout_;
  const std::uint32_t seed_;
  const moe::Routing routing_;
};

} // namespace shmemctl::test
