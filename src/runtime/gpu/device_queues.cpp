#include "src/runtime/gpu/device_queues.h"

#include <cstdlib>
#include <cstring>

#include "src/base/error.h"
#include "src/base/round_up.h"

namespace shmemctl {

namespace {

std::unique_ptr<void, void (*)(void*)> zeroed_pages(std::size_t size_bytes,
                                                    std::size_t page_bytes) {
  std::unique_ptr<void, void (*)(void*)> memory(std::aligned_alloc(page_bytes, size_bytes),
                                                std::free);
  if (!memory)
    throw Error(ExitCode::unavailable, "result slots of the GPU's QPs", "allocate", "out of memory",
                "free host memory");
  std::memset(memory.get(), 0, size_bytes);
  return memory;
}

} // namespace

/// The mappings of one queue, whose memory belongs to the transport.
struct DeviceQueues::Queue {
  Queue(std::shared_ptr<KernelMemory> kernels, void* entries, std::size_t size_bytes)
      : memory(std::move(kernels), entries, size_bytes) {}

  KernelMapping memory;
  std::shared_ptr<KernelMapping> registers; ///< nullptr: the doorbell is in `memory`
};

DeviceQueues::DeviceQueues(ibgda::IbgdaTransport& transport, std::shared_ptr<KernelMemory> memory,
                           int n_pes)
    : transport_(transport), memory_(std::move(memory)), lane_(transport.first_kernel_qp_set()),
      n_lanes_(transport.kernel_qp_sets()),
      results_bytes_(round_up(n_results * sizeof(QpResult), transport.page_bytes())),
      results_(zeroed_pages(results_bytes_, transport.page_bytes())),
      queues_per_pe_(transport.queue_table().table().n_paths * n_lanes_),
      mapped_(static_cast<std::size_t>(n_pes) * queues_per_pe_), words_(memory_, mapped_.size()),
      marks_(memory_, mapped_.size()), locks_(memory_, n_results) {
  results_mapping_.emplace(memory_, results_.get(), results_bytes_);
  transport_.add_local(results_.get(), n_results * sizeof(QpResult));
  try {
    mlx5::TableImage image = transport_.queue_table();
    map_queues(image);
    copy_table(std::move(image));
  } catch (...) {
    transport_.remove_local(results_.get());
    throw;
  }
}

DeviceQueues::~DeviceQueues() {
  transport_.remove_local(results_.get());
}

/// The QPs are numbered as in qps_to() (kernels/device/ibgda_qp.h).
template <class Use>
void DeviceQueues::each_queue(const mlx5::QpTable& table, const Use& use) const {
  for (std::uint32_t pe = 0; pe < table.n_pes; ++pe) {
    const std::uint32_t rails = table.paths_to(pe);
    for (std::uint32_t number = 0; number < rails * n_lanes_; ++number)
      use(std::size_t{pe} * queues_per_pe_ + number,
          Number{pe, number % rails, lane_ + number / rails});
  }
}

std::shared_ptr<KernelMapping> DeviceQueues::register_page(const void* address) {
  const std::size_t page_bytes = transport_.page_bytes();
  const std::uintptr_t page = reinterpret_cast<std::uintptr_t>(address) / page_bytes * page_bytes;
  std::weak_ptr<KernelMapping>& known = register_pages_[page];
  std::shared_ptr<KernelMapping> mapping = known.lock();
  if (!mapping) {
    mapping = std::make_shared<KernelMapping>(memory_, reinterpret_cast<void*>(page), page_bytes,
                                              KernelMemory::HostMemoryKind::registers);
    known = mapping;
  }
  return mapping;
}

void DeviceQueues::map_queues(mlx5::TableImage& image) {
  each_queue(image.table(), [&](std::size_t place, const Number& number) {
    const mlx5::QpView& view = image.queue(number.pe, number.path, number.qp_set).view;
    mapped_[place] = std::make_unique<Queue>(memory_, view.wqes, transport_.queue_bytes());
    if (mapped_[place]->memory.holds(view.doorbell))
      return; // the doorbell register of the emulated HCA
    mapped_[place]->registers = register_page(view.doorbell);
  });
}

void DeviceQueues::copy_table(mlx5::TableImage image) {
  each_queue(image.table(), [&](std::size_t place, const Number& number) {
    const Queue& mapped = *mapped_[place];
    mlx5::QpView& view = image.queue(number.pe, number.path, number.qp_set).view;
    view.wqes = mapped.memory.seen(view.wqes);
    view.completions = mapped.memory.seen(view.completions);
    view.send_record = mapped.memory.seen(view.send_record);
    view.completions_record = mapped.memory.seen(view.completions_record);
    view.doorbell = (mapped.registers ? *mapped.registers : mapped.memory).seen(view.doorbell);
    view.words = words_.data() + place;
  });
  const std::size_t n_words = (image.table().size_bytes + 7) / 8;
  tables_.emplace_back(memory_, n_words);
  memory_->copy(tables_.back().data(), image.data(), n_words * 8);
}

void DeviceQueues::refresh() {
  copy_table(transport_.queue_table());
}

void DeviceQueues::describe(DeviceNetwork& network) const {
  network.first_qp_set = lane_;
  network.n_kernel_qp_sets = n_lanes_;
  network.qps_per_pe = queues_per_pe_;
  network.qp_per_warp = transport_.kernel_qp_per_warp() ? 1 : 0;
  network.queues = reinterpret_cast<const mlx5::QpTable*>(tables_.back().data());
  network.marks = marks_.data();
  network.results = results_mapping_->seen(static_cast<QpResult*>(results_.get()));
  network.qp_result_locks = locks_.data();
  network.n_qp_results = n_results;
}

} // namespace shmemctl
