#include "src/runtime/runtime.h"

#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <set>
#include <thread>

#include "src/base/log.h"
#include "src/base/text.h"
#include "src/runtime/transport_choice.h"
#include "tests/support/fork_job.h"
#include "tests/support/no_transport.h"
#include "transports/absent.h"
#include "transports/registry.h"

namespace shmemctl {
namespace {

using test::ForkJob;
using test::PeResult;
using test::run_fork_job;

void expect_all_well(const std::vector<PeResult>& results) {
  for (std::size_t pe = 0; pe < results.size(); ++pe)
    EXPECT_EQ(results[pe].exit_code, 0) << "PE " << pe << ": " << results[pe].text;
}

TEST(Runtime, OnePeWithoutALauncher) {
  const Environment environment;
  const Options options(environment);
  RuntimeRequest request;
  request.options = &options;
  Runtime runtime(std::move(request));
  EXPECT_EQ(runtime.pe(), 0);
  EXPECT_EQ(runtime.n_pes(), 1);
  auto* word = static_cast<std::uint64_t*>(runtime.allocate(8));
  ASSERT_NE(word, nullptr);
  const std::uint64_t value = 42;
  runtime.rma().put(word, &value, sizeof value, 0);
  EXPECT_EQ(*word, 42u);
  runtime.free(word);
  runtime.finish();
}

TEST(Runtime, PhasesAreNamedInTheirOrder) {
  expect_all_well(
      run_fork_job({.n_pes = 2, .body = [](Runtime& runtime) {
                      std::string names;
                      for (const PhaseTime& time : runtime.phase_times())
                        names += time.name + " ";
                      const std::string expected =
                          "options static-data bootstrap hosts failure-detector placement "
                          "devices heap transports transport-map nics connections "
                          "state teams barrier ";
                      if (names != expected)
                        throw Error(ExitCode::finding, "phases", "compare", names, "-");
                      return std::string();
                    }}));
}

/// Builds of one version may differ in their transports. PEs that have one would wait in its
/// collective calls for a PE that does not.
TEST(Runtime, ATransportThatOnePeLacksIsNotUsed) {
  ForkJob job{.n_pes = 3};
  job.environment = {{"SHMEMCTL_TRANSPORT", "ibdevx,shm"},
                     {"SHMEMCTL_MLX5_DEVICE", "emulated"},
                     {"SHMEMCTL_EMULATED_HCA_OVER", "shm"},
                     {"SHMEMCTL_TIMEOUT", "20"}};
  job.body = [](Runtime& runtime) {
    auto* word = static_cast<std::uint64_t*>(runtime.allocate(8));
    const std::uint64_t value = 42;
    for (int pe = 0; pe < runtime.n_pes(); ++pe)
      runtime.rma().put(word, &value, sizeof value, pe);
    runtime.free(word);
    return runtime.transports()[0].reach[0].reason + "; in use: " +
           runtime.transports()[static_cast<std::size_t>(runtime.transport_index_by_pe()[0])]
               .transport->name();
  };
  for (const PeResult& result : run_fork_job(job))
    EXPECT_TRUE(result.exit_code == 0 && result.text.ends_with("in use: ibdevx")) << result.text;
  job.make_transport = [](const std::string& name, const TransportSetup& setup) {
    TransportRow row = *find_transport(name);
    row.package = "libof-nobody-dev";
    row.built = false;
    return setup.pe == 1 && name == "ibdevx" ? not_built(row) : make_transport(name, setup);
  };
  for (const PeResult& result : run_fork_job(job)) {
    EXPECT_EQ(result.exit_code, 0) << result.text;
    EXPECT_EQ(result.text, "PE 1 says: this build has no ibdevx: the headers of libof-nobody-dev "
                           "were missing; in use: shm");
  }
  // Nobody may use it. The fix fits both a build without it and one that could not be opened.
  job.body = [](Runtime& runtime) {
    try {
      runtime.transports()[0].transport->quiet(0);
      runtime.transports()[0].transport->get(0, nullptr, {}, 8, true);
    } catch (const Error& error) {
      return error.fix();
    }
    return std::string("no error");
  };
  for (const PeResult& result : run_fork_job(job))
    EXPECT_EQ(result.text,
              "run the same build on all hosts, and shmemctl doctor on that PE's host");
}

// Also in a build without CUDA.
TEST(Runtime, WithoutAGpuThereIsAReasonOrAnError) {
  ForkJob job{.n_pes = 2, .gpu = GpuUse::if_available};
  job.environment = {{"SHMEMCTL_CUDA_LIBRARY", "libcuda-of-nobody.so.1"}};
  job.body = [](Runtime& runtime) {
    return runtime.gpu() ? std::string("a GPU") : runtime.no_gpu_reason();
  };
  std::string reason;
  for (const PeResult& result : run_fork_job(job)) {
    EXPECT_EQ(result.exit_code, 0) << result.text;
    reason = result.text;
    EXPECT_NE(reason, "");
    EXPECT_NE(reason, "a GPU");
  }
  job.gpu = GpuUse::required;
  for (const PeResult& result : run_fork_job(job)) {
    EXPECT_EQ(result.exit_code, 3) << result.text;
    EXPECT_NE(result.text.find("in phase gpu"), std::string::npos) << result.text;
    EXPECT_NE(result.text.find(reason), std::string::npos) << result.text;
  }
}

/// Each PE writes its number into every other PE's row.
std::string write_to_all(Runtime& runtime) {
  const auto n_pes = static_cast<std::size_t>(runtime.n_pes());
  auto* row = static_cast<std::uint64_t*>(runtime.allocate(n_pes * 8));
  std::memset(row, 0, n_pes * 8);
  runtime.teams().sync(team_world);
  const auto mine = static_cast<std::uint64_t>(runtime.pe() + 1);
  for (int pe = 0; pe < runtime.n_pes(); ++pe)
    runtime.rma().put(row + runtime.pe(), &mine, sizeof mine, pe);
  runtime.collectives().barrier(team_world);
  for (std::size_t pe = 0; pe < n_pes; ++pe)
    if (row[pe] != pe + 1)
      throw Error(ExitCode::finding, "row", "compare", "PE " + std::to_string(pe), "-");
  runtime.free(row);
  return {};
}

TEST(Runtime, EveryPeReachesEveryPe) {
  for (const int n_pes : {2, 3, 7, 16})
    expect_all_well(run_fork_job({.n_pes = n_pes, .body = write_to_all}));
}

TEST(Runtime, TheHeapGrowsInPlace) {
  ForkJob job;
  job.environment = {{"SHMEMCTL_HEAP_CHUNK", "4M"}, {"SHMEMCTL_SYMMETRIC_SIZE", "64M"}};
  job.body = [](Runtime& runtime) -> std::string {
    std::vector<std::uint64_t*> blocks;
    while (void* block = runtime.allocate(6 << 20))
      blocks.push_back(static_cast<std::uint64_t*>(block));
    if (blocks.size() != 10)
      return "blocks: " + std::to_string(blocks.size());
    const int peer = 1 - runtime.pe();
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const std::uint64_t value = i * 100 + static_cast<std::uint64_t>(runtime.pe());
      runtime.rma().put(blocks[i] + 700000, &value, 8, peer);
    }
    runtime.collectives().barrier(team_world);
    for (std::size_t i = 0; i < blocks.size(); ++i)
      if (blocks[i][700000] != i * 100 + static_cast<std::uint64_t>(peer))
        return "block " + std::to_string(i);
    for (std::uint64_t* block : blocks)
      runtime.free(block);
    return {};
  };
  for (const PeResult& result : run_fork_job(job)) {
    EXPECT_EQ(result.exit_code, 0) << result.text;
    EXPECT_EQ(result.text, "");
  }
}

TEST(Runtime, TheMirrorIsTheMaster) {
  expect_all_well(run_fork_job({.n_pes = 3, .body = [](Runtime& runtime) -> std::string {
                                  runtime.free(runtime.allocate(100 << 20)); // grows the heap
                                  const State& master = runtime.state();
                                  const RegionState& internal = master.regions[region::internal];
                                  const auto* mirror = reinterpret_cast<const std::byte*>(
                                      internal.base + internal_layout::state_offset_bytes);
                                  if (std::memcmp(mirror, &master, master.size_bytes) != 0)
                                    throw Error(ExitCode::finding, "mirror", "compare", "", "-");
                                  // much less than the 32 MiB reserved
                                  if (internal.size_bytes > (18u << 20))
                                    throw Error(ExitCode::finding, "internal region", "commit", "",
                                                "-");
                                  if (master.regions[region::heap].size_bytes < (100u << 20))
                                    throw Error(ExitCode::finding, "heap size", "compare", "", "-");
                                  return {};
                                }}));
}

/// A job of one in this process.
std::unique_ptr<Runtime> run_alone(const Options& options) {
  RuntimeRequest request;
  request.options = &options;
  return std::make_unique<Runtime>(std::move(request));
}

TEST(Runtime, TheHeapMayGrowWhileTeamsAreCreatedAndDestroyed) {
  const Options options(
      Environment{{"SHMEMCTL_HEAP_CHUNK", "2M"}, {"SHMEMCTL_SYMMETRIC_SIZE", "128M"}});
  const auto runtime = run_alone(options);
  constexpr int growths = 40, teams = 2000;
  // The world's team is used by allocate().
  const TeamId parent = *runtime->teams().split_strided(team_world, 0, 1, 1);
  const std::uint64_t before = runtime->state().generation;
  std::thread other([&runtime, parent] {
    for (int i = 0; i < teams; ++i)
      runtime->teams().destroy(*runtime->teams().split_strided(parent, 0, 1, 1));
  });
  for (int i = 0; i < growths; ++i)
    runtime->allocate(2 << 20);
  other.join();
  EXPECT_EQ(runtime->state().generation, before + growths + 2 * teams);
  runtime->finish();
}

TEST(Runtime, WarningsOfTheHeapNameThePe) {
  const Options options(Environment{});
  const auto runtime = run_alone(options);
  testing::internal::CaptureStderr();
  int mine = 0;
  runtime->free(&mine);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("(PE 0): it is not in the symmetric heap"), std::string::npos) << said;
  runtime->finish();
}

