// What the GPU backend decides without a GPU: its memory layout, and which jobs it refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "src/instruments/bench/moe/gpu_backend.h"
#include "src/instruments/bench/moe/gpu_internode.h"
#include "src/instruments/bench/moe/gpu_layout.h"
#include "src/instruments/bench/moe/request.h"

namespace shmemctl::moe {
namespace {

/// A GPU's properties and paths; nothing that a kernel would need.
class SomeGpu : public PeGpu {
public:
  GpuInfo output_row;
  std::vector<KernelPath> paths;

  const GpuInfo& info() const override { return output_row; }
  const std::vector<KernelPath>& paths_by_pe() const override { return paths; }
  DeviceJob job() const override { return {}; }
  std::vector<std::int64_t> heap_delta_bytes() const override { return {}; }
  void set_timeout_s(double) override {}
  void* allocate(std::size_t, std::size_t) override { return nullptr; }
  void free(void*) override {}
  SymmetricHeap& heap() override { throw std::logic_error("no heap"); }
  GpuStream stream() override { return nullptr; }
  void copy(void*, const void*, std::size_t) override {}
  void fill(void*, int, std::size_t) override {}
  std::unique_ptr<HostCopies> make_host_copies(std::size_t) override { return nullptr; }
  void wait(GpuStream, const char*) override {}
  void check() override {}
  void release_kernels() noexcept override {}
};

std::string refusal(const SomeGpu& gpu, const Setup& setup) {
  return gpu_backend_cannot(gpu, setup, choose_moe_path(setup, gpu.paths));
}
std::optional<BrokenRule> broken_rule(const SomeGpu& gpu, const Setup& setup) {
  return gpu_broken_rule(gpu, setup, choose_moe_path(setup, gpu.paths));
}
GpuSettings settings_for(const SomeGpu& gpu, const Setup& setup) {
  return gpu_settings_of(gpu, setup, choose_moe_path(setup, gpu.paths));
}
std::size_t memory_bytes(const SomeGpu& gpu, const Setup& setup) {
  return gpu_backend_bytes(setup, choose_moe_path(setup, gpu.paths));
}

Setup some_setup(Mode mode, Format format, Combine combine) {
  Setup setup;
  setup.shape.n_ranks = 2;
  setup.shape.n_experts = 16;
  setup.shape.top_k = 4;
  setup.shape.hidden = 2176;
  setup.shape.max_tokens = 37;
  setup.mode = mode;
  setup.format = format;
  setup.combine = combine;
  setup.bias = combine == Combine::rows;
  setup.node_ranks = 2;
  return setup;
}

TEST(MoeGpuBackend, PartsLieApartWithGuardsBetween) {
  for (const auto& [mode, combine] : {std::pair{Mode::high_throughput, Combine::rows},
                                      std::pair{Mode::low_latency, Combine::weighted},
                                      std::pair{Mode::low_latency, Combine::partial}})
    for (const Format format : {Format::bf16, Format::fp8}) {
      moe::Setup setup = some_setup(mode, format, combine);
      setup.by_expert = combine == Combine::weighted;
      setup.combined_weights = mode == Mode::high_throughput;
      const GpuLayout lies(setup);
      std::vector<GpuRegion> parts = {lies.flags,
                                      lies.expert_count_flags,
                                      lies.rows,
                                      lies.records,
                                      lies.outputs,
                                      lies.values,
                                      lies.casts,
                                      lies.scales,
                                      lies.experts,
                                      lies.weights,
                                      lies.bias,
                                      lies.results,
                                      lies.slots,
                                      lies.bases,
                                      lies.counts,
                                      lies.expert_counts,
                                      lies.wrong,
                                      lies.output_weights,
                                      lies.combined_weights};
      if (setup.by_expert)
        parts.insert(parts.end(), {lies.output_rows, lies.packed_rows, lies.packed_records,
                                   lies.packed_counts, lies.packed_offsets});
      std::sort(parts.begin(), parts.end(),
                [](const GpuRegion& a, const GpuRegion& b) { return a.offset < b.offset; });
      std::size_t end = 0;
      for (const GpuRegion& part : parts) {
        EXPECT_GE(part.offset, end + gpu_guard_bytes);
        EXPECT_EQ(part.offset % 128, 0U); // bulk copies need 16, the flags a line
        end = part.offset + part.size_bytes;
      }
      EXPECT_GE(lies.size_bytes, end + gpu_guard_bytes);
      EXPECT_EQ(memory_bytes(SomeGpu(), setup), lies.size_bytes);
    }
}

TEST(MoeGpuBackend, RefusesWhatKernelsCannotDo) {
  SomeGpu gpu;
  gpu.output_row.name = "some GPU";
  gpu.output_row.multiprocessors = 132;
  gpu.output_row.pes_on_device = 2;
  gpu.paths = {{DevicePath::load_store, ""}, {DevicePath::load_store, ""}};
  auto setup = some_setup(Mode::high_throughput, Format::bf16, Combine::rows);
  EXPECT_EQ(refusal(gpu, setup), "");
  setup.combined_weights = true;
  EXPECT_EQ(refusal(gpu, setup), "");
  setup.mode = Mode::low_latency;
  EXPECT_NE(refusal(gpu, setup).find("does not send them back"), std::string::npos);
  setup = some_setup(Mode::high_throughput, Format::bf16, Combine::rows);
  gpu.paths[1] = {DevicePath::none, "no transport reaches it"};
  EXPECT_EQ(refusal(gpu, setup),
            "kernels cannot load from and store to PE 1: no transport reaches it");
  // Within a node, loads and stores; between nodes, any path.
  gpu.paths[1] = {DevicePath::proxy, "on another virtual node"};
  setup.node_ranks = 1;
  EXPECT_EQ(refusal(gpu, setup), "");
  gpu.paths[1] = {DevicePath::none, "no transport reaches it"};
  EXPECT_EQ(refusal(gpu, setup), "kernels cannot reach PE 1: no transport reaches it");
  gpu.paths = {{DevicePath::load_store, ""},
               {DevicePath::proxy, "as requested"},
               {DevicePath::proxy, ""},
               {DevicePath::proxy, ""}};
  setup.shape.n_ranks = 4;
  setup.node_ranks = 2;
  EXPECT_EQ(refusal(gpu, setup), "kernels cannot load from and store to PE 1: as requested");
  gpu.paths.assign(32, {DevicePath::load_store, ""});
  setup.shape.n_ranks = 32;
  for (const std::int32_t mates : {8, 1})
    EXPECT_EQ(refusal(gpu, (setup.node_ranks = mates, setup)), "") << mates;
}

TEST(MoeGpuBackend, BrokenRulesNameTheNearestLegalValue) {
  SomeGpu gpu;
  gpu.output_row.name = "some GPU";
  gpu.output_row.multiprocessors = 132;
  gpu.output_row.pes_on_device = 2;
  gpu.paths.assign(2, {DevicePath::load_store, ""});
  const auto expect_broken = [&](const moe::Setup& setup, const char* what, const char* words,
                                 const char* nearest) {
    const std::optional<BrokenRule> broken = broken_rule(gpu, setup);
    ASSERT_TRUE(broken) << words;
    EXPECT_EQ(broken->what, what);
    EXPECT_NE(broken->rule.find(words), std::string::npos) << broken->rule;
    EXPECT_EQ(broken->nearest, nearest);
    const Error error = error_of(*broken);
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_EQ(error.fix(), std::string("use the nearest legal value: ") + nearest);
  };
  auto setup = some_setup(Mode::high_throughput, Format::bf16, Combine::rows);
  setup.num_sms = 66;
  EXPECT_FALSE(broken_rule(gpu, setup));
  setup.num_sms = 67;
  expect_broken(setup, "num-sms", "66 at most, which a PE has of some GPU", "66");
  setup.num_sms = 1;
  expect_broken(setup, "num-sms", "2 at least: the blocks of notify", "2");
  setup.mode = Mode::low_latency;
  expect_broken(setup, "num-sms", "2 at least: the blocks of a low-latency dispatch", "2");
  setup.mode = Mode::high_throughput;
  setup.node_ranks = 1; // over a network, where notify has one block
  EXPECT_FALSE(broken_rule(gpu, setup));
  setup = some_setup(Mode::low_latency, Format::bf16, Combine::weighted);
  setup.by_expert = true;
  setup.shape.n_experts = 8192;
  EXPECT_FALSE(broken_rule(gpu, setup));
  setup.shape.n_experts = 8194;
  expect_broken(setup, "num-experts", "4096 experts of a rank", "8192");
  setup.by_expert = false;
  setup.shape.max_tokens = 65535;
  EXPECT_FALSE(broken_rule(gpu, setup));
  EXPECT_EQ(rows_of_count(packed_count(256, 65535)), 65535);
  EXPECT_EQ(blocks_of_count(packed_count(256, 65535)), 256);
  EXPECT_EQ(refuse_tokens(65535), "");
  EXPECT_NE(refuse_tokens(65536), "");
  setup.shape.max_tokens = 65536;
  expect_broken(setup, "num-tokens", "16 bits", "65535");
  setup.mode = Mode::high_throughput;
  EXPECT_FALSE(broken_rule(gpu, setup));
  gpu.paths.assign(32, {DevicePath::load_store, ""});
  setup.shape.n_ranks = 32;
  setup.node_ranks = 16;
  expect_broken(setup, "PEs of a node", "--flat sends each row straight to its rank", "8");
  setup.node_ranks = 32; // with --flat
  EXPECT_FALSE(broken_rule(gpu, setup));
}

/// Own choices and candidates fit, whatever they are computed from.
TEST(MoeGpuBackend, RowsAndCountsThatABlockCannotHoldAreARule) {
  SomeGpu gpu;
  gpu.output_row.multiprocessors = 132;
  for (const std::int32_t ranks : {1, 2, 8})
    for (const Format format : {Format::bf16, Format::fp8}) {
      gpu.paths.assign(static_cast<std::size_t>(ranks), {DevicePath::load_store, ""});
      auto setup = some_setup(Mode::high_throughput, format, Combine::rows);
      setup.shape.n_ranks = setup.node_ranks = ranks;
      setup.shape.hidden = 131072 * (format == Format::fp8 ? 2 : 1);
      const std::optional<BrokenRule> broken = broken_rule(gpu, setup);
      ASSERT_TRUE(broken) << ranks;
      EXPECT_EQ(broken->what, "hidden");
      EXPECT_NE(broken->rule.find("shared memory"), std::string::npos) << broken->rule;
      const std::int32_t step = format == Format::fp8 ? 128 : 8;
      setup.shape.hidden = std::stoi(broken->nearest);
      EXPECT_EQ(setup.shape.hidden % step, 0);
      EXPECT_GT(setup.shape.hidden, 90000) << "a block has 227 KiB";
      EXPECT_FALSE(broken_rule(gpu, setup));
      EXPECT_EQ(settings_for(gpu, setup).misfit(Direction::dispatch, {}), "");
      setup.shape.hidden += step;
      EXPECT_TRUE(broken_rule(gpu, setup)) << "it was not the largest";
      setup.mode = Mode::low_latency;
      EXPECT_FALSE(broken_rule(gpu, setup)) << "low latency holds no row in shared memory";
    }
  gpu.paths.assign(4, {DevicePath::load_store, ""});
  for (const std::int32_t mates : {4, 2, 1}) {
    auto setup = some_setup(Mode::high_throughput, Format::bf16, Combine::rows);
    setup.shape.n_ranks = 4;
    setup.node_ranks = mates;
    setup.shape.n_experts = 65536;
    const std::optional<BrokenRule> broken = broken_rule(gpu, setup);
    ASSERT_TRUE(broken) << mates;
    EXPECT_EQ(broken->what, "num-experts");
    setup.shape.n_experts = std::stoi(broken->nearest);
    EXPECT_FALSE(broken_rule(gpu, setup));
    EXPECT_EQ(setup.shape.n_experts % 4, 0);
    EXPECT_GE(setup.shape.n_experts, 56000);
    // As notify is launched, with what it declares beside.
    const InternodeShape crossing{setup.shape, setup.format, mates, 1};
    const std::int32_t words = mates == 4
                                   ? setup.shape.n_experts
                                   : internode_notify_words(crossing, min_internode_notify_threads);
    EXPECT_LE(static_cast<std::size_t>(words) * 4 + notify_own_shared_bytes, max_shared_bytes);
    setup.shape.n_experts += 4;
    EXPECT_TRUE(broken_rule(gpu, setup));
    setup.mode = Mode::low_latency;
    EXPECT_FALSE(broken_rule(gpu, setup)) << "nothing goes ahead there";
  }
}

/// Depends only on the setups of a sweep and the GPU: an invalid point is detected before the first
/// one is measured.
TEST(MoeGpuBackend, AnInvalidLaterPointIsDetectedWithoutMemory) {
  SomeGpu gpu;
  gpu.output_row.multiprocessors = 132;
  gpu.paths.assign(4, {DevicePath::load_store, ""});
  struct Case {
    std::function<void(Request&)> sweep;
    std::int32_t node_ranks;
    Direction direction;
    const char* given;
    const char* problem;
  };
  for (const Case& one : std::initializer_list<Case>{
           {[](Request& r) { r.hidden = "2048,512"; }, 4, Direction::combine, "chunk_bytes=2048",
            "chunk_bytes 2048 is not from 16 to 1024: take 1024"},
           {[](Request& r) { r.hidden = "2048,14336"; }, 4, Direction::dispatch, "warps=8,stages=2",
            "warps times stages may be 7"},
           {[](Request& r) { r.num_sms = "8,24"; }, 4, Direction::dispatch, "sms=8",
            "sms 8 is not --num-sms 24"},
           {[](Request& r) { r.mode = "ll", r.top_k = "4,16"; }, 4, Direction::combine,
            "warps=14,stages=1,chunk_bytes=3072", "take warps=4,stages=1,chunk_bytes=3072"},
           {[](Request& r) { r.tokens = "64,20"; }, 2, Direction::dispatch, "chunk_rows=32",
            "chunk_rows 32 is not from 1 to 20: take 20"}}) {
    Request request;
    request.num_sms = "0";
    one.sweep(request);
    std::vector<PointRequest> points = points_of(request, std::nullopt, 4, one.node_ranks);
    ASSERT_EQ(points.size(), 2U);
    const auto misfit = [&](const PointRequest& point) {
      EXPECT_FALSE(broken_rule(gpu, point.setup));
      return settings_for(gpu, point.setup).misfit(one.direction, parse_settings("--x", one.given));
    };
    EXPECT_EQ(misfit(points[0]), "") << one.given;
    EXPECT_NE(misfit(points[1]).find(one.problem), std::string::npos)
        << one.given << ": " << misfit(points[1]);
  }
}

TEST(MoeGpuBackend, LowLatencyOverANetworkPacksToo) {
  SomeGpu gpu;
  gpu.output_row.multiprocessors = 132;
  gpu.paths = {{DevicePath::load_store, ""}, {DevicePath::proxy, ""}};
  auto setup = some_setup(Mode::low_latency, Format::bf16, Combine::weighted);
  setup.by_expert = true;
  EXPECT_EQ(refusal(gpu, setup), "");
  const LowLatencyInternodeLayout lies(setup);
  const Shape& shape = setup.shape;
  EXPECT_GE(lies.output_rows_by_slot.size_bytes,
            static_cast<std::size_t>(shape.max_rows() * shape.top_k) * sizeof(std::int32_t));
  EXPECT_LE(lies.output_rows_by_slot.offset + lies.output_rows_by_slot.size_bytes + gpu_guard_bytes,
            lies.size_bytes);
  EXPECT_EQ(memory_bytes(gpu, setup), lies.size_bytes);
}

TEST(MoeGpuBackend, RowsGoStraightWhereOneNodeIsReachedByANetwork) {
  SomeGpu gpu;
  gpu.paths = {{DevicePath::load_store, ""}, {DevicePath::load_store, ""}};
  auto setup = some_setup(Mode::high_throughput, Format::bf16, Combine::rows);
  EXPECT_EQ(choose_moe_path(setup, gpu.paths).node_ranks, 0);
  gpu.paths[1].path = DevicePath::ibgda;
  EXPECT_EQ(choose_moe_path(setup, gpu.paths).node_ranks, 1);
  setup.node_ranks = 1;
  EXPECT_EQ(choose_moe_path(setup, gpu.paths).node_ranks, 1);
  setup.shape.n_ranks = 4;
  setup.node_ranks = 2;
  EXPECT_EQ(choose_moe_path(setup, gpu.paths).node_ranks, 2);
}

TEST(MoeGpuBackend, RowsGoStraightWhereADomainHasMoreRanksThanItsKernelsKnow) {
  SomeGpu gpu;
  auto setup = some_setup(Mode::high_throughput, Format::bf16, Combine::rows);
  for (const std::int32_t ranks : {8, 9}) {
    gpu.paths.assign(static_cast<std::size_t>(ranks), {DevicePath::load_store, ""});
    setup.shape.n_ranks = setup.node_ranks = ranks;
    EXPECT_EQ(choose_moe_path(setup, gpu.paths).node_ranks, ranks == 8 ? 0 : 1);
    EXPECT_EQ(refusal(gpu, setup), "");
  }
}

TEST(MoeGpuBackend, BuffersOfInternodeRowsFollowTheOthers) {
  auto setup = some_setup(Mode::high_throughput, Format::fp8, Combine::rows);
  setup.shape.n_ranks = 4;
  const InternodeLayout lies(setup, 2);
  std::size_t end = GpuLayout(setup).size_bytes;
  for (const GpuRegion& part :
       {lies.rails, lies.counts_out, lies.counts_in, lies.row_signals, lies.sum_signals,
        lies.rows_out, lies.rows_in, lies.sums_out, lies.sums_in, lies.all_bases,
        lies.crossing_slots, lies.crossing_tokens, lies.crossing_counts}) {
    EXPECT_GE(part.offset, end + gpu_guard_bytes);
    EXPECT_EQ(part.offset % 128, 0U);
    end = part.offset + part.size_bytes;
  }
  EXPECT_GE(lies.size_bytes, end + gpu_guard_bytes);
  // A word for each chunk, however few rows it has.
  EXPECT_GE(lies.row_signals.size_bytes, 8U * static_cast<std::size_t>(setup.shape.max_tokens));
  EXPECT_GE(lies.sum_signals.size_bytes, 8U * static_cast<std::size_t>(setup.shape.max_tokens));
  const auto tokens = static_cast<std::size_t>(setup.shape.max_tokens);
  EXPECT_EQ(lies.rows_in.size_bytes,
            tokens * static_cast<std::size_t>(lies.shape.crossing_bytes()));
  EXPECT_EQ(lies.sums_in.size_bytes, tokens * static_cast<std::size_t>(setup.shape.hidden) * 2);
  setup.combined_weights = true;
  EXPECT_EQ(InternodeLayout(setup, 2).sums_in.size_bytes,
            tokens * (static_cast<std::size_t>(setup.shape.hidden) * 2 + 16));
}

/// Each rank computes the others' addresses as they compute their own.
TEST(MoeHybridShape, PlacesOfNodesAndChunks) {
  for (const std::int32_t nodes : {2, 3, 5}) {
    InternodeShape shape{};
    shape.shape.n_ranks = nodes * 2;
    shape.shape.max_tokens = 33;
    shape.node_ranks = 2;
    shape.chunk_rows = 16;
    EXPECT_EQ(shape.chunks(), 3);
    EXPECT_EQ(shape.chunks_of(32), 2);
    for (std::int32_t at = 0; at < nodes; ++at)
      for (std::int32_t output_row = 0; output_row < shape.other_nodes(); ++output_row) {
        const std::int32_t node = shape.peer_node(at, output_row);
        EXPECT_NE(node, at);
        EXPECT_EQ(shape.peer_index(at, node), output_row);
        EXPECT_LT(shape.peer_index(node, at), shape.other_nodes());
      }
  }
}

} // namespace
} // namespace shmemctl::moe
