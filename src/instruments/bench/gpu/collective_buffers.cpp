#include "src/instruments/bench/gpu/collective_buffers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "kernels/bench/pattern.h"
#include "src/model/moe/number_formats.h"

namespace shmemctl::bench {

std::uint64_t CollectiveBuffers::payload_bytes(int pe) const {
  if (kernel == CollectiveKernel::broadcast)
    return pe == 0 ? size_bytes : 0;
  if (kernel != CollectiveKernel::alltoallv)
    return source_data_bytes();
  std::uint64_t sum = 0;
  for (int to = 0; to < n_pes; ++to)
    sum += block_bytes(pe, to);
  return sum;
}

// Every byte of a source is read once, and every byte of a result is written once. Data that
// several PEs of a GPU need crosses to that GPU only once, and where values are summed, a GPU sends
// its own partial sum instead of each PE's values.
LeastTraffic CollectiveBuffers::min_traffic(const std::vector<int>& gpu_of_pe) const {
  const auto size = static_cast<double>(size_bytes);
  const auto pes = static_cast<double>(n_pes);
  const auto gpus = static_cast<double>(std::set<int>(gpu_of_pe.begin(), gpu_of_pe.end()).size());
  switch (kernel) {
  case CollectiveKernel::broadcast: // one GPU passes the data on to the next while it arrives
    return {size, pes * size, gpus > 1 ? size : 0, true};
  case CollectiveKernel::fcollect:
    return {pes * size, pes * pes * size, pes * (gpus - 1) * size};
  // Contributions go to one of the GPUs, and the sums come back from it.
  case CollectiveKernel::reduce:
    return {pes * size, pes * size, 2 * (gpus - 1) * size};
  case CollectiveKernel::reducescatter: // each part gets a partial sum from every other GPU
    return {pes * pes * size, pes * size, pes * (gpus - 1) * size};
  case CollectiveKernel::alltoall:
  case CollectiveKernel::alltoallv:
    break;
  }
  LeastTraffic exchange;
  for (int from = 0; from < n_pes; ++from)
    for (int to = 0; to < n_pes; ++to) {
      const auto block = static_cast<double>(block_bytes(from, to));
      exchange.stored += block;
      if (gpu_of_pe.at(static_cast<std::size_t>(from)) !=
          gpu_of_pe.at(static_cast<std::size_t>(to)))
        exchange.between_gpus += block;
    }
  exchange.loaded = exchange.stored;
  return exchange;
}

std::vector<std::uint64_t> CollectiveBuffers::lists(int pe) const {
  std::vector<std::uint64_t> lists;
  for (int to = 0; to < n_pes; ++to)
    lists.push_back(block_bytes(pe, to));
  for (int to = 0; to < n_pes; ++to)
    lists.push_back(static_cast<std::uint64_t>(to) * size_bytes);
  for (int to = 0; to < n_pes; ++to)
    lists.push_back(static_cast<std::uint64_t>(pe) * size_bytes);
  return lists;
}

std::vector<CollectiveBuffers::Part> CollectiveBuffers::parts(int pe) const {
  if (kernel == CollectiveKernel::broadcast)
    return {{0, 0, 0, size_bytes}};
  std::vector<Part> parts;
  for (int writer = 0; writer < n_pes; ++writer)
    parts.push_back({writer, static_cast<std::size_t>(writer) * size_bytes,
                     is_exchange() ? static_cast<std::size_t>(pe) * size_bytes : 0,
                     block_bytes(writer, pe)});
  return parts;
}

namespace {

constexpr std::int64_t float_range = 512;
constexpr std::int64_t bf16_range = 256;  ///< a BF16 number has 8 exact bits
constexpr std::int64_t fp16_range = 2048; ///< an FP16 number has 11 exact bits

/// A whole number from -range to range - 1.
float whole_number(std::int64_t range, std::uint64_t word) {
  return static_cast<float>(static_cast<std::int64_t>(word & (2 * range - 1)) - range);
}

/// The value of a word, for floating-point types.
float value_of(CollectiveNumber number, std::uint64_t word) {
  return whole_number(number == CollectiveNumber::bf16   ? bf16_range
                      : number == CollectiveNumber::fp16 ? fp16_range
                                                         : float_range,
                      word);
}

std::uint64_t bits_of(CollectiveNumber number, float value) {
  if (number == CollectiveNumber::bf16)
    return moe::bf16_of_float(value);
  if (number == CollectiveNumber::fp16)
    return fp16_of_float(value);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

} // namespace

std::size_t width_of(CollectiveNumber number) {
  switch (number) {
  case CollectiveNumber::int64:
    return sizeof(std::int64_t);
  case CollectiveNumber::float32:
    return sizeof(float);
  case CollectiveNumber::bf16:
  case CollectiveNumber::fp16:
    return sizeof(std::uint16_t);
  }
  return 1;
}

std::uint64_t source_bits(CollectiveNumber number, std::uint64_t seed, int pe,
                          std::uint64_t index) {
  const std::uint64_t word = pattern_word(seed, pe, index);
  return number == CollectiveNumber::int64 ? word : bits_of(number, value_of(number, word));
}

std::uint64_t sum_bits(CollectiveNumber number, std::uint64_t seed, int n_pes,
                       std::uint64_t index) {
  if (number == CollectiveNumber::int64) {
    std::uint64_t sum = 0;
    for (int pe = 0; pe < n_pes; ++pe)
      sum += pattern_word(seed, pe, index);
    return sum;
  }
  float sum = 0;
  for (int pe = 0; pe < n_pes; ++pe)
    sum += value_of(number, pattern_word(seed, pe, index));
  return bits_of(number, sum);
}

std::uint16_t fp16_of_float(float value) {
  constexpr int fraction_bits = 10, min_exponent = -14;
  constexpr std::uint32_t infinite = 0x7c00, no_number = 0x7fff, negative = 0x8000;
  if (std::isnan(value))
    return no_number;
  const std::uint32_t sign = std::signbit(value) ? negative : 0;
  const float size = std::abs(value);
  if (size == 0)
    return static_cast<std::uint16_t>(sign);
  if (size >= 65536)
    return static_cast<std::uint16_t>(sign | infinite);
  const int exponent = std::max(std::ilogb(size), min_exponent);
  // In units of the last place; 2048 of them carry into the exponent.
  const auto units =
      static_cast<std::uint32_t>(std::nearbyint(std::scalbn(size, fraction_bits - exponent)));
  const std::uint32_t bits =
      (static_cast<std::uint32_t>(exponent - min_exponent) << fraction_bits) + units;
  return static_cast<std::uint16_t>(sign | std::min(bits, infinite));
}

} // namespace shmemctl::bench
