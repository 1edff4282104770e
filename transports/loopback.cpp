#include "transports/loopback.h"

#include <cstring>
#include <new>

#include "src/base/error.h"

namespace shmemctl {

namespace {

/// The exchange of a job of one PE.
class OwnExchange final : public Exchange {
public:
  std::vector<std::string> allgather(const std::string& own) override { return {own}; }
  std::vector<std::string> alltoall(const std::vector<std::string>& to_each) override {
    return to_each;
  }
};

constexpr std::size_t page_bytes = 4096;

/// The memory of the test operations. It has whole pages, since memory is registered in pages.
struct alignas(page_bytes) Memory {
  std::byte source[page_bytes];
  std::byte target[page_bytes];
  std::byte back[page_bytes];
  std::uint64_t counter;
  std::uint64_t signal;
};

RemoteAddress at(std::size_t offset_bytes) {
  return {0, 1, offset_bytes};
}

void require(bool right, const Transport& transport, const char* operation, const char* problem) {
  if (!right)
    throw Error(ExitCode::finding, std::string("transport ") + transport.name(), operation, problem,
                "run shmemctl bringup --transport " + std::string(transport.name()) +
                    ", and check the device's firmware and driver");
}

void move_bytes(Transport& transport, Memory& memory) {
  for (std::size_t i = 0; i < page_bytes; ++i)
    memory.source[i] = static_cast<std::byte>(i * 7 + i / 251);
  transport.put(0, at(offsetof(Memory, target)), memory.source, page_bytes, false);
  transport.quiet(0);
  require(std::memcmp(memory.source, memory.target, page_bytes) == 0, transport, "put",
          "received bytes differ from those sent");
  transport.get(0, memory.back, at(offsetof(Memory, target)), page_bytes, true);
  require(std::memcmp(memory.source, memory.back, page_bytes) == 0, transport, "get",
          "received bytes differ from those in the memory that was read");
}

void count(Transport& transport, Memory& memory) {
  constexpr std::uint64_t first = 40, added = 2;
  memory.counter = first;
  const std::uint64_t old =
      transport.atomic(0, at(offsetof(Memory, counter)), {AtomicOp::add, 8, added});
  transport.quiet(0);
  std::uint64_t now = 0;
  transport.get(0, &now, at(offsetof(Memory, counter)), sizeof now, true);
  require(old == first && now == first + added, transport, "perform an atomic add",
          "the sum is wrong");
}

void signal(Transport& transport, Memory& memory) {
  std::memset(memory.target, 0, page_bytes);
  transport.put_signal(0, at(offsetof(Memory, target)), memory.source, page_bytes,
                       at(offsetof(Memory, signal)), 1, SignalOp::set, false);
  transport.quiet(0);
  std::uint64_t seen = 0;
  transport.get(0, &seen, at(offsetof(Memory, signal)), sizeof seen, true);
  require(seen == 1 && std::memcmp(memory.source, memory.target, page_bytes) == 0, transport,
          "put with signal", "payload or signal has not arrived");
}

} // namespace

Loopback run_loopback(Transport& transport, const std::vector<HcaPort>& nics, double timeout_s) {
  const auto memory = std::make_unique<Memory>();
  const PeerLocation me{0, 1, 1, transport.local_info()};
  // The PE is its own peer, on the same node.
  const Reach reach = transport.reach(me, me);
  if (reach.capabilities == 0)
    return {reach.reason, ""};
  if (!nics.empty())
    transport.use_nics(nics);
  OwnExchange exchange;
  transport.connect({me}, exchange, Deadline::after(std::chrono::duration<double>(timeout_s)));
  std::byte* const base = reinterpret_cast<std::byte*>(memory.get());
  const RegionView region{1, base, sizeof(Memory), {base}};
  const std::string key = transport.set_region(region);
  if (transport.has_keys())
    transport.set_keys(region.region, {key});
  move_bytes(transport, *memory);
  if ((reach.capabilities & can_atomics) != 0)
    count(transport, *memory);
  signal(transport, *memory);
  return {"", transport.connection(0)};
}

} // namespace shmemctl
