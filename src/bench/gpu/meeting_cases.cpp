// Barrier and sync of kernels.
#include "kernels/bench/meeting.h"
#include "src/bench/cases/lists.h"
#include "src/bench/gpu/gpu_case.h"
#include "src/bench/gpu/lists.h"

namespace shmemctl::bench {

namespace {

template <MeetingKernel kernel>
class GpuMeeting final : public GpuCase {
public:
  using GpuCase::GpuCase;

  std::size_t bytes_for(int n_pes) const override {
    return static_cast<std::size_t>(n_pes) * sizeof(std::uint64_t);
  }
  bool measures() const override { return true; }
  std::uint64_t bytes_per_iteration() const override { return 0; }

  /// Makes more calls. Before each a PE tells every other one that it comes; whoever leaves looks
  /// whether all have come.
  std::optional<WrongByte> verify(std::uint64_t) override {
    constexpr std::uint64_t calls = 200;
    run("watching calls", point().launch.scope, 1, point().launch.threads,
        [&](const KernelLaunch& how) {
          return launch_meeting(how, arguments(0, calls, true));
        });
    if (control().wrong_at == UINT64_MAX)
      return std::nullopt;
    return WrongByte{pe(), control().wrong_at, control().expected, control().found,
                     "call of PE " + std::to_string(control().wrong_at / sizeof(std::uint64_t)) +
                         " when this PE left it"};
  }

protected:
  void set_up() override {}
  std::string launch(const KernelLaunch& how, std::uint64_t first, std::uint64_t count) override {
    return launch_meeting(how, arguments(first, count, false));
  }

private:
  MeetingArguments arguments(std::uint64_t first, std::uint64_t count, bool looks) const {
    return {kernel, first, count, reinterpret_cast<std::uint64_t*>(memory()), looks};
  }
};

CaseInfo info_of(std::string name, std::string measures, const std::string& how) {
  CaseInfo info;
  info.name = std::move(name);
  info.group = "synchronisation";
  info.metric = Metric::latency;
  info.measures = std::move(measures);
  info.how = how + " Verified with 200 more calls: nobody leaves one before all have come to it.";
  info.sized = false;
  info.traffics = {Traffic::collective};
  info.min_pes = 1;
  info.initiator = Initiator::gpu;
  info.launch = one_caller(CallScope::thread);
  return info;
}

} // namespace

std::vector<CaseEntry> gpu_meeting_cases() {
  return {entry_of<GpuMeeting<MeetingKernel::barrier>>(
              info_of("barrier", "time of a barrier of all PEs",
                      "One barrier after the other, by one thread, warp or block of each PE.")),
          entry_of<GpuMeeting<MeetingKernel::sync>>(
              info_of("sync", "time of a sync of all PEs",
                      "One sync after the other, by one thread, warp or block of each PE."))};
}

} // namespace shmemctl::bench
