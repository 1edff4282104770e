// High throughput on the host: counts go ahead, so every row has its final place before it moves.
// The way there is in host_high_throughput.cpp, the way back in host_high_throughput_back.cpp.
#pragma once

#include <cstring>

#include "src/bench/moe/host_backend.h"

namespace shmemctl::moe {

class HighThroughput final : public HostBackend {
public:
  HighThroughput(Rma& rma, std::byte* memory, const Setup& setup, Mutation mutation)
      : HostBackend(rma, memory, setup, std::move(mutation)), n_(setup.shape.n_ranks),
        node_(node_of(me_, setup.node_ranks)), counts_(as_size(n_) * as_size(n_)),
        expert_counts_(as_size(setup.shape.local_experts())), relayed_(as_size(setup.n_nodes())) {
    for (std::int32_t i = 0; i < setup.node_ranks; ++i) // itself first, then in turn
      mates_.push_back(node_ * setup.node_ranks + (me_ + i) % setup.node_ranks);
    for (std::int32_t token = 0; setup.bias && token < tokens(); ++token)
      biases_.push_back(bias_of(setup_, me_, token));
    for (std::int32_t node = 0; node < setup.n_nodes(); ++node)
      if (node != node_)
        rails_.push_back(rail_of(me_, node, setup.node_ranks));
  }

  void poison() override {
    poison_common();
    const std::size_t row = layout_.stride_bytes(), back = back_row_bytes();
    const std::size_t all = as_size(setup_.shape.max_rows());
    std::memset(memory_ + lies_.receive, static_cast<int>(poison_byte), all * row);
    std::memset(memory_ + lies_.back, static_cast<int>(poison_byte), all * back);
    if (rails_.empty())
      return;
    const std::size_t crossing = as_size(setup_.n_nodes()) * as_size(setup_.shape.max_tokens);
    std::memset(memory_ + lies_.relay, static_cast<int>(poison_byte), crossing * row);
    std::memset(memory_ + lies_.sums_in, static_cast<int>(poison_byte), crossing * back);
  }

  Times dispatch(bool cached) override;
  void run_experts() override;
  Times combine() override;

private:
  static std::size_t as_size(std::int32_t value) { return static_cast<std::size_t>(value); }
  std::byte* receive_row(std::int32_t row) const {
    return memory_ + lies_.receive + as_size(row) * layout_.stride_bytes();
  }
  std::byte* relay_row(std::int32_t node, std::int32_t index) const {
    return memory_ + lies_.relay + token_of_node(node, index) * layout_.stride_bytes();
  }
  std::size_t token_of_node(std::int32_t node, std::int32_t token) const {
    return as_size(node) * as_size(setup_.shape.max_tokens) + as_size(token);
  }
  std::byte* value_row(std::size_t area, std::size_t index) const {
    return memory_ + area + index * back_row_bytes();
  }
  /// In the memory of the rank that adds up: what local rank `local` gives back of a token of the
  /// rank with the same local index on `node`.
  std::byte* back_row(std::int32_t local, std::int32_t node, std::int32_t token) const {
    return value_row(lies_.back,
                     as_size(local * setup_.n_nodes()) * as_size(setup_.shape.max_tokens) +
                         token_of_node(node, token));
  }
  const std::uint16_t* values(const std::byte* row) const {
    return reinterpret_cast<const std::uint16_t*>(row);
  }
  std::int32_t count(std::int32_t source, std::int32_t destination) const {
    return counts_[as_size(source * n_ + destination)];
  }

  void make_plan();
  void exchange_counts(Times& times);
  void meet(std::size_t signals, std::uint64_t epoch, const char* step, Times& times);
  void send_rows();
  void signal_rows();
  void wait_for_rails(const std::function<bool(std::int32_t)>& is_there, const char* step,
                      Times& times);
  void hand_on(Times& times);
  void hand_on_from(std::int32_t node);
  void wait_for_rows(Times& times);
  void weigh(const std::byte* row, float* out) const;
  void give_back();
  void add_up_for_rails();
  void add_up_own(Times& times);

  std::vector<std::byte*> received_rows() const override;
  std::optional<std::string> wrong_counts_or_gaps(std::size_t rows) const override;

  /// A token of a rail's rank that has come to this node, and the ranks here that it went to.
  struct Relayed {
    std::int32_t token;
    RankMask local;
  };

  const std::int32_t n_, node_;
  std::vector<std::int32_t> mates_, rails_;
  std::vector<std::vector<std::uint16_t>> biases_; ///< by token
  std::vector<std::int32_t> counts_;               ///< [source][destination]
  std::vector<std::int32_t> expert_counts_;
  std::vector<std::int32_t> relays_;          ///< by node: rows that go there
  std::vector<std::vector<Relayed>> relayed_; ///< by node
  std::uint64_t counts_epoch_ = 0, epoch_ = 0, back_epoch_ = 0;
};

} // namespace shmemctl::moe
