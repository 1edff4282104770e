// An exchange (src/runtime/moe) whose launchers run the kernels between nodes on threads of the
// host: what it gives them, from the plan to the results, verified against the oracle.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>

#include "kernels/moe/cast.h"
#include "kernels/moe/high_throughput_internode_combine.cuh"
#include "kernels/moe/high_throughput_internode_dispatch.cuh"
#include "kernels/moe/high_throughput_internode_notify.cuh"
#include "kernels/moe/low_latency_internode_combine.cuh"
#include "kernels/moe/low_latency_internode_dispatch.cuh"
#include "kernels/moe/pack.h"
#include "kernels/moe/token_metadata.cuh"
#include "src/model/moe/number_formats.h"
#include "src/runtime/moe/exchange.h"
#include "tests/gpu/moe_routings.h"
#include "tests/support/host_kernels.h"
#include "tests/support/no_gpu.h"

namespace shmemctl::test {
namespace {

/// Where launchers run kernels, while a test does.
HostKernels* launch_on = nullptr;

} // namespace
} // namespace shmemctl::test

// The library's launchers are in objects of its archive that this program does not take, because it
// has all of them.
namespace shmemctl::moe {

std::string launch_notify(const DeviceJob&, const NotifyArguments&, void*) {
  return "not on threads of the host";
}
std::string launch_dispatch(const DeviceJob&, const DispatchArguments&, void*) {
  return "not on threads of the host";
}
std::string launch_combine(const DeviceJob&, const CombineArguments&, void*) {
  return "not on threads of the host";
}
std::string launch_low_latency_dispatch(const DeviceJob&, const LowLatencyDispatch&,
                                        LowLatencyCalls&, void*) {
  return "not on threads of the host";
}
std::string launch_low_latency_combine(const DeviceJob&, const LowLatencyCombine&, LowLatencyCalls&,
                                       void*) {
  return "not on threads of the host";
}
std::string launch_pack(const DeviceJob&, const PackArguments&, void*) {
  return "not on threads of the host";
}

std::string launch_cast(const CastArguments& all, void*) {
  for (std::int64_t first = 0; first < all.tokens * all.hidden; first += channels_per_scale) {
    const std::uint16_t* const values = all.values + first;
    float largest = 0;
    for (int i = 0; i < channels_per_scale; ++i)
      largest = std::max(largest, std::fabs(float_of_bf16(values[i])));
    const Fp8Scale scale = all.power_scales ? fp8_power_scale(largest) : fp8_scale(largest);
    for (int i = 0; i < channels_per_scale; ++i)
      all.casts[first + i] = fp8_cast(values[i], scale);
    all.scales[first / channels_per_scale] = scale.scale;
  }
  return "";
}

std::string launch_internode_notify(const DeviceJob& job, const InternodeNotify& all, void*) {
  constexpr test::HostShape grid{1, 3};
  std::vector<std::int32_t> shared(
      static_cast<std::size_t>(internode_notify_words(all.shape, grid.threads)));
  test::launch_on->run_on(
      job.pe, grid, [&](const DeviceJob& its) { InternodeCounts(its, all, shared.data()).run(); });
  return "";
}
std::string launch_internode_dispatch(const DeviceJob& job, const InternodeDispatch& all, void*) {
  test::launch_on->run_on(job.pe, {2, 2},
                          [&](const DeviceJob& its) { run_internode_dispatch(its, all); });
  return "";
}
std::string launch_internode_combine(const DeviceJob& job, const InternodeCombine& all, void*) {
  test::launch_on->run_on(job.pe, {2, 2},
                          [&](const DeviceJob& its) { run_internode_combine<4>(its, all); });
  return "";
}

std::string launch_low_latency_internode_dispatch(const DeviceJob& job,
                                                  const LowLatencyInternodeDispatch& all,
                                                  LowLatencyCalls& calls, void*) {
  if (std::string refused = calls.refuse_dispatch(all.phases); !refused.empty())
    return refused;
  constexpr int threads = 2;
  const DispatchBlocks blocks = dispatch_blocks(2, 3, all.phases);
  const auto words =
      static_cast<std::size_t>(low_latency_internode_shared_words(all.shape, threads));
  std::vector<std::int32_t> shared(words * static_cast<std::size_t>(blocks.all()));
  test::launch_on->run_on(job.pe, {blocks.all(), threads}, [&](const DeviceJob& its) {
    run_low_latency_internode_dispatch(its, all, blocks.senders,
                                       shared.data() + device::blockIdx.x * words);
  });
  calls.dispatched(all.phases);
  return "";
}
std::string launch_low_latency_internode_combine(const DeviceJob& job,
                                                 const LowLatencyInternodeCombine& all,
                                                 LowLatencyCalls& calls, void*) {
  if (std::string refused = calls.refuse_combine(all.phases); !refused.empty())
    return refused;
  std::vector<TokenRows> lists(2);
  std::vector<LongestWaits> waits(2);
  test::launch_on->run_on(job.pe, {2, 2}, [&](const DeviceJob& its) {
    run_low_latency_internode_combine(its, all, &lists[device::blockIdx.x],
                                      waits[device::blockIdx.x]);
  });
  calls.combined(all.phases);
  return "";
}

} // namespace shmemctl::moe

