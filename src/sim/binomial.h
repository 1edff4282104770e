// Binomial numbers from a stated generator. Their distribution uses exp and log, whose last bit a C
// library may round otherwise.
#pragma once

#include <cstdint>
#include <random>

namespace shmemctl::sim {

/// The standard says what it draws, to the bit; its distributions it leaves open.
using Random = std::mt19937_64;

/// From 0 to below 1.
inline double uniform(Random& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;
}

/// How many of `n` trials succeed that each do with chance `p`. By inversion where few do; else by
/// Hörmann's BTRS (The generation of binomial random variates, J. Stat. Comput. Simul. 46, 1993),
/// which takes as long for any n.
std::int64_t binomial(Random& random, std::int64_t n, double p);

} // namespace shmemctl::sim
