// Builds queue tables.
#pragma once

#include <cstring>
#include <utility>
#include <vector>

#include "src/abi/qp_table.h"

namespace shmemctl::mlx5 {

/// A table and its memory.
class TableImage {
public:
  explicit TableImage(std::size_t size_bytes) : words_((size_bytes + 7) / 8) {}
  const QpTable& table() const { return *reinterpret_cast<const QpTable*>(words_.data()); }
  /// The table's bytes, which may be copied to any address; table().size_bytes long.
  const void* data() const { return words_.data(); }
  /// A queue of this table, whose view the caller may change, for example for another address
  /// space.
  TableQp& queue(std::uint32_t pe, std::uint32_t path, std::uint32_t qp_set) {
    return const_cast<TableQp&>(std::as_const(*this).table().queue(pe, path, qp_set));
  }

private:
  friend class TableBuilder;
  std::vector<std::uint64_t> words_;
};

/// Not thread safe.
class TableBuilder {
public:
  static constexpr std::uint32_t n_regions = 16;

  TableBuilder(std::uint32_t n_pes, std::uint32_t n_qp_sets);

  /// Sets the queues to a PE, by path, then by QP set. Called at most once for each PE; without a
  /// call, it has none.
  void set_queues(std::uint32_t pe, std::vector<TableQp> queues);
  /// Look-ups examine segments in the order in which they were added, those of add_remote() too.
  void add_local(const LocalSegment& segment) { local_.push_back(segment); }
  void add_remote(std::uint32_t pe, std::uint32_t region, const RemoteSegment& segment);

  TableImage build() const;

private:
  std::uint32_t n_pes_, n_qp_sets_;
  std::vector<std::vector<TableQp>> queues_; ///< by PE
  std::vector<LocalSegment> local_;
  std::vector<std::vector<RemoteSegment>> remote_; ///< by PE and region
};

} // namespace shmemctl::mlx5
