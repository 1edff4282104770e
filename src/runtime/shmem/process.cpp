// The world of a process: initialisation, finalisation, and the other ways in which it ends; and
// queries (my_pe, n_pes, accessibility, version, name).
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <iostream>
#include <optional>
#include <string_view>
#include <thread>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/runtime/gpu/gpu.h"
#include "src/runtime/runtime.h"
#include "src/runtime/shmem/api.h"
#include "src/runtime/shmem/environment.h"
#include "src/runtime/shmem/exit_watcher.h"
#include "src/runtime/shmem/include/shmemx.h"
#include "src/runtime/shmem/process.h"

namespace shmemctl::api {

namespace {

/// A long timeout, because a program may compute for hours while other PEs wait for it. A PE that
/// dies is noticed at once.
constexpr double default_timeout_s = 86400;
constexpr std::chrono::seconds exit_handlers_time{5};
constexpr std::chrono::milliseconds flush_time{200};
/// Delay of PEs that were only notified, so that the PE that failed exits first: launchers report
/// the PE that exited first.
constexpr std::chrono::milliseconds precedence_time{200};
/// Phases under which a PE's exit is announced; the exit status is appended to them, because the
/// job's own exit codes must not be mixed with it.
constexpr std::string_view global_exit_phase = "shmem_global_exit ";
constexpr std::string_view status_phase = "exit with status ";

enum class Stage { before, running, finalized, ending };
// Global, because the C interface has no handle for the library, and exit handlers get no argument.
std::atomic<Stage> stage{Stage::before};
std::atomic<bool> someone_ends{false};
thread_local bool i_end = false;
pid_t process_id = 0;
bool reached_bootstrap = false; ///< set by the thread that initialises the library

/// Returns on the one thread that ends the process. Other threads stop here forever, because what
/// they use is about to be destroyed.
void claim_the_end() {
  if (i_end)
    std::_Exit(static_cast<int>(ExitCode::unavailable)); // an exit handler has called the library
  if (someone_ends.exchange(true))
    for (;;)
      pause();
  i_end = true;
  stage = Stage::ending;
}

/// Exits from a thread of the library: does not run exit handlers, and flushes output unless
/// another thread holds its lock.
[[noreturn]] void leave(int status) {
  std::promise<void> flushed;
  std::future<void> end = flushed.get_future();
  std::thread([done = std::move(flushed)]() mutable {
    std::fflush(nullptr);
    done.set_value();
  }).detach();
  end.wait_for(flush_time);
  std::_Exit(status);
}

std::string with_status(std::string_view phase, int status) {
  return std::string(phase) + std::to_string(status & 0xff);
}

/// The exit status that follows this phase name, if the failure has this phase.
std::optional<int> status_of(const Failure* failure, std::string_view phase) {
  if (!failure || !failure->phase.starts_with(phase))
    return std::nullopt;
  return std::atoi(failure->phase.c_str() + phase.size());
}

/// Prints an error that ends the job, except that of shmem_global_exit(), which ends it without
/// one.
void print_failure(const Error& error) {
  if (error.code() != ExitCode::interrupted)
    print_error(error);
}

ErrorPrinter printer_for(const Environment& environment) {
  return has_common_output(environment) ? ErrorPrinter(print_failure) : nullptr;
}

class ProcessWorld final : public World {
public:
  ProcessWorld(Runtime& runtime, const InitRequest& wanted_init, bool uses_default_timeout)
      : World(runtime.rma(), runtime.teams(), runtime.collectives()), runtime_(runtime),
        thread_level_(wanted_init.thread_level) {
    if (wanted_init.gpu == GpuUse::none)
      why_no_gpu_ = "the program was initialised by shmem_init, which opens none";
    else
      why_no_gpu_ = runtime.no_gpu_reason();
    if (uses_default_timeout)
      rma.set_timeout_s(default_timeout_s);
    if (uses_default_timeout && gpu())
      gpu()->set_timeout_s(default_timeout_s);
    rma.serialize(0, thread_level_ == SHMEM_THREAD_MULTIPLE);
    watcher_ = std::make_unique<ExitWatcher>([this] { check_health(); },
                                             [this](const Error& error) { fail_elsewhere(error); });
  }

