// Datagrams of netlink, and the recorded texts that stand for them.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "src/instruments/inspect/gpu_use.h"
#include "src/instruments/inspect/netlink.h"
#include "src/instruments/inspect/rdma_resources.h"
#include "src/instruments/inspect/tcp_bytes.h"

namespace {

void must(bool holds) {
  if (!holds)
    std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl::inspect;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // The seeds have sequence 1.
  NetlinkAnswer answer;
  add_netlink_messages(bytes, 1, answer);
  must(answer.error_number >= 0 && answer.error_number < 4096);
  std::size_t held = 0;
  for (const std::string& body : answer.bodies)
    held += body.size();
  must(held <= size);
  answer.bodies.emplace_back(bytes); // also as a body, so that no header has to be guessed
  for (const std::string& body : answer.bodies) {
    parse_rdma_device(body);
    TcpBytesByInode tcp;
    add_tcp_message(body, tcp);
    must(tcp.count(0) == 0);
  }
  for (const RdmaResource kind : {RdmaResource::queue_pair, RdmaResource::completion_queue,
                                  RdmaResource::memory_region, RdmaResource::connection}) {
    RdmaResources found;
    for (const std::string& body : answer.bodies)
      add_rdma_message(kind, body, found);
    add_rdma_text(kind, bytes, found);
    for (const auto& process : found.by_pid) {
      must(process.first > 0);
      for (const QueuePair& pair : process.second.queue_pairs)
        must(pair.port >= 0 && pair.port <= 255);
    }
  }
  TcpBytesByInode recorded;
  add_tcp_text(bytes, recorded);
  TcpBytesByInode again;
  add_tcp_text(tcp_text(recorded), again);
  must(again.size() == recorded.size());
  const GpuProcesses gpus = parse_gpu_processes(bytes);
  const std::string visible(bytes);
  for (const DrivenGpu& gpu : gpus.gpus)
    if (const auto index = visible_index(&visible, gpu))
      must(*index >= 0);
  must(gpu_processes_text(parse_gpu_processes(gpu_processes_text(gpus))) ==
       gpu_processes_text(gpus));
  return 0;
}
