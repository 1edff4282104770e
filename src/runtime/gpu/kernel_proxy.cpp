#include "src/runtime/gpu/kernel_proxy.h"

#include "src/base/error.h"

namespace shmemctl {

namespace {

constexpr std::size_t words_in_line = proxy_line_pair_bytes / sizeof(std::uint64_t);

ProxyOptions for_kernels(ProxyOptions options) {
  const unsigned threads = kernel_proxy_contexts(options.threads).threads;
  if (threads == 0)
    throw Error(ExitCode::usage, "SHMEMCTL_PROXY_THREADS=" + std::to_string(options.threads), "",
                "too many: kernels need a proxy thread of their own, and there are " +
                    std::to_string(max_proxy_threads - staged_contexts) +
                    " contexts for both kinds of proxy threads",
                "set SHMEMCTL_PROXY_THREADS to 5 or less");
  options.threads = threads;
  for (std::uint8_t& ring : options.fifo_of_pe)
    ring = static_cast<std::uint8_t>(ring % threads);
  options.issued_in_device_memory = true;
  return options;
}

} // namespace

KernelProxy::KernelProxy(const std::vector<Transport*>& transports_by_pe, JobHealth& health,
                         const ProxyOptions& options, std::shared_ptr<KernelMemory> memory)
    : memory_(std::move(memory)), context_(kernel_proxy_contexts(options.threads).context),
      proxy_(std::make_unique<Proxy>(transports_by_pe, health, for_kernels(options))),
      issued_(memory_, std::size_t{proxy_->n_threads()} * words_in_line),
      known_completed_(memory_, proxy_->n_threads()),
      result_words_(memory_, std::size_t{proxy_->n_threads()} * options.n_results) {
  std::vector<ProxyFifoView> views;
  for (unsigned ring = 0; ring < proxy_->n_threads(); ++ring) {
    ProxyHeader& header = proxy_->channel().header(ring);
    const KernelMapping& mapping =
        mappings_.emplace_back(memory_, &header, static_cast<std::size_t>(header.size_bytes));
    ProxyFifoView view = proxy_->channel().view(ring);
    view.slots = mapping.seen(view.slots);
    view.completed = mapping.seen(view.completed);
    view.quieted = mapping.seen(view.quieted);
    view.results = mapping.seen(view.results);
    view.issued = issued_.data() + ring * words_in_line;
    views.push_back(view);
    const std::uint64_t issued = header.first_sequence << 1;
    memory_->copy(view.issued, &issued, sizeof issued);
    memory_->copy(known_completed_.data() + ring, &header.first_sequence, sizeof issued);
  }
  views_ = std::make_unique<KernelArray<ProxyFifoView>>(memory_, views);
  std::vector<std::uint8_t> fifo_of_pe;
  for (std::size_t pe = 0; pe < transports_by_pe.size(); ++pe)
    fifo_of_pe.push_back(
        static_cast<std::uint8_t>(proxy_->channel().fifo_of(static_cast<int>(pe))));
  ring_of_pe_ = std::make_unique<KernelArray<std::uint8_t>>(memory_, fifo_of_pe);
}

KernelProxy::~KernelProxy() {
  try {
    close_rings(true);
  } catch (const Error&) {
    close_rings(false); // the device does not respond any more
  }
}

void KernelProxy::close_rings(bool of_device) {
  if (closed_)
    return;
  for (unsigned ring = 0; ring < proxy_->n_threads(); ++ring) {
    ProxyHeader& header = proxy_->channel().header(ring);
    std::uint64_t issued = HostAtomics::load_acquire(&header.completed) << 1;
    if (of_device) {
      std::uint64_t* const word = issued_.data() + ring * words_in_line;
      memory_->copy(&issued, word, sizeof issued);
      const std::uint64_t closed = issued | 1;
      memory_->copy(word, &closed, sizeof closed);
    }
    HostAtomics::store_release(&header.issued, issued & ~std::uint64_t{1});
  }
  closed_ = true;
}

void KernelProxy::describe(DeviceNetwork& network) const {
  const ProxyFifos& rings = proxy_->channel().rings();
  network.rings = {views_->data(), ring_of_pe_->data(), rings.n_fifos, rings.n_pes};
  network.known_completed = known_completed_.data();
  network.result_words = result_words_.data();
  network.context = static_cast<std::uint32_t>(context_);
}

void KernelProxy::check() const {
  if (proxy_->channel().condition() != ProxyChannel::Condition::well)
    proxy_->channel().throw_failure();
}

void KernelProxy::stop() {
  close_rings(true);
  proxy_->stop();
}

} // namespace shmemctl