namespace shmemctl::test {
namespace {

constexpr std::uint32_t exchange_seed = 20261127;

/// A PE's GPU that is threads of the host.
class HostGpu : public NoGpu {
public:
  HostGpu(int pe, const std::vector<int>& nodes) : pe_(pe) {
    described.multiprocessors = 8;
    const int mine = nodes[static_cast<std::size_t>(pe)];
    for (const int node : nodes)
      paths.push_back({node == mine ? DevicePath::load_store : DevicePath::proxy, ""});
  }
  DeviceJob job() const override { return launch_on->job(pe_); }
  void copy(void* to, const void* from, std::size_t size_bytes) override {
    std::memcpy(to, from, size_bytes);
  }

private:
  int pe_;
};

/// One rank: its tokens, and what it does with an exchange.
class ExchangingRank {
public:
  ExchangingRank(const moe::ExchangeConfig& config, const moe::Routing& routing,
                 const std::vector<int>& nodes, std::int32_t rank)
      : config_(config), shape_(config.shape), routing_(routing),
        mine_(routing[static_cast<std::size_t>(rank)]), me_(rank), gpu_(rank, nodes),
        exchange_(moe::make_exchange(gpu_, gpu_.job().heap, config,
                                     moe::choose_moe_path(config, gpu_.paths))),
        plan_(exchange_->plan_layout().size_bytes / sizeof(int4) + 1) {
    for (std::int32_t token = 0; token < mine_.tokens(); ++token) {
      const moe::RowSource row{me_, token};
      append(weights_, moe::expected_weights(key(row), shape_.top_k));
      append(bias_, moe::expected_values(shape_, key(row) ^ 1));
      if (config.format == moe::Format::bf16 || config.is_low_latency()) {
        const std::vector<std::uint16_t> values = moe::expected_values(shape_, key(row));
        values_.insert(values_.end(), reinterpret_cast<const std::byte*>(values.data()),
                       reinterpret_cast<const std::byte*>(values.data() + values.size()));
      } else {
        const moe::Fp8Row cast = moe::expected_fp8(shape_, key(row), config.power_scales);
        values_.insert(values_.end(), reinterpret_cast<const std::byte*>(cast.values.data()),
                       reinterpret_cast<const std::byte*>(cast.values.data() + cast.values.size()));
        append(scales_, cast.scales);
      }
    }
  }

  /// A layer. "" or what is wrong.
  std::string run() {
    const std::int32_t count = mine_.tokens();
    results_.assign(bias_.size(), 0xffff);
    combined_.assign(weights_.size(), -1);
    const moe::TokenInput input{count, values_.data(), scales_.data(), mine_.experts.data(),
                                weights_.data()};
    moe::CombineOutput output;
    output.tokens = count;
    output.results = results_.data();
    if (config_.is_low_latency()) {
      exchange_->dispatch(plan(), input, moe::Phases::send, nullptr);
      exchange_->dispatch(plan(), input, moe::Phases::receive, nullptr);
      output.experts = mine_.experts.data();
      output.weights = weights_.data();
    } else {
      exchange_->make_plan(plan(), count, mine_.experts.data(), nullptr);
      exchange_->dispatch(plan(), input, moe::Phases::both, nullptr);
      output.bias = bias_.data();
      output.combined_weights = combined_.data();
    }
    if (std::string wrong = run_experts(); !wrong.empty())
      return wrong;
    exchange_->combine(plan(), output, moe::Phases::both, nullptr);
    return wrong_results();
  }

private:
  template <class T>
  static void append(std::vector<T>& to, const std::vector<T>& more) {
    to.insert(to.end(), more.begin(), more.end());
  }
  static std::uint32_t key(const moe::RowSource& row) {
    return moe::row_key(exchange_seed, row.rank, row.token);
  }
  std::byte* plan() { return reinterpret_cast<std::byte*>(plan_.data()); }
  const std::int32_t* choices(const moe::RowSource& row) const {
    return routing_[static_cast<std::size_t>(row.rank)].choices(row.token);
  }
  std::vector<std::uint16_t> read(const moe::RowSource& row) const {
    return moe::expected_read(shape_, key(row), config_.format, config_.power_scales);
  }