TEST(Runtime, TheChoiceOfANumaNodeIsSaid) {
  configure_log(LogLevel::info, "memory");
  testing::internal::CaptureStderr();
  const Options options(Environment{});
  run_alone(options)->finish();
  const std::string said = testing::internal::GetCapturedStderr();
  configure_log(LogLevel::warning);
  EXPECT_NE(said.find("PE 0: the heap prefers "), std::string::npos) << said;
}

TEST(Runtime, VirtualNodesDoNotShareMemory) {
  ForkJob job{.n_pes = 4,
              .n_nodes = 2,
              .environment = {{"SHMEMCTL_REMOTE_TRANSPORT", "none"}},
              .require_reach = false};
  job.body = [](Runtime& runtime) {
    std::string ways;
    for (const int way : runtime.transport_index_by_pe())
      ways += way < 0 ? '.' : '+';
    return ways + " " + std::to_string(runtime.placement().n_nodes());
  };
  const std::vector<PeResult> results = run_fork_job(job);
  expect_all_well(results);
  EXPECT_EQ(results[0].text, "++.. 2");
  EXPECT_EQ(results[3].text, "..++ 2");
}

using Reaches = std::function<bool(int pe, int peer)>;

std::string connected; ///< transports that this process asked to connect

/// Reaches the PEs it is given, and fails in connect(), where the job ends.
class ClaimingTransport final : public test::NoTransport {
public:
  ClaimingTransport(std::string name, Reaches reaches)
      : name_(std::move(name)), reaches_(std::move(reaches)) {}
  const char* name() const override { return name_.c_str(); }
  std::string local_info() override { return name_; }
  Reach reach(const PeerLocation& me, const PeerLocation& peer) const override {
    return reaches_(me.pe, peer.pe) ? Reach{can_put | can_get | can_atomics | can_put_signal, "way"}
                                    : Reach{0, "no device for " + name_};
  }
  void connect(const std::vector<PeerLocation>&, Exchange&, const Deadline&) override {
    connected += name_ + " ";
    throw Error(ExitCode::unavailable, name_, "connect", "this is as far as it goes", "no matter");
  }

private:
  std::string name_;
  Reaches reaches_;
};

