// Counting tokens by column (a rank or a node) in token order, by one block.
#pragma once

#include "kernels/device/scope.cuh"
#include "kernels/moe/token_counts.h"
#include "src/base/host_device.h"

namespace shmemctl::moe {

/// Each thread has a run of consecutive tokens, so that token order is thread order.
class TokenCounts {
public:
  static constexpr std::int32_t segment_threads = token_segment_threads;

  /// The shared memory that it needs, in 32-bit words: counts by thread, and sums by segment.
  static SHMEMCTL_HOST_DEVICE constexpr std::int32_t words(std::int32_t columns,
                                                           std::int32_t threads) {
    return token_count_words(columns, threads);
  }

  __device__ TokenCounts(std::int32_t tokens, std::int32_t columns, std::int32_t* shared)
      : columns_(columns), thread_(device::Block::rank()), threads_(device::Block::size()),
        segments_((threads_ + segment_threads - 1) / segment_threads), mine_(shared),
        sums_(shared + columns * threads_) {
    const std::int32_t each = (tokens + threads_ - 1) / threads_;
    begin_ = thread_ * each < tokens ? thread_ * each : tokens;
    end_ = begin_ + each < tokens ? begin_ + each : tokens;
  }

  /// Called by all threads: counts the tokens; each() and total() may be used afterwards.
  /// @param each_column calls its second argument with each column of the token
  template <class EachColumn>
  __device__ void count(const EachColumn& each_column) const {
    for (std::int32_t column = 0; column < columns_; ++column)
      of_thread(thread_, column) = 0;
    for (std::int32_t token = begin_; token < end_; ++token)
      each_column(token, [&](std::int32_t column) { ++of_thread(thread_, column); });
    device::Block::sync();
    scan();
  }
  /// Called by each thread, for its tokens in order: act(token, column, number of earlier tokens of
  /// that column).
  template <class EachColumn, class Act>
  __device__ void each(const EachColumn& each_column, const Act& act) const {
    for (std::int32_t token = begin_; token < end_; ++token)
      each_column(token,
                  [&](std::int32_t column) { act(token, column, of_thread(thread_, column)++); });
  }
  __device__ std::int32_t total(std::int32_t column) const { return of_segment(segments_, column); }
  __device__ std::int32_t begin() const { return begin_; }
  __device__ std::int32_t end() const { return end_; }

private:
  __device__ std::int32_t& of_thread(std::int32_t thread, std::int32_t column) const {
    return mine_[thread * columns_ + column];
  }
  __device__ std::int32_t& of_segment(std::int32_t segment, std::int32_t column) const {
    return sums_[segment * columns_ + column];
  }
  /// Calls act(of_thread(), of_segment()) for each thread of this thread's segments and columns.
  template <class Act>
  __device__ void each_item(const Act& act) const {
    for (std::int32_t item = thread_; item < segments_ * columns_; item += threads_) {
      const std::int32_t segment = item / columns_, column = item % columns_;
      for (std::int32_t i = 0; i < segment_threads; ++i)
        if (const std::int32_t thread = segment * segment_threads + i; thread < threads_)
          act(of_thread(thread, column), of_segment(segment, column));
    }
    device::Block::sync();
  }
  /// Exclusive prefix sums: of_thread() becomes the count of the threads before, and
  /// of_segment(segments_) the total.
  __device__ void scan() const {
    for (std::int32_t item = thread_; item < segments_ * columns_; item += threads_)
      sums_[item] = 0;
    device::Block::sync();
    each_item([](std::int32_t& one, std::int32_t& sum) { sum += one; });
    for (std::int32_t column = thread_; column < columns_; column += threads_) {
      std::int32_t before = 0;
      for (std::int32_t segment = 0; segment <= segments_; ++segment) {
        const std::int32_t here = segment < segments_ ? of_segment(segment, column) : 0;
        of_segment(segment, column) = before;
        before += here;
      }
    }
    device::Block::sync();
    each_item([](std::int32_t& one, std::int32_t& sum) {
      const std::int32_t here = one;
      one = sum;
      sum += here;
    });
  }

  std::int32_t columns_, thread_, threads_, segments_;
  std::int32_t *mine_, *sums_;
  std::int32_t begin_ = 0, end_ = 0;
};

} // namespace shmemctl::moe