  std::string run_experts() {
    std::vector<std::int32_t> seen(static_cast<std::size_t>(shape_.n_ranks));
    std::int64_t next = 0;
    for (const moe::RowSource& row : moe::expected_rows(shape_, routing_, me_)) {
      std::int64_t at = next++, output = at;
      if (config_.is_low_latency()) {
        output = moe::fixed_slot(shape_, row.rank, seen[static_cast<std::size_t>(row.rank)]++);
        at = exchange_->half() * std::int64_t{shape_.max_rows()} + output;
      }
      if (std::string wrong = wrong_row(row, at); !wrong.empty())
        return wrong;
      work(row, output);
    }
    return "";
  }
  std::string wrong_row(const moe::RowSource& row, std::int64_t at) const {
    const moe::MetadataLayout layout(shape_, config_.scales());
    const auto* const record =
        exchange_->at<std::uint32_t>(exchange_->layout().records) + at * layout.words();
    const std::string where = "rank " + std::to_string(me_) + ", token " +
                              std::to_string(row.token) + " of " + std::to_string(row.rank);
    if (record[layout.source()] != static_cast<std::uint32_t>(row.rank) ||
        record[layout.token()] != static_cast<std::uint32_t>(row.token))
      return where + ": another record";
    for (std::int32_t k = 0; k < shape_.top_k; ++k)
      if (record[layout.experts() + k] !=
          static_cast<std::uint32_t>(shape_.local_expert(choices(row)[k], me_)))
        return where + ": other experts";
    const std::int64_t value_bytes = shape_.value_bytes(config_.format);
    const std::byte* const values =
        exchange_->at<std::byte>(exchange_->layout().rows) + at * value_bytes;
    const auto same = [&](const auto& expected) {
      return std::memcmp(values, expected.data(), static_cast<std::size_t>(value_bytes)) == 0;
    };
    if (config_.format == moe::Format::bf16)
      return same(moe::expected_values(shape_, key(row))) ? "" : where + ": other values";
    const moe::Fp8Row cast = moe::expected_fp8(shape_, key(row), config_.power_scales);
    for (std::int32_t word = 0; word < layout.scale_words; ++word)
      if (record[word] != moe::scale_word(shape_, config_.scales(), cast.scales.data(), word))
        return where + ": other scales";
    return same(cast.values) ? "" : where + ": other values";
  }
  void work(const moe::RowSource& row, std::int64_t output) {
    const std::vector<std::uint16_t> values = read(row);
    const std::vector<float> weights = moe::expected_weights(key(row), shape_.top_k);
    auto* const outputs = exchange_->at<std::uint16_t>(exchange_->layout().outputs);
    const auto write = [&](std::int64_t to, float factor) {
      for (std::size_t i = 0; i < values.size(); ++i)
        outputs[to * shape_.hidden + static_cast<std::int64_t>(i)] =
            moe::transformed(values[i], factor);
    };
    if (!config_.is_low_latency())
      write(output, moe::rank_factor(shape_, choices(row), me_));
    for (std::int32_t k = 0; k < shape_.top_k; ++k) {
      const std::int32_t expert = choices(row)[k];
      const bool here = shape_.local_expert(expert, me_) != moe::no_expert;
      if (config_.is_low_latency() && here)
        write(output * shape_.top_k + k, moe::expert_factor(expert));
      if (config_.combined_weights)
        exchange_->at<float>(exchange_->layout().output_weights)[output * shape_.top_k + k] =
            here ? moe::weight_back(weights[static_cast<std::size_t>(k)], expert) : 0;
    }
  }
  std::string wrong_results() const {
    const bool low = config_.is_low_latency();
    const auto hidden = static_cast<std::ptrdiff_t>(shape_.hidden);
    for (std::int32_t token = 0; token < mine_.tokens(); ++token) {
      const moe::RowSource row{me_, token};
      const std::vector<std::uint16_t> bias(bias_.begin() + token * hidden,
                                            bias_.begin() + (token + 1) * hidden);
      const auto expected = moe::expected_combined(
          shape_, choices(row), key(row), config_.combine, read(row),
          low ? std::vector<std::uint16_t>{} : bias, low ? 0 : exchange_->path().node_ranks);
      const std::string where = "rank " + std::to_string(me_) + ", token " + std::to_string(token);
      if (!std::equal(expected.begin(), expected.end(), results_.begin() + token * hidden))
        return where + ": another result";
      if (config_.combined_weights &&
          moe::expected_combined_weights(shape_, choices(row), key(row)) !=
              std::vector<float>(combined_.begin() + token * shape_.top_k,
                                 combined_.begin() + (token + 1) * shape_.top_k))
        return where + ": other weights";
    }
    return "";
  }

