#include "src/bench/gpu/collective_places.h"

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

std::optional<WrittenBytes> CollectivePlaces::written_bytes() const {
  if (kernel != CollectiveKernel::alltoall && kernel != CollectiveKernel::fcollect)
    return std::nullopt;
  return WrittenBytes{size_bytes, all() - size_bytes};
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
