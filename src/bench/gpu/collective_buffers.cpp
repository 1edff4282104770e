#include "src/bench/gpu/collective_buffers.h"

#include <set>

namespace shmemctl::bench {

std::uint64_t CollectivePlaces::payload_bytes(int pe) const {
  if (kernel == CollectiveKernel::broadcast)
    return pe == 0 ? size_bytes : 0;
  if (kernel != CollectiveKernel::alltoallv)
    return source_data_bytes();
  std::uint64_t sum = 0;
  for (int to = 0; to < n_pes; ++to)
    sum += block_bytes(pe, to);
  return sum;
}

// Every byte of a source is read once, and every byte of a result is written once. GPUs share what
// has come to one of their PEs, and send what they have added up themselves.
LeastTraffic CollectivePlaces::least_traffic(const std::vector<int>& gpu_of_pe) const {
  const auto size = static_cast<double>(size_bytes);
  const auto pes = static_cast<double>(n_pes);
  const auto gpus = static_cast<double>(std::set<int>(gpu_of_pe.begin(), gpu_of_pe.end()).size());
  switch (kernel) {
  case CollectiveKernel::broadcast: // one after the other pass it on while it comes
    return {size, pes * size, gpus > 1 ? size : 0, true};
  case CollectiveKernel::fcollect:
    return {pes * size, pes * pes * size, pes * (gpus - 1) * size};
  case CollectiveKernel::reduce: // to one of the GPUs, and the sums from there
    return {pes * size, pes * size, 2 * (gpus - 1) * size};
  case CollectiveKernel::reducescatter: // a sum of each other GPU's, for each part
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

std::vector<std::uint64_t> CollectivePlaces::lists(int pe) const {
  std::vector<std::uint64_t> lists;
  for (int to = 0; to < n_pes; ++to)
    lists.push_back(block_bytes(pe, to));
  for (int to = 0; to < n_pes; ++to)
    lists.push_back(static_cast<std::uint64_t>(to) * size_bytes);
  for (int to = 0; to < n_pes; ++to)
    lists.push_back(static_cast<std::uint64_t>(pe) * size_bytes);
  return lists;
}

std::vector<CollectivePlaces::Part> CollectivePlaces::parts(int pe) const {
  if (kernel == CollectiveKernel::broadcast)
    return {{0, 0, 0, size_bytes}};
  std::vector<Part> parts;
  for (int writer = 0; writer < n_pes; ++writer)
    parts.push_back({writer, static_cast<std::size_t>(writer) * size_bytes,
                     is_exchange() ? static_cast<std::size_t>(pe) * size_bytes : 0,
                     block_bytes(writer, pe)});
  return parts;
}

} // namespace shmemctl::bench
