// Work queues of any bytes, given to the emulated HCA: whatever an entry says, memory without a key
// for it is not touched, and the completions stay in order.
//
// The input is a list of steps: a byte of flags, a byte of size, and the bytes of an entry. Flags
// say which fields are put right, since arbitrary bytes would never get past the first check.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <tuple>
#include <vector>

#include "transports/mlx5/emulated/emulated_hca.h"
#include "transports/mlx5/emulated/executor.h"
#include "transports/mlx5/host_memory.h"
#include "transports/mlx5/qp_layout.h"

using namespace shmemctl::mlx5;

namespace {

enum Flags : std::uint8_t {
  right_start = 1, ///< index and queue number
  right_size = 2,  ///< as many ds_count as were given
  right_remote = 4,
  right_local = 8,   ///< the piece behind the remote address
  right_result = 16, ///< the piece at the end
  ring = 32,
  take = 64, ///< completions
  far_record = 128
};

void require(bool condition) {
  if (!condition)
    std::abort();
}

/// Memory of exactly its size on the heap, so that AddressSanitizer sees a step beside it.
struct Memory {
  explicit Memory(std::size_t size_bytes) : bytes(size_bytes, std::byte{0x5a}) {}
  std::vector<std::byte> bytes;
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(bytes.data()); }
  bool untouched() const {
    for (const std::byte byte : bytes)
      if (byte != std::byte{0x5a})
        return false;
    return true;
  }
};

class World {
public:
  explicit World(std::uint8_t mode) {
    options_.wqebbs = 16;
    options_.signal_every = 4;
    options_.completions = (mode & 1) != 0 ? CqMode::collapsed : CqMode::ring;
    for (const auto& [memory, key, access] :
         {std::tuple{&there_, 0x10u, 15u}, {&read_only_, 0x11u, 4u}, {&secret_, 0x12u, 0u}}) {
      KeyWindow window;
      window.key = key;
      window.address = memory->address();
      window.size_bytes = memory->bytes.size();
      window.access = access;
      window.mapped = memory->bytes.data();
      way_->add(window);
    }
    EmulatedHcaOptions emulated;
    emulated.has_thread = false;
    emulated.path_to_peer = [this](const PeerInfo&) { return way_; };
    hca_ = std::make_unique<EmulatedHca>(emulated);
    here_key_ = hca_->register_memory({here_.bytes.data(), here_.bytes.size(), access_all});
    source_key_ = hca_->register_memory({source_.bytes.data(), source_.bytes.size(), 0});
    queue_ = hca_->create_queue(options_);
    queue_->connect(queue_->local());
  }

  void step(std::uint8_t flags, const std::uint8_t* bytes, std::size_t size) {
    std::uint64_t words[2 * max_ds_count] = {};
    std::memcpy(words, bytes, size);
    const auto ds_count = static_cast<std::uint32_t>((size + 15) / 16);
    put_right(flags, words, ds_count);
    const QpView& view = queue_->view();
    const std::uint64_t mask = (std::uint64_t{wqebb_words} << view.wqebbs_log2) - 1;
    for (std::uint32_t i = 0; i < 2 * ds_count; ++i)
      view.wqes[(position_ * wqebb_words + i) & mask] = words[i];
    position_ += std::max(1u, wqebbs_for(ds_count));
    if ((flags & ring) != 0) {
      const std::uint64_t told = position_ + ((flags & far_record) != 0 ? bytes[0] : 0);
      HostMemory::store_record(view.send_record, send_dbrec_value(told));
      HostMemory::store_doorbell(view.doorbell, doorbell_value(told, view.qpn), 0);
      for (int round = 0; round < 64 && hca_->poll() > 0; ++round) {
      }
    }
    if ((flags & take) != 0)
      take_completions();
  }

  void check() {
    take_completions();
    require(read_only_.untouched() && secret_.untouched() && source_.untouched());
  }

private:
  void put_right(std::uint8_t flags, std::uint64_t* words, std::uint32_t ds_count) {
    const QpView& view = queue_->view();
    std::uint64_t start = to_wire(words[0]);
    if ((flags & right_start) != 0)
      start =
          (start & 0xff0000ff000000ff) | (position_ & 0xffff) << 40 | std::uint64_t{view.qpn} << 8;
    if ((flags & right_size) != 0)
      start = (start & ~std::uint64_t{0xff}) | ds_count;
    words[0] = to_wire(start);
    if ((flags & right_remote) != 0 && ds_count >= 2) {
      const Memory* of[] = {&there_, &read_only_, &secret_};
      const std::uint64_t chosen = words[3] % 3;
      words[2] = to_wire(of[chosen]->address() + words[2] % 80);
      words[3] = remote_key_word(static_cast<std::uint32_t>(0x10 + chosen));
    }
    if ((flags & right_local) != 0 && ds_count >= 3)
      put_piece_right(words + 4);
    if ((flags & right_result) != 0 && ds_count >= 4)
      put_piece_right(words + 2 * ds_count - 2);
  }
  /// A piece of one of the two local memories, or a little beside it.
  void put_piece_right(std::uint64_t* words) const {
    const bool source = words[0] % 4 == 0;
    const auto size = static_cast<std::uint32_t>(words[0] >> 8 & 31);
    words[1] = to_wire((source ? source_ : here_).address() + words[1] % 80);
    words[0] = data_word(size, source ? source_key_->lkey() : here_key_->lkey());
  }

  void take_completions() {
    const QpView& view = queue_->view();
    if (view.mode == CqMode::collapsed)
      return;
    for (;;) {
      const std::uint64_t* entry = view.completions + taken_ % options_.wqebbs * cqe_words;
      const CqeTail tail = decode_tail(entry[cqe_last_word]);
      if (!is_new_cqe(tail, taken_, view.wqebbs_log2))
        break;
      ++taken_;
      require(tail.qpn == view.qpn);
      // After the first error there are only flushes.
      const Failure failure = decode_failure(tail, entry[cqe_syndrome_word]);
      require(!failed_ || (is_error(tail) && failure.syndrome == 0x05));
      failed_ = failed_ || is_error(tail);
    }
    HostMemory::store_record(view.completions_record, cq_dbrec_value(taken_));
  }

  Memory there_{64}, read_only_{64}, secret_{64}, here_{64}, source_{64};
  std::shared_ptr<MappedExecutor> way_ = std::make_shared<MappedExecutor>();
  QpOptions options_;
  std::unique_ptr<EmulatedHca> hca_;
  std::unique_ptr<HcaMemory> here_key_, source_key_;
  std::unique_ptr<HcaQp> queue_;
  std::uint64_t position_ = 0, taken_ = 0;
  bool failed_ = false;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0)
    return 0;
  World world(data[0]);
  std::size_t at = 1;
  while (at + 2 < size) {
    const std::uint8_t flags = data[at];
    const std::size_t count =
        std::min<std::size_t>({data[at + 1] * 4u, size - at - 2, 16 * max_ds_count});
    if (count == 0)
      break;
    world.step(flags, data + at + 2, count);
    at += 2 + count;
  }
  world.check();
  return 0;
}
