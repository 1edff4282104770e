#include "src/topo/readers/xid.h"

#include <algorithm>
#include <array>

namespace shmemctl {

namespace {

constexpr const char* of_memory =
    "the GPU's memory has failed: nvidia-smi -q -d ECC,ROW_REMAPPER; drain the node and reset the "
    "GPU";
constexpr const char* of_link =
    "an NVLink has failed: nvidia-smi nvlink -e; reset the GPU and look at the cables";
constexpr const char* of_gpu =
    "drain the node and reset the GPU; if it comes again, have the GPU looked at";
constexpr const char* of_bus =
    "the GPU does not answer on PCIe any more: restart the node; look at its power, heat and seat";

struct Entry {
  std::uint64_t number;
  XidMeaning meaning;
};
constexpr std::array entries{
    Entry{13, {"a kernel made a fault: a trap, a bad address or instruction", nullptr}},
    Entry{31, {"a page fault: memory was used that is not mapped, or not any more", nullptr}},
    Entry{32, {"commands to the GPU were damaged, as on a bad PCIe link", of_gpu}},
    Entry{38, {"the GPU's firmware had an error", of_gpu}},
    Entry{39, {"a copy engine made a fault", nullptr}},
    Entry{40, {"a copy engine made a fault", nullptr}},
    Entry{41, {"a copy engine made a fault", nullptr}},
    Entry{43, {"a program's work was stopped after a fault of its own", nullptr}},
    Entry{45, {"work was removed: its program ended, or had failed before", nullptr}},
    Entry{46, {"the GPU stopped working on what it was given", of_gpu}},
    Entry{48, {"an uncorrectable ECC error (two bits)", of_memory}},
    Entry{61, {"the GPU's power controller warned", of_gpu}},
    Entry{62, {"the GPU's power controller halted", of_gpu}},
    Entry{63, {"a row or page of memory is taken out of use", of_memory}},
    Entry{64, {"a row or page of memory could not be taken out of use", of_memory}},
    Entry{69, {"a kernel made a fault, or its launch was damaged", nullptr}},
    Entry{74, {"an NVLink error", of_link}},
    Entry{79, {"the GPU has fallen off the bus", of_bus}},
    Entry{92, {"many corrected ECC errors", of_memory}},
    Entry{94,
          {"an uncorrectable ECC error, contained: it ends the programs that it hit", of_memory}},
    Entry{95, {"an uncorrectable ECC error, not contained: it ends every program", of_memory}},
    Entry{109, {"the GPU could not be taken from one program for another one", of_gpu}},
    Entry{110, {"a security fault", of_gpu}},
    Entry{119, {"the GPU's system processor (GSP) did not answer", of_gpu}},
    Entry{120, {"the GPU's system processor (GSP) had an error", of_gpu}},
    Entry{121, {"an error on the link between GPU and processor (C2C)", of_gpu}},
    Entry{137,
          {"a peer refused an access over NVLink: its memory is not mapped, or not any more",
           nullptr}},
    Entry{140, {"an uncorrectable ECC error that was not recovered from", of_memory}},
    Entry{143, {"the GPU could not be started", of_gpu}},
    Entry{144, {"an NVLink error", of_link}},
    Entry{145, {"an NVLink error", of_link}},
    Entry{146, {"an NVLink error", of_link}},
    Entry{147, {"an NVLink error", of_link}},
    Entry{148, {"an NVLink error", of_link}},
    Entry{149, {"an NVLink error", of_link}},
    Entry{150, {"an NVLink error", of_link}},
    Entry{154,
          {"the driver says how the GPU can be recovered",
           "nvidia-smi -q names the recovery action: do that"}},
};

} // namespace

const XidMeaning* meaning_of_xid(std::uint64_t number) {
  const auto* found = std::find_if(entries.begin(), entries.end(),
                                   [&](const Entry& entry) { return entry.number == number; });
  return found == entries.end() ? nullptr : &found->meaning;
}

} // namespace shmemctl
