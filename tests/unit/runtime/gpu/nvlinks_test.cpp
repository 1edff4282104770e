// What NVLinks count while a point of `moe` runs, between processes: the counters of each GPU once,
// the same answer on all PEs.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "src/instruments/bench/moe/links.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/runtime/gpu/gpu_job.h"

namespace shmemctl::test {
namespace {

class MoeNvlinksOfJobs : public ::testing::Test {
protected:
  /// Two GPUs of two links each, as the fake driver has them; `moved_KiB` more on each counter.
  void write_nvml(std::uint64_t moved_KiB) const {
    std::string text;
    for (int gpu = 0; gpu < 2; ++gpu)
      text += fmt::format("gpu {0} 00000000:1{1}:00.0 GPU-{0} Fake GPU\nlinks {0} 0 2 2 -\n"
                          "counter {0} 0 {2} {3}\ncounter {0} 1 {2} {3}\n",
                          gpu, "AB"[gpu], 500 + moved_KiB * static_cast<unsigned>(gpu + 1),
                          900 + moved_KiB);
    folder_.write("nvml.txt", text);
  }
  /// The links of a point in which counters move by 10 KiB; as a report has them.
  std::function<std::string(Runtime&)> point(bool by_kernels, const std::string& library) const {
    return [this, by_kernels, library](Runtime& runtime) -> std::string {
      const bench::LinkMeasurement unmeasured;
      moe::LinkWatch watch(runtime, by_kernels, unmeasured, library);
      runtime.collectives().barrier(team_world);
      if (runtime.pe() == 0)
        write_nvml(10);
      runtime.collectives().barrier(team_world);
      return moe::nvlinks_json(watch.end().nvlinks).dump();
    };
  }
  std::vector<nlohmann::json> told(int n_pes, bool by_kernels = true,
                                   const std::string& library = SHMEMCTL_FAKE_NVML) {
    write_nvml(0);
    std::vector<nlohmann::json> all;
    for (const PeResult& result : run_fork_job(gpu_job(n_pes, point(by_kernels, library)))) {
      EXPECT_EQ(result.exit_code, 0) << result.text;
      all.push_back(nlohmann::json::parse(result.text, nullptr, false));
      EXPECT_EQ(all.back(), all.front()) << "all PEs are told the same";
    }
    return all;
  }

  TemporaryFolder folder_;
  SetVariable nvml_{"FAKE_NVML_CONFIG", folder_.path() + "/nvml.txt"};
  SetVariable strict_{"FAKE_CUDA_STRICT", "1"};
};

TEST_F(MoeNvlinksOfJobs, EachGpuIsCountedOnce) {
  const nlohmann::json gpus = told(3).at(0); // two PEs share a GPU
  ASSERT_EQ(gpus.size(), 2U);
  std::size_t ranks = 0;
  for (const nlohmann::json& gpu : gpus) {
    ranks += gpu.at("ranks").size();
    const std::uint64_t sent_KiB = gpu.at("gpu") == "0000:1a:00.0" ? 10 : 20;
    EXPECT_EQ(gpu.at("out_bytes"), 2 * sent_KiB * 1024) << gpu;
    EXPECT_EQ(gpu.at("in_bytes"), 2 * 10 * 1024) << gpu;
    ASSERT_EQ(gpu.at("links").size(), 2U);
    EXPECT_EQ(gpu.at("links").at(1).at("out_bytes"), sent_KiB * 1024);
  }
  EXPECT_EQ(ranks, 3U);
  EXPECT_NE(gpus[0].at("gpu"), gpus[1].at("gpu"));
}

TEST_F(MoeNvlinksOfJobs, WithoutNvmlThereIsTheReason) {
  const nlohmann::json gpus = told(2, true, "libshmemctl-none.so.1").at(0);
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_TRUE(gpus[1].at("out_bytes").is_null());
  EXPECT_NE(gpus[1].at("out_bytes_reason").get<std::string>().find("libshmemctl-none.so.1"),
            std::string::npos)
      << gpus;
}

TEST_F(MoeNvlinksOfJobs, AreNotReadWhereTheHostMovesRows) {
  EXPECT_EQ(told(2, false).at(0), nlohmann::json::array());
}

} // namespace
} // namespace shmemctl::test
