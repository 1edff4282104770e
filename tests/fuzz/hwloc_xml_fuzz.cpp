// read_hwloc_xml: any bytes give a node that may be walked and dumped, or an Error.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/base/error.h"
#include "src/model/topo/distance.h"
#include "src/model/topo/node.h"
#include "src/model/topo/pcie.h"
#include "src/model/topo/readers/reader.h"
#include "src/model/topo/writers/writer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const Node node = read_hwloc_xml(text, "fuzz");
    if (!shape_problem(node).empty())
      std::abort();
    if (node.gpus.size() + node.nics.size() < 64)
      distance_matrix(node);
    for (std::size_t i = 0; i < node.pci.size(); ++i)
      synthesized_sysfs_path(node, static_cast<int>(i));
    if (!same_model(node, read_hwloc_xml(write_hwloc_xml(node), "dump")))
      std::abort();
  } catch (const Error& error) {
    if (error.code() != ExitCode::usage)
      std::abort();
  }
  return 0;
}
