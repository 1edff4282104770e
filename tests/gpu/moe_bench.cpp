// Times of dispatch and combine over settings: CUDA events around calls in a row, medians, the
// slower rank of each; every setting's last result verified. PEs are threads, GPUs in turn.
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "tests/gpu/moe_low_latency_rank.h"
#include "tests/gpu/moe_rank.h"
#include "tests/gpu/moe_routings.h"

namespace shmemctl::test {
namespace {

using moe::Format;
using moe::Tuning;

constexpr int repeats = 12;

/// Times of a call, in turn with all ranks: the median of the slowest rank's.
class Times {
public:
  explicit Times(int n_pes) : of_(static_cast<std::size_t>(n_pes)) {}

  double median_us(ThreadGpu& pe, const std::function<void()>& call) {
    return medians_us(pe, {call})[0];
  }
  /// Medians of several calls that are made in turn.
  std::vector<double> medians_us(ThreadGpu& pe, const std::vector<std::function<void()>>& calls) {
    const auto all = [&] {
      for (const std::function<void()>& call : calls)
        call();
    };
    std::vector<cudaEvent_t> events(repeats * calls.size() + 1);
    for (cudaEvent_t& event : events)
      cuda_must(cudaEventCreate(&event), "event");
    all();
    all();
    pe.synchronize();
    pe.barrier();
    all(); // takes up the ranks' skew
    cuda_must(cudaEventRecord(events[0], pe.stream), "event");
    for (std::size_t i = 1; i < events.size(); ++i) {
      calls[(i - 1) % calls.size()]();
      cuda_must(cudaEventRecord(events[i], pe.stream), "event");
    }
    pe.synchronize();
    std::vector<double>& mine = of_[static_cast<std::size_t>(pe.job.pe)];
    mine.clear();
    for (std::size_t i = 0; i + 1 < events.size(); ++i) {
      float ms = 0;
      cuda_must(cudaEventElapsedTime(&ms, events[i], events[i + 1]), "event");
      mine.push_back(static_cast<double>(ms) * 1000);
    }
    for (const cudaEvent_t event : events)
      cudaEventDestroy(event);
    pe.barrier();
    std::vector<std::vector<double>> slowest(calls.size());
    for (std::size_t i = 0; i < mine.size(); ++i) {
      double most = 0;
      for (const std::vector<double>& one : of_)
        most = std::max(most, one[i]);
      slowest[i % calls.size()].push_back(most);
    }
    pe.barrier();
    std::vector<double> medians;
    for (std::vector<double>& one : slowest) {
      std::sort(one.begin(), one.end());
      medians.push_back(one[one.size() / 2]);
    }
    return medians;
  }

private:
  std::vector<std::vector<double>> of_;
};

struct Setting {
  int warps, stages, kept;
};
std::vector<Setting> settings_of(Format format) {
  return format == Format::bf16 ? std::vector<Setting>{{7, 2, 1}, {5, 3, 2}, {3, 5, 2}, {15, 1, 0}}
                                : std::vector<Setting>{{14, 2, 1}, {9, 3, 2}, {7, 4, 2}};
}

class Bench {
public:
  Bench(MoeRank& rank, Times& times) : rank_(rank), times_(times) {}

