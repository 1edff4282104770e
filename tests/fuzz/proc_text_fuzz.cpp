// The texts below /proc that doctor reads, and the answer of the CUDA probe.
#include <cstdint>
#include <cstdlib>

#include "src/instruments/doctor/cuda_probe.h"
#include "src/instruments/doctor/support.h"

namespace {

void require(bool holds) {
  if (!holds)
    std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl::doctor;
  const std::string text(reinterpret_cast<const char*>(data), size);
  require(version_numbers(text).size() <= 4);
  for (const int number : version_numbers(text))
    require(number >= 0);
  if (const auto field = field_of(text, "CapEff:"))
    require(field->find('\n') == std::string::npos);
  if (const auto limit = find_limit(text, "Max locked memory"))
    require(!limit->text.empty());
  if (const auto mount = find_mount(text, "/dev/shm"))
    mount_size_bytes(mount->options);
  mount_size_bytes(text);
  if (const auto version = parse_nvidia_version(text))
    require(version_numbers(version->version).size() >= 2);
  registry_dword(text, "PeerMappingOverride");
  if (const auto word = selected_word(text))
    require(text.find("[" + *word + "]") != std::string::npos);
  const CudaProbe probe = parse_cuda_probe(text);
  require(!probe.problem.empty() || probe.init_result.has_value());
  // What was understood is understood again.
  const CudaProbe again = parse_cuda_probe(to_text(probe));
  require(again.init_result == probe.init_result && again.peers == probe.peers &&
          again.devices.size() == probe.devices.size());
  return 0;
}