bool all_pairs(int, int) {
  return true;
}
bool no_pair(int, int) {
  return false;
}

/// A job of 4 PEs on 2 nodes that has these transports beside shm.
/// @param broken_on a PE where libfabric cannot be opened
ForkJob job_with(const std::map<std::string, Reaches>& there, const Environment& environment = {},
                 int broken_on = -1) {
  ForkJob job{.n_pes = 4, .n_nodes = 2, .environment = environment};
  job.make_transport = [there,
                        broken_on](const std::string& name,
                                   const TransportSetup& setup) -> std::unique_ptr<Transport> {
    if (name == "shm")
      return make_transport(name, setup);
    if (name == "libfabric" && setup.pe == broken_on)
      throw Error(ExitCode::unavailable, name, "open", "it is broken here", "install it again");
    return std::make_unique<ClaimingTransport>(name, there.at(name));
  };
  job.after = [] { return "\nconnected: " + connected + "\n"; };
  return job;
}

void expect_everywhere(const ForkJob& job, const std::vector<std::string>& parts) {
  const std::vector<PeResult> results = run_fork_job(job);
  for (std::size_t pe = 0; pe < results.size(); ++pe)
    for (const std::string& part : parts)
      EXPECT_NE(results[pe].text.find(part), std::string::npos)
          << "PE " << pe << ", \"" << part << "\": " << results[pe].text;
}