  void notify() {
    const double us = times_.median_us(pe(), [&] { rank_.notify(); });
    std::string wrong = rank_.check_plan();
    if (pe().job.pe == 0)
      std::printf("notify %.1f us %s\n", us, wrong.c_str());
  }
  void dispatch(const Tuning& tuning, bool uncached = false) {
    if (!rank_.fits(tuning))
      return;
    const double us = times_.median_us(pe(), [&] {
      if (uncached)
        rank_.notify();
      rank_.dispatch(tuning);
    });
    rank_.poison();
    rank_.dispatch(tuning);
    std::string wrong = rank_.check_rows();
    if (wrong.empty() && !records_checked_)
      wrong = rank_.check_records();
    records_checked_ = true;
    print(uncached ? "notify+dispatch" : "dispatch", rank_.format(), tuning, 0, us, wrong);
  }
  /// One way of making a call.
  struct Way {
    std::string name;
    std::function<void()> call;
    std::function<std::string()> verify; ///< prepares, calls and looks: "" or what is wrong
  };
  /// Ways of making the same call, in turn, so that disturbances of the machine affect all of them;
  /// each one's result is verified.
  void compare(const char* what, const Tuning& tuning, const std::vector<Way>& ways) {
    std::vector<std::function<void()>> calls;
    for (const Way& way : ways)
      calls.push_back(way.call);
    const std::vector<double> us = times_.medians_us(pe(), calls);
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const std::string wrong = ways[i].verify();
      pe().barrier();
      print((std::string(what) + ", " + ways[i].name).c_str(),
            what[0] == 'c' ? Format::bf16 : rank_.format(), tuning, 0, us[i], wrong);
    }
  }
  Way way(const std::string& name, const Tuning& tuning, MoeRank::RowsAt rows_at, bool notify,
          bool after_notify) {
    const auto call = [this, tuning, rows_at, notify, after_notify] {
      if (notify)
        rank_.notify(nullptr, after_notify);
      rank_.dispatch(tuning, rows_at, after_notify);
    };
    return {name, call, [this, notify, call] {
              rank_.poison();
              if (notify)
                rank_.poison_plan();
              call();
              const std::string wrong = rank_.check_rows();
              return wrong.empty() ? rank_.check_records() : wrong;
            }};
  }
  /// Each new way beside its predecessor.
  void variants(const std::vector<int>& all_sms) {
    notify();
    const double us = times_.median_us(pe(), [&] { rank_.notify(nullptr, true); });
    const std::string wrong = rank_.check_plan();
    if (pe().job.pe == 0)
      std::printf("notify, counts first %.1f us %s\n", us, wrong.c_str());
    for (const int sms : all_sms)
      variants_of_dispatch(sms);
  }
  void variants_of_dispatch(int sms) {
    using RowsAt = MoeRank::RowsAt;
    const Tuning own = moe::dispatch_tuning(rank_.dispatch_arguments({}), sms);
    std::vector<Way> ways{way("in order", own, RowsAt::in_order, false, false)};
    for (const Setting& one : settings_of(rank_.format())) {
      const Tuning tuning{sms, one.warps, one.stages, one.kept};
      if (rank_.fits(tuning))
        ways.push_back(way("in place, warps " + std::to_string(one.warps) + " stages " +
                               std::to_string(one.stages),
                           tuning, RowsAt::in_place, false, false));
    }
    compare("dispatch", own, ways);
    compare("notify+dispatch", own,
            {way("in order", own, RowsAt::in_order, true, false),
             way("in order, after notify", own, RowsAt::in_order, true, true),
             way("in place", own, RowsAt::in_place, true, false),
             way("in place, after notify", own, RowsAt::in_place, true, true)});
  }
  void combine(const Tuning& tuning, std::int32_t chunk_bytes) {
    const double us = times_.median_us(pe(), [&] { rank_.combine(tuning, chunk_bytes); });
    rank_.poison_results();
    rank_.combine(tuning, chunk_bytes);
    print("combine", Format::bf16, tuning, chunk_bytes, us, rank_.check_combined());
  }
  void prepare_combine() {
    rank_.poison();
    rank_.dispatch({24, 7, 2, 1});
    rank_.experts();
    pe().synchronize();
    pe().barrier();
  }

private:
  ThreadGpu& pe() { return rank_.pe(); }
  void print(const char* what, Format format, const Tuning& tuning, std::int32_t chunk_bytes,
             double us, const std::string& wrong) {
    const double row = rank_.shape().row_bytes(format);
    const double logical = rank_.expected_rows() * row / us / 1e3;
    const double wire = static_cast<double>(rank_.remote_rows()) * row / us / 1e3;
    if (pe().job.pe == 0 || !wrong.empty())
      std::printf(
          "%s %s sms %d warps %d stages %d kept %d chunk %d self %d: %.1f us logical %.0f wire "
          "%.0f GB/s %s\n",
          what, format == Format::bf16 ? "bf16" : "fp8", tuning.sms, tuning.warps, tuning.stages,
          tuning.kept, chunk_bytes,
          what[0] == 'c' ? 0 : moe::blocks_for_self(tuning, rank_.shape().n_ranks), us, logical,
          wire, wrong.empty() ? "verified" : wrong.c_str());
    std::fflush(stdout);
  }