  void* allocate(std::size_t size_bytes, std::size_t alignment_bytes) override {
    return runtime_.allocate(size_bytes, alignment_bytes);
  }
  void free(void* address) override { runtime_.free(address); }
  std::size_t block_bytes(const void* address) const override {
    const RemoteAddress place = rma.locate(address, rma.pe());
    if (place.region != region::heap)
      return 0;
    return runtime_.heap().allocator().block_bytes(place.offset_bytes).value_or(0);
  }
  bool reachable(int pe) const override {
    return runtime_.transport_index_by_pe()[static_cast<std::size_t>(pe)] >= 0;
  }
  Buffers* buffers() override { return &runtime_.buffers(); }
  PeGpu* gpu() override { return runtime_.gpu(); }
  const char* why_no_gpu() const override { return why_no_gpu_.c_str(); }
  int thread_level() const override { return thread_level_; }

  void finalize() override {
    if (gpu()) // work in the GPU's stream uses memory that is about to be freed
      gpu()->wait(gpu()->stream(), "shmem_finalize");
    // Before runtime_.finish(), whose timeout is meant for PEs that are late by seconds.
    collectives.barrier(team_world);
    let_all_go();
    watcher_.reset();
    runtime_.finish();
  }

  [[noreturn]] void exit_all(int status) override {
    claim_the_end();
    runtime_.failure_detector().announce(
        Error(ExitCode::interrupted, "job", "continue", "a PE called shmem_global_exit", ""),
        with_status(global_exit_phase, status));
    release_kernels();
    runtime_.leave();
    std::exit(status);
  }

  [[noreturn]] void fail(const Error& error) override {
    claim_the_end();
    std::exit(report(error));
  }

  /// To be called when this PE's program exits with a nonzero status and without shmem_finalize. A
  /// launcher may end the other PEs as soon as this one has exited, so this waits until the PE that
  /// prints for all has printed the error.
  void fail_with_status(int status) noexcept {
    release_kernels();
    FailureDetector& failure_detector = runtime_.failure_detector();
    const Error error = placed(
        Error(ExitCode::unavailable, "job", "finish",
              "a program exited with status " + std::to_string(status) + " before shmem_finalize",
              "check what that PE printed"));
    if (failure_detector.announce(error, with_status(status_phase, status)))
      failure_detector.await_printed(&error);
  }

private:
  /// Throws failures that the program would not notice while it computes or waits for a stream.
  void check_health() {
    runtime_.failure_detector().check();
    if (gpu())
      gpu()->check();
  }

  /// Ends the waits of kernels: otherwise the end of the process would wait for them.
  void release_kernels() noexcept {
    if (gpu())
      gpu()->release_kernels();
  }

  /// Ends the process. Called on the watcher's thread.
  void fail_elsewhere(const Error& error) {
    if (someone_ends.exchange(true)) {
      // A thread of the program has noticed the failure, too: gives it time for its exit handlers.
      std::this_thread::sleep_for(exit_handlers_time);
      std::_Exit(status_after(runtime_.failure_detector().failure().get(), error));
    }
    i_end = true;
    stage = Stage::ending;
    leave(report(error));
  }

  static int status_after(const Failure* first, const Error& error) {
    for (const std::string_view phase : {global_exit_phase, status_phase})
      if (const auto status = status_of(first, phase))
        return *status;
    return static_cast<int>(error.code());
  }
  /// Notifies the other PEs, prints the error if no other PE of the job does, and returns the exit
  /// status.
  int report(const Error& error) {
    release_kernels();
    const std::unique_ptr<Failure> first = runtime_.failure_detector().failure();
    if (status_of(first.get(), global_exit_phase)) {
      runtime_.leave();
      return status_after(first.get(), error);
    }
    const Error full = placed(error);
    if (!runtime_.fail(full))
      print_error(full);
    if (first && first->pe != rma.pe())
      std::this_thread::sleep_for(precedence_time);
    return status_after(first.get(), full);
  }

  Error placed(const Error& error) const {
    if (error.where().pe || !error.where().host.empty() || error.printed())
      return error;
    return error.located(runtime_.placement().hosts[static_cast<std::size_t>(rma.pe())].host_name,
                         rma.pe());
  }