/// Without RDMA a job over hosts ended; a single pair without it is as bad, and all PEs choose
/// alike.
TEST(Runtime, TheFirstTransportThatReachesAllIsChosenByAll) {
  expect_everywhere(job_with({{"ibrc", all_pairs}}), {"ibrc in phase connections ("});
  expect_everywhere(job_with({{"ibrc", no_pair}, {"libfabric", all_pairs}}),
                    {"libfabric in phase connections ("});
  const auto all_but_one = [](int pe, int peer) { return pe != 3 || peer != 0; };
  expect_everywhere(job_with({{"ibrc", all_but_one}, {"libfabric", all_pairs}}),
                    {"libfabric in phase connections ("});
  expect_everywhere(
      job_with({{"ibrc", no_pair}, {"libfabric", all_pairs}, {"ucx", all_pairs}}, {}, 2),
      {"ucx in phase connections ("});
}

TEST(Runtime, WithoutAnyTransportAllReasonsAreSaid) {
  for (const PeResult& result : run_fork_job(
           job_with({{"ibrc", no_pair}, {"libfabric", no_pair}, {"ucx", no_pair}}, {}, 1))) {
    EXPECT_EQ(result.exit_code, 3);
    for (const char* part : {"find a transport", "transport-map", "no device for ibrc",
                             "it is broken here", "no device for ucx"})
      EXPECT_NE(result.text.find(part), std::string::npos) << part << ": " << result.text;
  }
}

/// The user's own choice is not replaced; the error suggests what would work.
TEST(Runtime, ANamedTransportThatDoesNotWorkFailsWithOneThatWould) {
  const std::map<std::string, Reaches> there = {
      {"ibrc", no_pair}, {"libfabric", no_pair}, {"ucx", all_pairs}};
  expect_everywhere(job_with(there, {{"SHMEMCTL_REMOTE_TRANSPORT", "ibrc"}}),
                    {"find a transport", "no device for ibrc",
                     "set --remote-transport ucx, which reaches all pairs", "connected: \n"});
  expect_everywhere(job_with(there, {{"SHMEMCTL_TRANSPORT", "shm,ibrc"}}),
                    {"find a transport", "set --transport shm,ucx, which reaches all pairs"});
  expect_everywhere(job_with({{"ibrc", no_pair}, {"libfabric", all_pairs}, {"ucx", all_pairs}},
                             {{"SHMEMCTL_REMOTE_TRANSPORT", "ibrc"}}),
                    {"set --remote-transport libfabric, which reaches all pairs; so does ucx"});
}

