// The order in which libibverbs lists devices: by the kernel's index, which sysfs does not show.
#include "src/base/dynamic_library.h"
#include "src/topo/readers/machine_parts.h"

namespace shmemctl {

std::vector<std::string> verbs_device_order() {
  struct VerbsDevice; // only ever handed back to the library
  const std::optional<DynamicLibrary> verbs = DynamicLibrary::open({"libibverbs.so.1"});
  if (!verbs)
    return {};
  auto* get_list = verbs->function<VerbsDevice**(int*)>("ibv_get_device_list");
  auto* free_list = verbs->function<void(VerbsDevice**)>("ibv_free_device_list");
  auto* name_of = verbs->function<const char*(VerbsDevice*)>("ibv_get_device_name");
  if (get_list == nullptr || free_list == nullptr || name_of == nullptr)
    return {};
  int count = 0;
  VerbsDevice** devices = get_list(&count);
  if (devices == nullptr)
    return {};
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i)
    if (const char* name = name_of(devices[i]))
      names.emplace_back(name);
  free_list(devices);
  return names;
}

} // namespace shmemctl
