// Any bytes: a node whose indices are valid and that writing and reading gives again, or an Error.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/base/error.h"
#include "src/model/topo/distance.h"
#include "src/model/topo/readers/reader.h"
#include "src/model/topo/writers/writer.h"

namespace {

void require(bool condition) {
  if (!condition)
    std::abort();
}

void check_indices(const shmemctl::Node& node) {
  const int entries = static_cast<int>(node.pci.size());
  for (int i = 0; i < entries; ++i) {
    require(node.pci[static_cast<std::size_t>(i)].parent < i);
    require(node.pci[static_cast<std::size_t>(i)].host_bridge <
            static_cast<int>(node.host_bridges.size()));
  }
  for (const shmemctl::Gpu& gpu : node.gpus)
    require(gpu.pci < entries);
  for (const shmemctl::Nic& nic : node.nics)
    require(nic.pci < entries);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl;
  try {
    const Node node = read_nccl_xml(std::string(reinterpret_cast<const char*>(data), size), "x");
    check_indices(node);
    const DistanceMatrix matrix = distance_matrix(node);
    require(matrix.size() == node.gpus.size() + node.nics.size());
    Node back;
    try {
      back = read_nccl_xml(write_nccl_xml(node), "written");
    } catch (const Error&) {
      std::abort(); // what we write we must read
    }
    require(same_model(node, back));
  } catch (const Error& error) {
    require(error.code() == ExitCode::usage);
  }
  return 0;
}
