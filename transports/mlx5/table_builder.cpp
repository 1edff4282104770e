#include "transports/mlx5/table_builder.h"

#include <algorithm>

namespace shmemctl::mlx5 {

TableBuilder::TableBuilder(std::uint32_t n_pes, std::uint32_t n_qp_sets)
    : n_pes_(n_pes), n_qp_sets_(n_qp_sets), queues_(n_pes),
      remote_(std::size_t{n_pes} * n_regions) {}

void TableBuilder::set_queues(std::uint32_t pe, std::vector<TableQp> queues) {
  queues_[pe] = std::move(queues);
}

void TableBuilder::add_remote(std::uint32_t pe, std::uint32_t region,
                              const RemoteSegment& segment) {
  if (pe < n_pes_ && region < n_regions)
    remote_[pe * n_regions + region].push_back(segment);
}

TableImage TableBuilder::build() const {
  std::vector<std::uint32_t> paths(n_pes_);
  for (std::size_t pe = 0; pe < n_pes_; ++pe)
    paths[pe] = static_cast<std::uint32_t>(queues_[pe].size()) / n_qp_sets_;
  const std::uint32_t n_paths = n_pes_ == 0 ? 0 : *std::max_element(paths.begin(), paths.end());
  std::vector<TableQp> queues(std::size_t{n_pes_} * n_paths * n_qp_sets_);
  for (std::size_t pe = 0; pe < n_pes_; ++pe)
    std::copy(queues_[pe].begin(), queues_[pe].end(),
              queues.begin() + static_cast<std::ptrdiff_t>(pe * n_paths * n_qp_sets_));
  std::vector<QpTable::Range> ranges;
  std::vector<RemoteSegment> remote;
  for (const std::vector<RemoteSegment>& each : remote_) {
    ranges.push_back(
        {static_cast<std::uint32_t>(remote.size()), static_cast<std::uint32_t>(each.size())});
    remote.insert(remote.end(), each.begin(), each.end());
  }

  QpTable head{};
  head.n_pes = n_pes_;
  head.n_paths = n_paths;
  head.n_qp_sets = n_qp_sets_;
  head.n_regions = n_regions;
  head.n_local = static_cast<std::uint32_t>(local_.size());
  head.size_bytes = sizeof head;
  const auto place = [&](const auto& items) {
    const std::uint64_t at = head.size_bytes;
    const std::size_t bytes = items.size() * sizeof items[0];
    head.size_bytes += (bytes + 7) / 8 * 8;
    return at;
  };
  head.queues_at = place(queues);
  head.paths_at = place(paths);
  head.ranges_at = place(ranges);
  head.remote_at = place(remote);
  head.local_at = place(local_);

  TableImage image(head.size_bytes);
  auto* bytes = reinterpret_cast<char*>(image.words_.data());
  std::memcpy(bytes, &head, sizeof head);
  const auto store = [&](std::uint64_t at, const auto& items) {
    if (!items.empty())
      std::memcpy(bytes + at, items.data(), items.size() * sizeof items[0]);
  };
  store(head.queues_at, queues);
  store(head.paths_at, paths);
  store(head.ranges_at, ranges);
  store(head.remote_at, remote);
  store(head.local_at, local_);
  return image;
}

} // namespace shmemctl::mlx5