// Before any memory is created, and without waiting for a neighbour.
TEST(Runtime, EveryOptionIsCheckedInTheFirstPhase) {
  for (const char* name : {"SHMEMCTL_SYMMETRIC_SIZE", "SHMEMCTL_INIT_MODE", "SHMEMCTL_POLICY",
                           "SHMEMCTL_PES_PER_NODE"}) {
    ForkJob job{.n_pes = 2};
    job.environment = {{name, "nonsense"}};
    for (const PeResult& result : run_fork_job(job)) {
      EXPECT_EQ(result.exit_code, 2) << result.text;
      EXPECT_NE(result.text.find(std::string(name) + "=nonsense in phase options"),
                std::string::npos)
          << result.text;
    }
  }
}

/// What NVSHMEM makes of it depends on IBGDA, so the phase that opens transports judges it.
TEST(Runtime, ARemoteTransportThatNvshmemDoesNotKnowIsRefused) {
  ForkJob job{.n_pes = 2};
  job.environment = {{"NVSHMEM_REMOTE_TRANSPORT", "nonsense"}};
  for (const PeResult& result : run_fork_job(job)) {
    EXPECT_EQ(result.exit_code, 2) << result.text;
    EXPECT_NE(result.text.find("NVSHMEM_REMOTE_TRANSPORT=nonsense is not a transport"),
              std::string::npos)
        << result.text;
  }
}

TEST(Runtime, OneWorldPerLocalRank) {
  ForkJob job{.n_pes = 6, .n_nodes = 2, .require_reach = false};
  job.environment = {{"SHMEMCTL_INIT_MODE", "per-local-rank"},
                     {"SHMEMCTL_REMOTE_TRANSPORT", "none"}};
  job.body = [](Runtime& runtime) {
    return std::to_string(runtime.pe()) + "/" + std::to_string(runtime.n_pes());
  };
  const std::vector<PeResult> results = run_fork_job(job);
  expect_all_well(results);
  for (std::size_t pe = 0; pe < 6; ++pe)
    EXPECT_EQ(results[pe].text, std::to_string(pe / 3) + "/2");
}

TEST(Runtime, LowLatencyModeHasATeamForEachLocalRank) {
  ForkJob job{.n_pes = 4};
  job.environment = {{"SHMEMCTL_INIT_MODE", "low-latency"}};
  job.body = [](Runtime& runtime) {
    return std::to_string(runtime.teams().my_pe(runtime.rail_team())) + "/" +
           std::to_string(runtime.teams().n_pes(runtime.rail_team()));
  };
  const std::vector<PeResult> results = run_fork_job(job);
  expect_all_well(results);
  for (const PeResult& result : results)
    EXPECT_EQ(result.text, "0/1"); // one node: every PE is alone on its rail
}