  Runtime& runtime_;
  int thread_level_;
  std::string why_no_gpu_;
  std::unique_ptr<ExitWatcher> watcher_;
};

std::map<std::string, std::string> options_of(const InitRequest& wanted_init,
                                              const Environment& environment) {
  std::map<std::string, std::string> options = specified_options(environment);
  if (!wanted_init.bootstrap.empty())
    options["BOOTSTRAP"] = wanted_init.bootstrap;
  return options;
}

/// The state from shmem_init to shmem_finalize. It is not destroyed if the process ends by an error
/// or a nonzero status instead, because other threads may be using it.
struct Process {
  Process(InitRequest& wanted_init, const Environment& environment)
      : options(environment, options_of(wanted_init, environment)) {
    options.require_valid({"LOG_LEVEL", "LOG_SUBSYSTEMS", "TIMEOUT"});
    LogLevel level = LogLevel::warning;
    parse_log_level(options.text("LOG_LEVEL"), level);
    configure_log(level, options.text("LOG_SUBSYSTEMS"));
    RuntimeRequest request;
    request.options = &options;
    request.environment = environment;
    request.share_static_data = wanted_init.share_static_data;
    request.gpu = wanted_init.gpu;
    request.gpu_device = wanted_init.gpu_device;
    request.gpu_heap_grows = wanted_init.gpu_heap_grows;
    request.bootstrap.uid = std::move(wanted_init.uid);
    request.bootstrap.mpi_communicator = wanted_init.mpi_communicator;
    request.print_error = printer_for(environment);
    request.announce = [](const std::string& phase) {
      reached_bootstrap = reached_bootstrap || phase == phase::bootstrap;
    };
    runtime = std::make_unique<Runtime>(std::move(request));
    world = std::make_unique<ProcessWorld>(*runtime, wanted_init, !options.value("TIMEOUT").set());
  }
  Options options;
  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<ProcessWorld> world;
};

Process* process = nullptr;

InitRequest init_request_of(const shmemx_gpu_init_t& wanted) {
  if (wanted.thread_level < SHMEM_THREAD_SINGLE || wanted.thread_level > SHMEM_THREAD_MULTIPLE)
    throw wrong_use("thread level " + std::to_string(wanted.thread_level), "provide",
                    "not defined by the specification",
                    "use SHMEM_THREAD_SINGLE, FUNNELED, SERIALIZED or MULTIPLE");
  if (wanted.device < SHMEMX_GPU_BY_TURNS)
    throw wrong_use("GPU " + std::to_string(wanted.device), "open", "no such device",
                    "use CUDA's number of the device, or SHMEMX_GPU_BY_TURNS");
  InitRequest request;
  request.thread_level = wanted.thread_level;
  request.gpu = wanted.optional ? GpuUse::if_available : GpuUse::required;
  request.gpu_device = wanted.device;
  return request;
}

void print_what_was_asked_for(const Environment& environment) {
  if (current().rma.pe() != 0)
    return;
  if (asked_for(environment, "VERSION"))
    std::cerr << SHMEM_VENDOR_STRING << ": OpenSHMEM " << SHMEM_MAJOR_VERSION << '.'
              << SHMEM_MINOR_VERSION << '\n';
  if (asked_for(environment, "INFO"))
    std::cerr << info_text();
}

/// Exit handler, for programs that exit without shmem_finalize: finalises the library if the status
/// is 0, otherwise notifies the other PEs. A child process inherits this handler and must do
/// neither.
void at_exit(int status, void*) {
  if (getpid() != process_id || stage != Stage::running)
    return;
  if (status == 0)
    return finalize();
  stage = Stage::ending;
  process->world->fail_with_status(status);
}

/// Ends the process because initialisation failed. The other PEs may have the same error, which
/// only one PE prints then, or may wait for this one.
[[noreturn]] void fail_to_start(Error error, const Environment& environment) {
  stage = Stage::ending;
  if (!reached_bootstrap && share_problem(environment, {}, error, print_failure))
    error.mark_printed();
  std::this_thread::sleep_for(precedence_time); // another PE may have failed first
  fail(error);
}

} // namespace

bool was_started() {
  return stage != Stage::before;
}

void finalize() {
  Stage expected = Stage::running;
  if (!stage.compare_exchange_strong(expected, Stage::finalized))
    return;
  guarded([](World& world) { world.finalize(); });
  process_world = nullptr;
  const std::unique_ptr<Process> gone(std::exchange(process, nullptr));
}

void start(InitRequest wanted_init) {
  Stage expected = Stage::before;
  if (!stage.compare_exchange_strong(expected, Stage::running))
    fail(wrong_use("library", "initialize", "it has already been initialized",
                   "call shmem_init, shmem_init_thread or shmemx_gpu_init once"));
  const Environment environment = current_environment();
  const bool has_bootstrap = wanted_init.uid || wanted_init.mpi_communicator;
  try {
    process = std::make_unique<Process>(wanted_init, environment).release();
  } catch (const Error& error) {
    // If the program passed a unique id or a communicator, share_problem() must not be called: the
    // launcher's bootstrap may reach PEs other than those of the job.
    reached_bootstrap = reached_bootstrap || has_bootstrap;
    fail_to_start(error, environment);
  }
  process_world = process->world.get();
  process_id = getpid();
  on_exit(at_exit, nullptr);
  // After this sync a PE that exits at once is not taken for a lost one: all know its status.
  guarded([](World& world) { world.teams.sync(team_world); });
  print_what_was_asked_for(environment);
}

} // namespace shmemctl::api

