#include "src/bench/moe/gpu_far_latency.h"

#include "kernels/moe/cast.h"
#include "src/bench/moe/gpu_network_backend.h"

namespace shmemctl::moe {

FarLatencyLayout::FarLatencyLayout(const Setup& setup) : GpuLayout(setup) {
  const Shape& shape = setup.shape;
  const auto count = [](std::int32_t number) { return static_cast<std::size_t>(number); };
  const std::size_t tokens = count(shape.max_tokens), all_rows = count(shape.max_rows());
  const std::size_t of_row = count(moe::rows_of(shape, setup.combine == Combine::weighted));
  const std::size_t hidden = count(shape.hidden) * sizeof(std::uint16_t);
  const bool fp8 = setup.format == Format::fp8;

  row_words = add(4 * all_rows * sizeof(std::uint64_t));
  back_words = add(all_rows * of_row * sizeof(std::uint64_t));
  rows_out = add(2 * tokens * count(shape.value_bytes(setup.format)));
  records_out = add(2 * all_rows * count(RecordLayout(shape, scales_of(setup)).bytes()));
  back = add(all_rows * of_row * hidden);
  cast_rows = add(fp8 ? tokens * count(shape.hidden) : 0);
  cast_scales = add(fp8 ? tokens * count(shape.scales_per_row()) * sizeof(float) : 0);
  far_places = add(setup.by_expert ? all_rows * count(shape.top_k) * sizeof(std::int32_t) : 0);

  const std::string times_top_k = of_row > 1 ? " * top_k" : "";
  uses.push_back({"words behind rows", "ranks * max_tokens * (32 B + 8 B" + times_top_k + ")",
                  row_words.size_bytes + back_words.size_bytes});
  uses.push_back({"rows and records to send",
                  "2 * max_tokens * (hidden * bytes of a value + ranks * a record)",
                  rows_out.size_bytes + records_out.size_bytes});
  uses.push_back({"outputs that come back", "ranks * max_tokens" + times_top_k + " * hidden * 2 B",
                  back.size_bytes});
  if (setup.by_expert)
    uses.push_back({"places of packed rows", "(ranks + 1) * max_tokens * top_k * 4 B",
                    places.size_bytes + far_places.size_bytes});
}

namespace {

class FarLatencyGpuBackend : public NetworkGpuBackend {
public:
  FarLatencyGpuBackend(PeGpu& gpu, std::byte* memory, const Setup& setup, std::int32_t rank)
      : NetworkGpuBackend(gpu, memory, setup, rank), parts_(setup) {
    fill_sent({&parts_.rows_out, &parts_.records_out});
    poison_parts(FarLatencyGpuBackend::plan_parts());
  }
  std::vector<MemoryUse> memory() const override { return parts_.uses; }

private:
  void enqueue_dispatch(Halves halves) override {
    if (setup_.format == Format::fp8 && halves != Halves::receive)
      launched(launch_cast({setup_.shape.hidden, tokens(), at<std::uint16_t>(lies_.values),
                            at<std::uint8_t>(parts_.cast_rows), at<float>(parts_.cast_scales),
                            setup_.power_scales, sms(Direction::dispatch)},
                           stream()));
    launched(launch_far_latency_dispatch(gpu_.job(), far_dispatch(halves), calls_, stream()));
    count_dispatch(halves);
  }
  void enqueue_combine(Halves halves) override {
    launched(launch_far_latency_combine(gpu_.job(), far_combine(halves), calls_, stream()));
  }

  FarLatencyMemory far_memory() const {
    return {low_latency(),
            at<std::uint64_t>(parts_.row_words),
            at<std::uint64_t>(parts_.back_words),
            at<std::byte>(parts_.rows_out),
            at<std::byte>(parts_.records_out),
            at<std::byte>(parts_.back)};
  }
  FarLatencyDispatch far_dispatch(Halves halves) const {
    const GpuPart& from = setup_.format == Format::fp8 ? parts_.cast_rows : lies_.values;
    return {setup_.shape,
            record_scales(),
            far_memory(),
            tokens(),
            at<std::byte>(from),
            at<float>(parts_.cast_scales),
            at<std::int32_t>(lies_.experts),
            at<float>(lies_.weights),
            at<std::int32_t>(lies_.slots),
            at<std::int32_t>(lies_.counts),
            halves,
            sms(Direction::dispatch),
            patience_ns()};
  }
  FarLatencyCombine far_combine(Halves halves) const {
    return {setup_.shape,
            record_scales(),
            far_memory(),
            setup_.combine == Combine::weighted,
            tokens(),
            at<std::int32_t>(lies_.experts),
            at<float>(lies_.weights),
            at<std::int32_t>(lies_.slots),
            at<std::int32_t>(lies_.counts),
            at<std::uint16_t>(lies_.results),
            halves,
            sms(Direction::combine),
            patience_ns(),
            packed().places,
            packed().far_places};
  }
  PackedMemory packed() const override {
    if (!setup_.by_expert)
      return {};
    PackedMemory all = GpuBackend::packed();
    all.far_places = at<std::int32_t>(parts_.far_places);
    return all;
  }

  std::vector<const GpuPart*> written_parts() const override {
    std::vector<const GpuPart*> parts = GpuBackend::written_parts();
    parts.push_back(&parts_.back);
    return parts;
  }
  std::vector<const GpuPart*> plan_parts() const override {
    std::vector<const GpuPart*> parts = GpuBackend::plan_parts();
    if (setup_.by_expert)
      parts.push_back(&parts_.far_places);
    return parts;
  }
  std::vector<const GpuPart*> guarded_parts() const override {
    std::vector<const GpuPart*> parts = GpuBackend::guarded_parts();
    parts.insert(parts.end(), {&parts_.rows_out, &parts_.records_out});
    return parts;
  }

  const FarLatencyLayout parts_;
};

} // namespace

std::unique_ptr<Backend> make_far_latency_gpu_backend(PeGpu& gpu, std::byte* memory,
                                                      const Setup& setup, std::int32_t rank) {
  return std::make_unique<FarLatencyGpuBackend>(gpu, memory, setup, rank);
}

} // namespace shmemctl::moe
