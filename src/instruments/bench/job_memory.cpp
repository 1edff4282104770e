#include "src/instruments/bench/job_memory.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "src/base/units.h"
#include "src/runtime/gpu/gpu.h"

namespace shmemctl::bench {

namespace {

/// The power of two that holds `size_bytes` and what else is allocated in the heap.
std::string heap_for(std::size_t size_bytes) {
  std::uint64_t size = std::uint64_t{1} << 20;
  while (size < size_bytes + (size_bytes >> 3) + (std::uint64_t{1} << 20) && size < (1ULL << 62))
    size *= 2;
  return format_size_bytes(size);
}

/// Returns the allocation; throws Error if the heap did not have enough memory.
std::byte* required(void* address, const char* heap, std::size_t size_bytes, const char* purpose,
                    const char* instead) {
  if (!address)
    throw Error(ExitCode::unavailable, heap, "allocate",
                std::string(purpose) + " needs " + std::to_string(size_bytes) + " bytes on each PE",
                "pass --symmetric-size " + heap_for(size_bytes) + " or more, or " + instead);
  return static_cast<std::byte*>(address);
}

} // namespace

std::byte* allocate_symmetric(Runtime& runtime, std::size_t size_bytes, const char* purpose,
                              const char* instead) {
  return required(runtime.allocate(size_bytes, 4096), "symmetric heap", size_bytes, purpose,
                  instead);
}

std::byte* allocate_on_gpu(PeGpu& gpu, std::size_t size_bytes, const char* purpose,
                           const char* instead) {
  return required(gpu.allocate(size_bytes, 4096), "symmetric heap of the GPUs", size_bytes, purpose,
                  instead);
}

SymmetricBlock::SymmetricBlock(Runtime& runtime, std::size_t size_bytes, const char* purpose,
                               const char* instead)
    : runtime_(runtime), address_(allocate_symmetric(runtime, size_bytes, purpose, instead)),
      size_bytes_(size_bytes) {}

void SymmetricBlock::free() {
  runtime_.free(address_);
  address_ = nullptr;
}

struct JobMemory::Header {
  std::uint64_t measures, samples, references;
  std::uint64_t bytes_per_iteration, operations_per_iteration;
  double limited_bytes_per_iteration;
};

struct JobMemory::Layout {
  Values own, merged;
  Header header;
  double operation_us[max_samples];
  double reference_us[max_samples];
};

JobMemory::JobMemory(Runtime& runtime)
    : runtime_(runtime), block_(runtime, sizeof(Layout), "the samples of a point") {}

JobMemory::Layout& JobMemory::layout() const {
  return *reinterpret_cast<Layout*>(block_.get());
}

JobMemory::Values JobMemory::maximum(const Values& values) {
  Layout& memory = layout();
  memory.own = values;
  runtime_.collectives().reduce(team_world, memory.merged.data(), memory.own.data(), max_values,
                                ElementType::float64, ReduceOp::maximum);
  return memory.merged;
}

std::vector<PeSamples> JobMemory::gather(const PeSamples& own) {
  Layout& memory = layout();
  memory.header = {own.measures ? 1U : 0U,       own.operation_us.size(),
                   own.reference_us.size(),      own.bytes_per_iteration,
                   own.operations_per_iteration, own.limited_bytes_per_iteration};
  std::copy(own.operation_us.begin(), own.operation_us.end(), memory.operation_us);
  std::copy(own.reference_us.begin(), own.reference_us.end(), memory.reference_us);
  runtime_.teams().sync(team_world);
  std::vector<PeSamples> all;
  if (runtime_.pe() == 0)
    for (int pe = 0; pe < runtime_.n_pes(); ++pe) {
      Header header{};
      runtime_.rma().get(&header, &memory.header, sizeof header, pe);
      PeSamples& samples = all.emplace_back(
          PeSamples{header.measures != 0, header.bytes_per_iteration,
                    header.operations_per_iteration, header.limited_bytes_per_iteration,
                    std::vector<double>(std::min(header.samples, max_samples)),
                    std::vector<double>(std::min(header.references, max_samples))});
      runtime_.rma().get(samples.operation_us.data(), memory.operation_us,
                         samples.operation_us.size() * sizeof(double), pe);
      runtime_.rma().get(samples.reference_us.data(), memory.reference_us,
                         samples.reference_us.size() * sizeof(double), pe);
    }
  runtime_.teams().sync(team_world); // no PE may free its samples while PE 0 reads them
  return all;
}

ArenaMemory::ArenaMemory(Runtime& runtime, MemoryKind kind, std::size_t size_bytes,
                         const char* purpose)
    : runtime_(runtime), kind_(kind), address_(nullptr), size_bytes_(size_bytes) {
  if (kind == MemoryKind::host) {
    address_ = allocate_symmetric(runtime, size_bytes, purpose);
    return;
  }
  if (kind == MemoryKind::registered) {
    registered_ = std::make_unique<RegisteredMemory>(runtime, size_bytes);
    address_ = registered_->get();
    return;
  }
  if (!runtime.gpu())
    throw Error(ExitCode::unavailable, "PE " + std::to_string(runtime.pe()), "use its GPU heap",
                "no GPU is in use on this PE",
                "start this PE on a node with GPUs; shmemctl doctor --only driver,gpu shows why a "
                "GPU cannot be used");
  address_ = allocate_on_gpu(*runtime.gpu(), size_bytes, purpose);
}

void ArenaMemory::clear(std::size_t size_bytes) {
  if (kind_ == MemoryKind::gpu)
    runtime_.gpu()->fill(address_, 0, size_bytes);
  else
    std::memset(address_, 0, size_bytes);
}

void ArenaMemory::look_at(std::size_t size_bytes,
                          const std::function<void(std::byte*, std::size_t)>& look) {
  if (kind_ != MemoryKind::gpu)
    return look(address_, size_bytes);
  std::vector<std::byte> copy(size_bytes);
  runtime_.gpu()->copy(copy.data(), address_, size_bytes);
  look(copy.data(), size_bytes);
  runtime_.gpu()->copy(address_, copy.data(), size_bytes);
}

void ArenaMemory::free() {
  if (registered_)
    registered_->free();
  else if (kind_ == MemoryKind::gpu)
    runtime_.gpu()->free(address_);
  else
    runtime_.free(address_);
  address_ = nullptr;
}

} // namespace shmemctl::bench
