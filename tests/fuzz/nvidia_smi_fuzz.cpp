// Any bytes: a node whose matrix is square and symmetric, or an Error.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/base/error.h"
#include "src/model/topo/readers/reader.h"

namespace {

void require(bool condition) {
  if (!condition)
    std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl;
  try {
    const Node node = read_nvidia_smi(std::string(reinterpret_cast<const char*>(data), size), "x");
    require(node.recorded.has_value() && !node.gpus.empty());
    const std::size_t count = node.gpus.size() + node.nics.size();
    require(node.recorded->size() == count);
    for (std::size_t i = 0; i < count; ++i) {
      require((*node.recorded)[i].size() == count);
      for (std::size_t j = 0; j < count; ++j) {
        require((*node.recorded)[i][j] == (*node.recorded)[j][i]);
        require(((*node.recorded)[i][j].path == PathClass::self) == (i == j));
      }
    }
  } catch (const Error& error) {
    require(error.message().find("line ") != std::string::npos);
  }
  return 0;
}
