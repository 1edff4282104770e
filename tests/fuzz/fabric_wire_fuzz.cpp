// What peers tell libfabric's transport: messages, immediate data, endpoints, keys, local info.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "transports/libfabric/wire.h"

using namespace shmemctl::fabric;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const int n_pes = size > 0 ? data[0] + 1 : 1;
  if (const auto message = read_message(data, size, n_pes))
    if (static_cast<int>(message->from_pe) >= n_pes)
      std::abort();
  // What is read is what it encodes to.
  if (const auto endpoints = shmemctl::from_bytes<std::vector<EndpointName>>(text))
    if (shmemctl::to_bytes(*endpoints) != text)
      std::abort();
  if (const auto key = shmemctl::from_bytes<PieceKey>(text))
    if (key->by_endpoint.size() > max_endpoints || shmemctl::to_bytes(*key) != text)
      std::abort();
  const LocalInfo info = read_local_info(text);
  if (info.problem.empty() && info.provider.empty())
    std::abort();
  std::uint64_t immediate = 0;
  for (std::size_t i = 0; i < size && i < 8; ++i)
    immediate |= std::uint64_t{data[i]} << (8 * i);
  const ImmediateSpace space(n_pes);
  if (const auto sender = space.decode(immediate))
    if (sender->pe >= n_pes || space.encode(sender->pe, sender->sequence) != immediate)
      std::abort();
  return 0;
}