TEST(Runtime, AnErrorOfOnePeReachesAll) {
  ForkJob job{.n_pes = 5};
  job.environment = {{"SHMEMCTL_TIMEOUT", "200"}};
  job.body = [](Runtime& runtime) -> std::string {
    if (runtime.pe() == 3)
      throw Error(ExitCode::unavailable, "gadget", "turn on", "no power", "plug it in");
    runtime.collectives().barrier(team_world);
    return "passed the barrier";
  };
  const auto start = std::chrono::steady_clock::now();
  for (const PeResult& result : run_fork_job(job)) {
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_NE(result.text.find("gadget"), std::string::npos) << result.text;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
}

void expect_named_by_all(const ForkJob& job, int exit_code, const std::vector<std::string>& parts) {
  const std::vector<PeResult> results = run_fork_job(job);
  for (std::size_t pe = 0; pe < results.size(); ++pe) {
    EXPECT_EQ(results[pe].exit_code, exit_code) << "PE " << pe << ": " << results[pe].text;
    for (const std::string& part : parts)
      EXPECT_NE(results[pe].text.find(part), std::string::npos)
          << "PE " << pe << ", \"" << part << "\": " << results[pe].text;
  }
}

/// A PE that ended at once was a lost PE to the others.
TEST(Runtime, AnErrorBeforeTheFailureDetectorReachesAll) {
  for (const char* phase : {"hosts", "failure-detector"}) {
    ForkJob job{.n_pes = 5};
    job.environment = {{"SHMEMCTL_FAULT", std::string("error:2:") + phase}};
    expect_named_by_all(job, 3,
                        {"this PE was asked to fail", "PE 2", std::string("in phase ") + phase});
  }
  ForkJob job{.n_pes = 3};
  job.of_pe = [](int pe, Environment& environment) {
    if (pe == 1)
      environment[local_variables::node] = "mars";
  };
  expect_named_by_all(job, 2, {"\"mars\" is not the number of a virtual node", "PE 1"});
}

// They wait in the bootstrap, whose connections end: an effect, whatever its text.
TEST(Runtime, AnErrorTakesPrecedenceOverClosedConnections) {
  ForkJob job{.n_pes = 5};
  job.body = [](Runtime& runtime) -> std::string {
    if (runtime.pe() == 3)
      throw Error(ExitCode::finding, "gadget", "turn on", "no power", "plug it in");
    runtime.gather_text("here");
    return "gathered";
  };
  for (const PeResult& result : run_fork_job(job)) {
    EXPECT_EQ(result.exit_code, 1) << result.text;
    EXPECT_NE(result.text.find("gadget"), std::string::npos) << result.text;
  }
}

TEST(Runtime, CheckedHeapsNameThePeThatDiffers) {
  ForkJob job{.n_pes = 3};
  job.environment = {{"SHMEMCTL_CHECK", "1"}};
  job.body = [](Runtime& runtime) {
    runtime.allocate(runtime.pe() == 2 ? 128 : 64);
    return std::string();
  };
  for (const PeResult& result : run_fork_job(job)) {
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_NE(result.text.find("PE 2"), std::string::npos) << result.text;
  }
}

/// What each open descriptor is.
std::multiset<std::string> open_descriptors() {
  std::multiset<std::string> links;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone; // the iterator's own
    const std::string link = std::filesystem::read_symlink(entry.path(), gone).string();
    // The GPU driver's management library keeps one eventfd each time it is initialised.
    if (link != "anon_inode:[eventfd]" || !std::filesystem::exists("/dev/nvidiactl"))
      links.insert(link);
  }
  return links;
}

TEST(Runtime, NothingIsLeftOpenAfterTheEnd) {
  const auto one_life = [] {
    const Environment environment;
    const Options options(environment);
    RuntimeRequest request;
    request.options = &options;
    Runtime runtime(std::move(request));
    runtime.free(runtime.allocate(1 << 20));
    runtime.finish();
  };
  one_life(); // what libraries keep for good
  const std::multiset<std::string> before = open_descriptors();
  for (int life = 0; life < 5; ++life)
    one_life();
  EXPECT_EQ(open_descriptors(), before);
}

/// ibrc and ibgda on the same port.
TEST(TrafficSince, TwoTransportsMayUseOnePort) {
  const auto moved = [](std::uint64_t put_bytes) {
    NicTraffic traffic;
    traffic.nic = {"mlx5_0", 1};
    traffic.put_bytes = put_bytes;
    return traffic;
  };
  const std::vector<NicTraffic> since =
      traffic_since({moved(100), moved(30)}, {moved(1100), moved(50)});
  ASSERT_EQ(since.size(), 2U);
  EXPECT_EQ(since[0].put_bytes, 1000U);
  EXPECT_EQ(since[1].put_bytes, 20U);
}

} // namespace
} // namespace shmemctl