  MoeRank& rank_;
  Times& times_;
  bool records_checked_ = false;
};

void sweep(MoeRank& rank, Times& times, const std::vector<int>& sms) {
  Bench bench(rank, times);
  bench.notify();
  const bool is_bf16 = rank.format() == Format::bf16;
  const std::vector<Setting> settings = settings_of(rank.format());
  for (const int n : sms)
    for (const Setting& one : settings) {
      bench.dispatch({n, one.warps, one.stages, one.kept});
      if (&one == &settings[0])
        for (const int self : {0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 12, 16, 20, 24, 32})
          if (self <= n / 2)
            bench.dispatch({n, one.warps, one.stages, one.kept, self});
    }
  bench.dispatch({24, 7, 2, 1}, true);
  if (!is_bf16)
    return;
  bench.prepare_combine();
  for (const int n : sms)
    for (const std::int32_t chunk : {14336, 7168, 3584, 1792})
      for (const int warps : {2, 4, 7, 14}) {
        const int stages = 224000 / (chunk * rank.shape().n_ranks + 12) / warps;
        if (stages > 0)
          bench.combine({n, warps, stages, 0}, chunk);
      }
}

/// Every token goes to the next rank, and one in `of_self` to its own too (0: none): with 3 and two
/// ranks, the traffic of one of four ranks, a quarter of it to itself.
moe::Routing lopsided_routing(const moe::Shape& shape, std::int32_t tokens, int of_self) {
  moe::Routing routing(static_cast<std::size_t>(shape.n_ranks));
  for (std::int32_t rank = 0; rank < shape.n_ranks; ++rank) {
    moe::RankRouting& sent = routing[static_cast<std::size_t>(rank)];
    sent.top_k = shape.top_k;
    const std::int32_t next = shape.first_expert((rank + 1) % shape.n_ranks);
    for (std::int32_t token = 0; token < tokens; ++token)
      for (std::int32_t k = 0; k < shape.top_k; ++k)
        sent.experts.push_back(
            (k == 0 && of_self > 0 && token % of_self == 0 ? shape.first_expert(rank) : next) + k);
  }
  return routing;
}

int run(int n_pes, std::int32_t tokens, const std::vector<int>& sms, moe::Scales format,
        const std::string& routed, bool variants) {
  moe::Shape shape;
  shape.n_ranks = n_pes;
  shape.n_experts = 256;
  shape.top_k = 8;
  shape.hidden = 7168;
  shape.max_tokens = tokens;
  const moe::Routing routing = routed == "remote"    ? lopsided_routing(shape, tokens, 0)
                               : routed == "quarter" ? lopsided_routing(shape, tokens, 3)
                                                     : uniform_routing(shape, tokens, 1);
  Times times(n_pes);
  ThreadGpus gpus(n_pes);
  const std::string problem = gpus.run(MoeRank::heap_bytes(shape, format), [&](ThreadGpu& pe) {
    MoeRank rank(pe, shape, format, routing);
    pe.barrier();
    if (variants)
      Bench(rank, times).variants(sms);
    else
      sweep(rank, times, sms);
  });
  if (!problem.empty())
    std::printf("FAILED: %s\n", problem.c_str());
  return problem.empty() ? 0 : 1;
}

/// The two halves of each call, with other work between, in which rows arrive.
void phases(MoeLatencyRank& rank, Times& times, const moe::Tuning& tuning, std::int32_t chunk) {
  GpuArray<std::uint8_t> elsewhere(512u << 20);
  const auto other_work = [&] {
    cuda_must(cudaMemsetAsync(elsewhere.data(), 0, elsewhere.count(), rank.pe().stream), "fill");
  };
  const std::vector<double> us = times.medians_us(
      rank.pe(), {[&] { rank.dispatch(moe::Phases::send, tuning.sms); }, other_work,
                  [&] { rank.dispatch(moe::Phases::receive, tuning.sms); },
                  [&] { rank.combine(tuning, chunk, moe::Phases::send); }, other_work,
                  [&] { rank.combine(tuning, chunk, moe::Phases::receive); }});
  if (rank.pe().job.pe == 0)
    std::printf("low latency, %d tokens, halves: dispatch %.1f + %.1f us, combine %.1f + %.1f us\n",
                rank.tokens(), us[0], us[2], us[3], us[5]);
  std::fflush(stdout);
}

void latency(MoeLatencyRank& rank, Times& times, moe::Combine combine) {
  const char* const name = combine == moe::Combine::weighted ? "weighted" : "partial";
  const auto say = [&](const std::string& what, double us, const std::string& wrong) {
    if (rank.pe().job.pe == 0 || !wrong.empty())
      std::printf("low latency %s, %d tokens, %s: %.1f us %s\n", name, rank.tokens(), what.c_str(),
                  us, wrong.empty() ? "verified" : wrong.c_str());
    std::fflush(stdout);
  };
  for (const int sms : {132, 64, 32}) {
    const int most = sms * rank.pe().device_share() > 132 ? 132 / rank.pe().device_share() : sms;
    const auto dispatch = [&] { // each one is given up
      rank.launch_next(moe::LowLatencyCalls::Step::none);
      rank.dispatch(moe::Phases::both, most);
    };
    const double us = times.median_us(rank.pe(), dispatch);
    rank.poison();
    dispatch();
    say("dispatch sms " + std::to_string(most), us, rank.check_rows());
  }
  rank.experts();
  rank.pe().synchronize();
  rank.pe().barrier();
  rank.launch_next(moe::LowLatencyCalls::Step::none);
  const int rows = combine == moe::Combine::weighted ? rank.shape().top_k : rank.shape().n_ranks;
  const int sms = 132 / rank.pe().device_share();
  for (const int chunk : {14336, 7168, 3584, 1792, 1024})
    for (const int warps : {2, 4, 8, 16})
      for (const int stages : {1, 2, 4}) {
        if (warps * stages * (chunk * rows + 16 + rows * 4) > 227 * 1024)
          continue;
        const moe::Tuning tuning{sms, warps, stages};
        // a reduction of the same outputs again, which nobody writes meanwhile
        const auto combine = [&] {
          rank.launch_next(moe::LowLatencyCalls::Step::received);
          rank.combine(tuning, chunk);
        };
        const double us = times.median_us(rank.pe(), combine);
        rank.poison_results();
        combine();
        say("combine sms " + std::to_string(sms) + " warps " + std::to_string(warps) + " stages " +
                std::to_string(stages) + " chunk " + std::to_string(chunk),
            us, rank.check_combined());
      }
  const moe::Tuning tuning{sms, 8, 1};
  const auto pair = [&] {
    rank.dispatch(moe::Phases::both, sms);
    rank.combine(tuning, 1792);
  };
  const double both = times.median_us(rank.pe(), pair);
  // Once more with experts between: these pairs left what those had made of the same rows.
  rank.poison();
  rank.dispatch(moe::Phases::both, sms);
  rank.experts();
  rank.poison_results();
  rank.combine(tuning, 1792);
  const std::string wrong_rows = rank.check_rows();
  say("dispatch + combine", both, wrong_rows.empty() ? rank.check_combined() : wrong_rows);
  rank.pe().barrier();
  phases(rank, times, tuning, 1024);
}

int run_latency(int n_pes, std::int32_t tokens, moe::Scales scales, moe::Combine combine) {
  moe::Shape shape;
  shape.n_ranks = n_pes;
  shape.n_experts = 256;
  shape.top_k = 8;
  shape.hidden = 7168;
  shape.max_tokens = 128;
  const moe::Routing routing = uniform_routing(shape, tokens, 1);
  Times times(n_pes);
  ThreadGpus gpus(n_pes);
  const std::string problem =
      gpus.run(MoeLatencyRank::heap_bytes(shape, scales, combine), [&](ThreadGpu& pe) {
        MoeLatencyRank rank(pe, shape, scales, routing, combine);
        pe.barrier();
        latency(rank, times, combine);
      });
  if (!problem.empty())
    std::printf("FAILED: %s\n", problem.c_str());
  return problem.empty() ? 0 : 1;
}

} // namespace
} // namespace shmemctl::test

/// Low latency if no SMS are given.
int main(int count, char** words) {
  using namespace shmemctl;
  if (count < 5) {
    std::printf("moe_bench RANKS TOKENS bf16|fp8|ue8m0 [remote|quarter] [variants] SMS...\n"
                "moe_bench RANKS TOKENS bf16|fp8|ue8m0 weighted|partial\n");
    return 2;
  }
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  const std::string format = words[3], how = words[4];
  const moe::Scales scales = format == "fp8"     ? moe::Scales::float32
                             : format == "ue8m0" ? moe::Scales::ue8m0
                                                 : moe::Scales::none;
  if (how == "weighted" || how == "partial")
    return test::run_latency(std::atoi(words[1]), std::atoi(words[2]), scales,
                             how == "weighted" ? moe::Combine::weighted : moe::Combine::partial);
  std::vector<int> sms;
  const bool routed = how == "remote" || how == "quarter";
  int next = routed ? 5 : 4;
  const bool variants = next < count && std::string(words[next]) == "variants";
  for (next += variants ? 1 : 0; next < count; ++next)
    sms.push_back(std::atoi(words[next]));
  return test::run(std::atoi(words[1]), std::atoi(words[2]), sms, scales, how, variants);
}
