#include "src/runtime/runtime.h"

#include <algorithm>

#include <fmt/format.h>

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
    impl_->lifeline->goodbye();
    const std::lock_guard lock(impl_->bootstrap_mutex);
    if (anybody_lost()) { // a bootstrap's end takes all
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

void Runtime::fail(const Error& error) noexcept {
  if (impl_->lifeline)
    impl_->lifeline->announce(error, "running");
}

void Runtime::leave() noexcept {
  const std::unique_lock lock(impl_->bootstrap_mutex, std::try_to_lock);
  if (!lock)
    return; // another thread waits in a call of it
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

const std::vector<int>& Runtime::way_to() const {
  return impl_->way_to;
}

const RemoteChoice& Runtime::remote_choice() const {
  return impl_->remote_choice;
}

const State& Runtime::state() const {
  return impl_->state->master();
}

Lifeline& Runtime::lifeline() {
  return *impl_->lifeline;
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
          impl_->ways(), *impl_->lifeline,
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
    impl_->barrier(); // nobody may still use what goes
    impl_->heap->free(address);
  });
}

std::vector<std::string> Runtime::gather_text(const std::string& text) {
  const std::lock_guard lock(impl_->mutex);
  std::vector<std::string> texts;
  impl_->announcing([&] {
    if (impl_->survivors) {
      texts = impl_->survivors->gather(text);
      return;
    }
    const std::lock_guard calls(impl_->bootstrap_mutex);
    texts = allgather_text(*impl_->bootstrap, text, impl_->deadline());
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
  if (n_pes() > Survivors::most_pes)
    throw Error(ExitCode::usage, fmt::format("job of {} PEs", n_pes()),
                "continue after the loss of a PE",
                fmt::format("supported up to {} PEs only", Survivors::most_pes), "start fewer PEs");
  constexpr std::size_t alignment_bytes = 64;
  auto* const memory =
      static_cast<std::byte*>(allocate(Survivors::size_bytes(), alignment_bytes)); // never freed
  if (!memory)
    throw Error(ExitCode::unavailable, "symmetric heap", "allocate the job's barrier flags",
                "the heap is full", "raise --symmetric-size");
  std::fill_n(memory, Survivors::size_bytes(), std::byte{0});
  meet();
  Lifeline& lifeline = *impl_->lifeline;
  lifeline.allow_loss();
  impl_->survivors = std::make_unique<Survivors>(
      *impl_->rma,
      SurvivorHooks{[&lifeline](int pe, double limit_s) { return lifeline.presence(pe, limit_s); },
                    [&lifeline] { lifeline.step_aside(); }},
      memory);
}

void Runtime::meet() {
  impl_->announcing([&] { impl_->barrier(); });
}

std::vector<LostPe> Runtime::lost() const {
  return impl_->survivors ? impl_->survivors->lost() : std::vector<LostPe>{};
}

bool Runtime::is_lost(int pe) const {
  return impl_->survivors && impl_->survivors->is_lost(pe);
}

bool Runtime::anybody_lost() const {
  return impl_->survivors && impl_->survivors->anybody_lost();
}

} // namespace shmemctl