  const moe::ExchangeConfig& config_;
  const moe::Shape& shape_;
  const moe::Routing& routing_;
  const moe::RankRouting& mine_;
  const std::int32_t me_;
  HostGpu gpu_;
  std::unique_ptr<moe::Exchange> exchange_;
  std::vector<int4> plan_;
  std::vector<std::byte> values_;
  std::vector<float> scales_, weights_, combined_;
  std::vector<std::uint16_t> bias_, results_;
};

moe::ExchangeConfig exchange_config(moe::Mode mode, moe::Format format, std::int32_t n_ranks,
                                    std::int32_t node_ranks) {
  moe::ExchangeConfig config;
  config.shape = {n_ranks, 3 * n_ranks, 3, 256, 21};
  config.mode = mode;
  config.format = format;
  config.power_scales = format == moe::Format::fp8 && mode == moe::Mode::low_latency;
  config.combine = mode == moe::Mode::low_latency ? moe::Combine::weighted : moe::Combine::rows;
  config.combined_weights = mode == moe::Mode::high_throughput;
  config.node_ranks = node_ranks;
  return config;
}

TEST(MoeExchangeOnHost, LayersAreRightToTheBit) {
  for (const moe::Mode mode : {moe::Mode::high_throughput, moe::Mode::low_latency})
    for (const moe::Format format : {moe::Format::bf16, moe::Format::fp8})
      for (const auto& [n_ranks, node_ranks] : {std::pair{4, 2}, {3, 1}}) {
        const moe::ExchangeConfig config = exchange_config(mode, format, n_ranks, node_ranks);
        std::vector<int> nodes;
        for (std::int32_t rank = 0; rank < n_ranks; ++rank)
          nodes.push_back(rank / node_ranks);
        const std::size_t size_bytes = moe::ExchangeLayout(config, {mode, node_ranks}).size_bytes;
        std::vector<NamedRouting> routings = all_routings(config.shape);
        if (node_ranks > 1)
          routings.resize(2);
        for (const NamedRouting& routing : routings) {
          HostKernels kernels(n_ranks, size_bytes);
          kernels.put_on_nodes(nodes);
          launch_on = &kernels;
          std::vector<std::string> wrong(static_cast<std::size_t>(n_ranks));
          std::vector<std::thread> ranks;
          for (std::int32_t rank = 0; rank < n_ranks; ++rank)
            ranks.emplace_back([&, rank] {
              std::string& mine = wrong[static_cast<std::size_t>(rank)];
              try {
                ExchangingRank one(config, routing.routing, nodes, rank);
                for (int layer = 0; layer < 3 && mine.empty(); ++layer)
                  mine = one.run();
              } catch (const Error& error) {
                mine = error.message();
              }
            });
          for (std::thread& rank : ranks)
            rank.join();
          launch_on = nullptr;
          for (const std::string& one : wrong)
            ASSERT_EQ(one, "") << routing.name << ", " << n_ranks << " ranks, nodes of "
                               << node_ranks << ", mode " << static_cast<int>(mode) << ", format "
                               << static_cast<int>(format);
        }
      }
}

TEST(MoeExchangeOnHost, AFailedLaunchIsAnErrorWithItsReason) {
  const moe::ExchangeConfig config =
      exchange_config(moe::Mode::high_throughput, moe::Format::bf16, 1, 1);
  HostKernels kernels(1, moe::ExchangeLayout(config, {config.mode, 0}).size_bytes);
  launch_on = &kernels;
  HostGpu gpu(0, {0});
  const auto exchange =
      moe::make_exchange(gpu, gpu.job().heap, config, moe::choose_moe_path(config, gpu.paths));
  std::vector<int4> plan(exchange->plan_layout().size_bytes / sizeof(int4) + 1);
  try {
    exchange->make_plan(reinterpret_cast<std::byte*>(plan.data()), 0, nullptr, nullptr);
    ADD_FAILURE() << "it was launched";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::unavailable);
    EXPECT_NE(error.message().find("not on threads of the host"), std::string::npos);
  }
  launch_on = nullptr;
}

} // namespace
} // namespace shmemctl::test