using namespace shmemctl;

SHMEMCTL_API(void, shmem_init, (void)) {
  api::start({});
}

SHMEMCTL_API(int, shmemx_gpu_init, (const shmemx_gpu_init_t* wanted)) {
  constexpr shmemx_gpu_init_t usual = SHMEMX_GPU_INIT;
  api::InitRequest wanted_init;
  try {
    wanted_init = api::init_request_of(wanted ? *wanted : usual);
  } catch (const Error& error) {
    if (api::stage == api::Stage::before)
      api::fail_to_start(error, current_environment());
    api::fail(error);
  }
  api::start(std::move(wanted_init));
  return api::guarded([](api::World& world) { return world.gpu() ? 0 : 1; });
}

SHMEMCTL_API(int, shmem_init_thread, (int requested, int* provided)) {
  if (requested < SHMEM_THREAD_SINGLE || requested > SHMEM_THREAD_MULTIPLE)
    return 1;
  api::InitRequest wanted_init;
  wanted_init.thread_level = requested;
  api::start(std::move(wanted_init));
  *provided = requested;
  return 0;
}

SHMEMCTL_API(void, start_pes, (int)) {
  if (api::stage == api::Stage::before)
    api::start({});
}

SHMEMCTL_API(void, shmem_finalize, (void)) {
  api::finalize();
}

SHMEMCTL_API(void, shmem_global_exit, (int status)) {
  api::guarded([&](api::World& world) { world.exit_all(status); });
}

// Queries: my_pe, n_pes, accessibility, version and name.

using namespace shmemctl;
using api::World;

SHMEMCTL_API(int, shmem_my_pe, (void)) {
  return api::guarded([](api::World& world) { return world.rma.pe(); });
}

SHMEMCTL_API(int, shmem_n_pes, (void)) {
  return api::guarded([](api::World& world) { return world.rma.n_pes(); });
}

SHMEMCTL_API(int, shmem_pe_accessible, (int pe)) {
  return api::guarded([&](api::World& world) {
    return pe >= 0 && pe < world.rma.n_pes() && world.reachable(pe) ? 1 : 0;
  });
}

SHMEMCTL_API(int, shmem_addr_accessible, (const void* addr, int pe)) {
  return api::guarded([&](api::World& world) {
    const bool valid = pe >= 0 && pe < world.rma.n_pes() && world.reachable(pe);
    return valid && world.rma.locate(addr, pe).region > region::internal ? 1 : 0;
  });
}

SHMEMCTL_API(void*, shmem_ptr, (const void* dest, int pe)) {
  return api::guarded([&](api::World& world) { return world.rma.direct(dest, pe); });
}

SHMEMCTL_API(void, shmem_info_get_version, (int* major, int* minor)) {
  *major = SHMEM_MAJOR_VERSION;
  *minor = SHMEM_MINOR_VERSION;
}

SHMEMCTL_API(void, shmem_info_get_name, (char* name)) {
  static_assert(sizeof SHMEM_VENDOR_STRING <= SHMEM_MAX_NAME_LEN);
  std::memcpy(name, SHMEM_VENDOR_STRING, sizeof SHMEM_VENDOR_STRING);
}

SHMEMCTL_API(void, shmem_query_thread, (int* provided)) {
  api::guarded([&](api::World& world) { *provided = world.thread_level(); });
}

SHMEMCTL_API(void, shmem_pcontrol, (int, ...)) {}

SHMEMCTL_API(int, _my_pe, (void)) {
  return pshmem_my_pe();
}

SHMEMCTL_API(int, _num_pes, (void)) {
  return pshmem_n_pes();
}
