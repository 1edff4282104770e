#include "src/runtime/runtime.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "src/runtime/bootstrap/launcher_variables.h"
#include "src/runtime/runtime_impl.h"

namespace shmemctl {

namespace {
constexpr std::chrono::seconds leave_time{2};
}

Runtime::Runtime(RuntimeRequest request) : impl_(std::make_unique<Impl>(std::move(request))) {
  impl_->start();
}

Runtime::~Runtime() = default;

void Runtime::finish() {
  impl_->announcing([&] {
    if (impl_->proxy)
      impl_->proxy->stop();
    if (impl_->gpu)
      impl_->gpu->finish();
    impl_->barrier();
    impl_->failure_detector->goodbye();
    const std::lock_guard lock(impl_->bootstrap_mutex);
    if (any_pe_lost()) { // Bootstrap::finish() would need all PEs
      const Deadline deadline = Deadline::after(leave_time);
      impl_->bootstrap->leave(deadline);
      if (impl_->parent_bootstrap)
        impl_->parent_bootstrap->leave(deadline);
      return;
    }
    impl_->bootstrap->finish(impl_->deadline());
    if (impl_->parent_bootstrap)
      impl_->parent_bootstrap->finish(impl_->deadline());
  });
  impl_->phases.undo_all();
}

bool Runtime::fail(const Error& error) noexcept {
  if (!impl_->failure_detector)
    return error.printed();
  const bool first = impl_->failure_detector->announce(error, "running");
  return error.printed() || impl_->failure_detector->await_printed(first ? &error : nullptr);
}

void Runtime::leave() noexcept {
  const std::unique_lock lock(impl_->bootstrap_mutex, std::try_to_lock);
  if (!lock)
    return; // another thread is in a call of the bootstrap
  const Deadline deadline = Deadline::after(leave_time);
  impl_->bootstrap->leave(deadline);
  if (impl_->parent_bootstrap)
    impl_->parent_bootstrap->leave(deadline);
}

int Runtime::pe() const {
  return impl_->bootstrap->rank();
}

int Runtime::n_pes() const {
  return impl_->bootstrap->size();
}

const Placement& Runtime::placement() const {
  return impl_->placement;
}

const Bootstrap& Runtime::bootstrap() const {
  return impl_->parent_bootstrap ? *impl_->parent_bootstrap : *impl_->bootstrap;
}

const std::string& Runtime::launcher() const {
  return impl_->launcher;
}

const std::vector<PhaseTime>& Runtime::phase_times() const {
  return impl_->phases.times();
}

const std::vector<TransportEntry>& Runtime::transports() const {
  return impl_->transports;
}

const std::vector<int>& Runtime::transport_index_by_pe() const {
  return impl_->transport_index_by_pe;
}

const RemoteChoice& Runtime::remote_choice() const {
  return impl_->remote_choice;
}

const State& Runtime::state() const {
  return impl_->state->master();
}

FailureDetector& Runtime::failure_detector() {
  return *impl_->failure_detector;
}

Rma& Runtime::rma() {
  return *impl_->rma;
}

Teams& Runtime::teams() {
  return *impl_->teams;
}

Collectives& Runtime::collectives() {
  return *impl_->collectives;
}

SymmetricHeap& Runtime::heap() {
  return *impl_->heap;
}

Proxy& Runtime::proxy() {
  const std::lock_guard lock(impl_->mutex);
  if (!impl_->proxy)
    impl_->announcing([&] {
      impl_->proxy = std::make_unique<Proxy>(
          impl_->transports_by_pe(), *impl_->failure_detector,
          proxy_options(impl_->options, impl_->placement, impl_->cpus_at_start, impl_->timeout_s));
    });
  return *impl_->proxy;
}

PeGpu* Runtime::gpu() {
  return impl_->gpu.get();
}

const std::string& Runtime::no_gpu_reason() const {
  return impl_->no_gpu_reason;
}

TransportSetup Runtime::transport_setup() {
  return impl_->transport_setup();
}

Buffers& Runtime::buffers() {
  return *impl_->buffers;
}

TeamId Runtime::rail_team() const {
  return impl_->rail_team;
}

const Mapping& Runtime::nics() const {
  return impl_->mapping;
}

const Node& Runtime::node() const {
  return impl_->node;
}

void* Runtime::allocate(std::size_t size_bytes, std::size_t alignment_bytes) {
  const std::lock_guard lock(impl_->mutex);
  void* address = nullptr;
  impl_->announcing([&] {
    address = impl_->heap->allocate(size_bytes, alignment_bytes);
    impl_->refresh_heap();
    if (size_bytes > 0)
      impl_->barrier();
  });
  return address;
}

void Runtime::free(void* address) {
  const std::lock_guard lock(impl_->mutex);
  impl_->announcing([&] {
    impl_->barrier(); // no PE may still use the released memory
    impl_->heap->free(address);
  });
}

std::vector<std::string> Runtime::gather_text(const std::string& text) {
  const std::lock_guard lock(impl_->mutex);
  std::vector<std::string> texts;
  impl_->announcing([&] {
    if (impl_->degraded) {
      texts = impl_->degraded->gather(text);
      return;
    }
    const std::lock_guard calls(impl_->bootstrap_mutex);
    texts = allgather_text(*impl_->bootstrap, text, impl_->deadline());
  });
  return texts;
}

std::vector<std::string> Runtime::gather_text_on_first(const std::string& text) {
  const std::lock_guard lock(impl_->mutex);
  std::vector<std::string> texts;
  impl_->announcing([&] {
    if (impl_->degraded) {
      texts = impl_->degraded->gather(text);
      if (pe() != 0)
        texts.clear();
      return;
    }
    const std::lock_guard calls(impl_->bootstrap_mutex);
    texts = shmemctl::gather_text(*impl_->bootstrap, text, impl_->deadline());
  });
  return texts;
}

bool Runtime::is_part_of_job() const {
  return impl_->parent_bootstrap != nullptr;
}

std::vector<std::string> Runtime::gather_text_of_job(const std::string& text) {
  if (!is_part_of_job())
    return gather_text(text);
  const std::lock_guard lock(impl_->mutex);
  std::vector<std::string> texts;
  impl_->announcing([&] {
    const std::lock_guard calls(impl_->bootstrap_mutex);
    texts = allgather_text(*impl_->parent_bootstrap, text, impl_->deadline());
  });
  return texts;
}

void Runtime::allow_loss() {
  if (n_pes() > DegradedJob::max_pes)
    throw Error(
        ExitCode::usage, fmt::format("job of {} PEs", n_pes()), "continue after the loss of a PE",
        fmt::format("supported up to {} PEs only", DegradedJob::max_pes), "start fewer PEs");
  constexpr std::size_t alignment_bytes = 64;
  auto* const memory =
      static_cast<std::byte*>(allocate(DegradedJob::size_bytes(), alignment_bytes)); // never freed
  if (!memory)
    throw Error(ExitCode::unavailable, "symmetric heap", "allocate the job's barrier flags",
                "the heap is full", "raise --symmetric-size");
  std::fill_n(memory, DegradedJob::size_bytes(), std::byte{0});
  barrier();
  FailureDetector& failure_detector = *impl_->failure_detector;
  failure_detector.allow_loss();
  impl_->degraded = std::make_unique<DegradedJob>(
      *impl_->rma,
      DegradedJobHooks{[&failure_detector](int pe, double limit_s) {
                         return failure_detector.presence(pe, limit_s);
                       },
                       [&failure_detector] { failure_detector.exclude_self(); }},
      memory);
}

void Runtime::barrier() {
  impl_->announcing([&] { impl_->barrier(); });
}

std::vector<LostPe> Runtime::lost() const {
  return impl_->degraded ? impl_->degraded->lost() : std::vector<LostPe>{};
}

bool Runtime::is_lost(int pe) const {
  return impl_->degraded && impl_->degraded->is_lost(pe);
}

bool Runtime::any_pe_lost() const {
  return impl_->degraded && impl_->degraded->any_pe_lost();
}

bool has_common_output(const Environment& environment) {
  return launcher_name(environment) != "none";
}

bool share_problem(const Environment& environment, std::map<std::string, std::string> command_line,
                   const Error& problem, const ErrorPrinter& print_error) {
  const bool alone = launched_size(environment) < 2 && launched_rank(environment);
  if (!has_common_output(environment) || alone)
    return false;
  for (const char* name : {"BOOTSTRAP", "BOOTSTRAP_PMI"})
    if (!Options(environment, command_line).value(name).problem.empty())
      command_line[name] = "auto";
  const Options options(environment, command_line);
  RuntimeRequest request;
  request.options = &options;
  request.environment = environment;
  request.print_error = print_error;
  request.problem = problem;
  try {
    const Runtime runtime(std::move(request));
  } catch (const Error& ending) {
    return ending.printed();
  }
  return false;
}

std::vector<NicTraffic> traffic_of(Runtime& runtime) {
  std::vector<NicTraffic> all;
  for (const TransportEntry& entry : runtime.transports())
    for (const NicTraffic& traffic : entry.transport->traffic())
      all.push_back(traffic);
  return all;
}

std::vector<NicTraffic> traffic_since(const std::vector<NicTraffic>& before,
                                      std::vector<NicTraffic> now) {
  const auto take = [](std::uint64_t& from, std::uint64_t what) { from -= std::min(from, what); };
  // Two transports may use the same port; both lists have them in the same order.
  std::vector<bool> taken(before.size(), false);
  for (NicTraffic& moved : now)
    for (std::size_t at = 0; at < before.size(); ++at) {
      const NicTraffic& then = before[at];
      if (taken[at] || then.nic != moved.nic)
        continue;
      taken[at] = true;
      take(moved.put_bytes, then.put_bytes);
      take(moved.get_bytes, then.get_bytes);
      take(moved.operations, then.operations);
      take(moved.long_bytes, then.long_bytes);
      take(moved.long_ns, then.long_ns);
      break;
    }
  return now;
}

} // namespace shmemctl
