#include "src/runtime/state_block.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "src/base/round_up.h"

namespace shmemctl {

namespace {

constexpr std::size_t line_bytes = 64;
/// The list area has room for the members of this many irregular teams of all PEs.
constexpr std::size_t full_lists = 16;
constexpr std::size_t fewest_list_entries = 1024;
constexpr std::size_t peers_at = round_up(sizeof(State), line_bytes);

std::size_t list_entries_for(std::size_t n_pes) {
  return std::max(n_pes * full_lists, fewest_list_entries);
}

std::size_t lists_at(std::size_t n_pes) {
  return round_up(peers_at + n_pes * sizeof(PeerState), line_bytes);
}

std::size_t block_bytes(std::size_t n_pes, std::size_t list_entries) {
  return round_up(lists_at(n_pes) + list_entries * sizeof(std::int32_t), line_bytes);
}

} // namespace

std::size_t StateBlock::size_bytes_for(int n_pes) {
  const auto count = static_cast<std::size_t>(n_pes);
  return block_bytes(count, list_entries_for(count));
}

void StateBlock::Free::operator()(std::byte* block) const {
  ::operator delete (block, std::align_val_t{line_bytes});
}

StateBlock::StateBlock(const Placement& placement, const std::vector<int>& transport_index_by_pe)
    : StateBlock(placement, transport_index_by_pe,
                 list_entries_for(static_cast<std::size_t>(placement.n_pes))) {}

StateBlock::StateBlock(const Placement& placement, const std::vector<int>& transport_index_by_pe,
                       std::size_t list_entries) {
  const auto n_pes = static_cast<std::size_t>(placement.n_pes);
  size_bytes_ = block_bytes(n_pes, list_entries);
  block_.reset(static_cast<std::byte*>(::operator new (size_bytes_, std::align_val_t{line_bytes})));
  std::memset(block_.get(), 0, size_bytes_);

  State& state = *new (block_.get()) State{};
  state.magic = State::magic_value;
  state.version = State::layout_version;
  state.size_bytes = size_bytes_;
  state.pe = placement.pe;
  state.n_pes = placement.n_pes;
  state.node = placement.my_node();
  state.n_nodes = placement.n_nodes();
  state.local_pe = placement.my_local_pe();
  state.local_n_pes = static_cast<std::int32_t>(
      placement.node_pes[static_cast<std::size_t>(placement.my_node())].size());
  for (TeamState& team : state.teams)
    team = free_team(0);
  state.peers_offset_bytes = peers_at;
  state.members_offset_bytes = lists_at(n_pes);
  state.members_capacity = list_entries;
  for (std::size_t pe = 0; pe < n_pes; ++pe) {
    std::fill(std::begin(peers()[pe].delta_bytes), std::end(peers()[pe].delta_bytes),
              PeerState::unreachable);
    peers()[pe].transport = transport_index_by_pe[pe];
    peers()[pe].node = placement.node[pe];
  }
}

PeerState* StateBlock::peers() {
  return reinterpret_cast<PeerState*>(block_.get() + master().peers_offset_bytes);
}

void StateBlock::change(const std::function<void(State&)>& change) {
  const std::lock_guard lock(mutex_);
  change(writable());
  ++writable().generation;
  for (std::byte* mirror : mirrors_)
    std::memcpy(mirror, block_.get(), size_bytes_);
  for (const auto& observer : observers_)
    observer(master());
}

void StateBlock::set_region(const RegionView& region) {
  const auto index = static_cast<std::size_t>(region.region);
  change([&](State& state) {
    state.regions[index] = {reinterpret_cast<std::uint64_t>(region.base), region.size_bytes};
    for (std::size_t pe = 0; pe < region.mapped.size(); ++pe)
      peers()[pe].delta_bytes[index] = region.mapped[pe]
                                           ? reinterpret_cast<std::int64_t>(region.mapped[pe]) -
                                                 reinterpret_cast<std::int64_t>(region.base)
                                           : PeerState::unreachable;
  });
}

void StateBlock::add_observer(std::function<void(const State&)> observer) {
  const std::lock_guard lock(mutex_);
  observers_.push_back(std::move(observer));
}

void StateBlock::add_mirror(std::byte* mirror) {
  const std::lock_guard lock(mutex_);
  mirrors_.push_back(mirror);
}

} // namespace shmemctl
