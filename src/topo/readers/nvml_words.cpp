// NVML's codes in words.
#include <utility>

#include "src/topo/readers/nvml.h"

namespace shmemctl {

const char* to_string(FabricState state) {
  switch (state) {
  case FabricState::not_supported:
    return "not supported";
  case FabricState::not_started:
    return "not started";
  case FabricState::in_progress:
    return "in progress";
  case FabricState::completed:
    return "completed";
  }
  return "?";
}

std::vector<std::string> throttle_words(std::uint64_t reasons) {
  static constexpr std::pair<std::uint64_t, const char*> harmful[] = {
      {0x04, "software power cap"},        {0x08, "hardware slowdown"},
      {0x20, "software thermal slowdown"}, {0x40, "hardware thermal slowdown"},
      {0x80, "hardware power brake"},
  };
  std::vector<std::string> words;
  for (const auto& [bit, word] : harmful)
    if ((reasons & bit) != 0)
      words.emplace_back(word);
  return words;
}

const char* p2p_status_word(int status) {
  switch (status) {
  case 0:
    return "ok";
  case 1:
    return "chipset not supported";
  case 2:
    return "GPU not supported";
  case 3:
    return "I/O hub topology not supported";
  case 4:
    return "disabled by regkey";
  case 5:
    return "not supported";
  default:
    return "unknown";
  }
}

} // namespace shmemctl
