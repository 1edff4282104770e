#include "src/runtime/nvshmem/kernel_state.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <mutex>
#include <optional>
#include <vector>

#include "kernels/cuda_error.h"
#include "src/base/dynamic_library.h"
#include "src/base/error.h"
#include "src/runtime/cuda/driver.h"
#include "src/runtime/gpu/gpu.h"

namespace shmemctl::nvshmem {

namespace {

/// A __constant__ that holds the job, or will hold it.
struct Place {
  const void* owner = nullptr;          ///< a CUmodule, a CUlibrary, or the value of `locate`
  nvshmemi_locate_job locate = nullptr; ///< null: `address` is valid
  CUdeviceptr address = 0;
  std::optional<DeviceJob> has; ///< the job that was written last
};

struct Places {
  std::mutex mutex;
  std::vector<Place> all;
  PeGpu* gpu = nullptr; ///< set while a job exists
};

/// Never destroyed, because modules register before main(), and exit handlers run last.
Places& places() {
  static Places* const made = new Places;
  return *made;
}

/// Functions of the driver that only this file uses; nullptr if the driver does not have them.
struct Driver {
  CUresult (*ctx_get_current)(CUcontext*) = nullptr;
  CUresult (*ctx_get_device)(CUdevice*) = nullptr;
  CUresult (*module_get_global)(CUdeviceptr*, size_t*, CUmodule, const char*) = nullptr;
  CUresult (*library_get_global)(CUdeviceptr*, size_t*, CUlibrary, const char*) = nullptr;
};

Driver find_driver() {
  Driver found;
  const char* const asked = std::getenv("SHMEMCTL_CUDA_LIBRARY");
  const auto library = DynamicLibrary::open({asked && *asked ? asked : "libcuda.so.1"}, nullptr,
                                            {.stay_loaded = true});
  auto* const get =
      library ? library->function<decltype(::cuGetProcAddress)>("cuGetProcAddress_v2") : nullptr;
  const int version = library ? cuda::lookup_version(*library) : CUDA_VERSION;
  const auto find = [&]<class Function>(Function& function, const char* name,
                                        int newest = INT_MAX) {
    void* address = nullptr;
    CUdriverProcAddressQueryResult status{};
    if (get && get(name, &address, std::min(version, newest), CU_GET_PROC_ADDRESS_DEFAULT,
                   &status) == CUDA_SUCCESS)
      function = reinterpret_cast<Function>(address);
  };
  find(found.ctx_get_current, "cuCtxGetCurrent");
  // Since CUDA 13 the driver's newest version of it has a second parameter; cuda.h declares that
  // version under the name cuCtxGetDevice_v2 only.
  find(found.ctx_get_device, "cuCtxGetDevice", 12000);
  find(found.module_get_global, "cuModuleGetGlobal");
  find(found.library_get_global, "cuLibraryGetGlobal");
  return found;
}

const Driver& driver() {
  static const Driver made = find_driver();
  return made;
}

constexpr const char* refused_fix =
    "check for an earlier failure of this GPU, and that the module was loaded on the GPU of "
    "this PE";

Error refused(const std::string& attempted, const std::string& message,
              const std::string& fix = refused_fix) {
  return {ExitCode::unavailable, "device state of a module's kernels", attempted, message, fix};
}

/// The address of the __constant__ on this PE's device. Throws Error.
void* address_of(nvshmemi_locate_job locate) {
  size_t size = 0;
  void* address = nullptr;
  const cudaError_t result = locate(&address, &size);
  if (result == cudaSuccess && size != sizeof(DeviceJob))
    throw Error(ExitCode::usage, "libnvshmem_device.a", "use",
                "its kernels expect a device state of " + std::to_string(size) +
                    " bytes, and the host library's has " + std::to_string(sizeof(DeviceJob)),
                "link libnvshmem_host.a and libnvshmem_device.a of the same installation");
  if (result != cudaSuccess)
    throw refused("find", cuda_error_text(result), fix_of_cuda_error(result, refused_fix));
  return address;
}

/// Writes the job to all places that do not have it yet. The caller holds the mutex.
void write(Places& held, PeGpu& gpu) {
  const DeviceJob job = gpu.job();
  const auto is_old = [&](const Place& place) {
    return !place.has || std::memcmp(&*place.has, &job, sizeof job) != 0;
  };
  if (std::none_of(held.all.begin(), held.all.end(), is_old))
    return;
  require_own_device(gpu);
  for (Place& place : held.all) {
    if (!is_old(place))
      continue;
    void* const address =
        place.locate ? address_of(place.locate) : reinterpret_cast<void*>(place.address);
    gpu.copy(address, &job, sizeof job);
    place.has = job;
  }
}

/// Adds the place, and writes the job if there is one.
void add(Place place) {
  Places& all = places();
  const std::lock_guard lock(all.mutex);
  const auto known = std::find_if(all.all.begin(), all.all.end(),
                                  [&](const Place& each) { return each.owner == place.owner; });
  if (known == all.all.end())
    all.all.push_back(place);
  else if (known->address != place.address)
    *known = place; // a new module whose handle an unloaded one had
  if (all.gpu)
    write(all, *all.gpu);
}

template <class Owner>
bool add_owner(Owner owner, CUresult (*get_global)(CUdeviceptr*, size_t*, Owner, const char*)) {
  if (!get_global)
    throw refused("find", "the CUDA driver is missing or too old", "install a newer driver");
  Place place{owner, nullptr, 0, {}};
  std::size_t size = 0;
  if (get_global(&place.address, &size, owner, job_symbol) != CUDA_SUCCESS)
    return false;
  if (size != sizeof(DeviceJob))
    throw Error(ExitCode::usage, "module", "use",
                "its kernels expect a device state of " + std::to_string(size) +
                    " bytes, and the host library's has " + std::to_string(sizeof(DeviceJob)),
                "compile the module with the headers that came with the library");
  add(place);
  return true;
}

} // namespace

void add_job(nvshmemi_locate_job locate) {
  add({reinterpret_cast<const void*>(locate), locate, 0, {}});
}

void remove_job(nvshmemi_locate_job locate) {
  remove_module(reinterpret_cast<const void*>(locate));
}

bool add_module(CUmodule module) {
  return add_owner(module, driver().module_get_global);
}

bool add_library(CUlibrary library) {
  return add_owner(library, driver().library_get_global);
}

void remove_module(const void* module_or_library) {
  Places& all = places();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.all, [&](const Place& each) { return each.owner == module_or_library; });
}

void write_job(PeGpu& gpu) {
  Places& all = places();
  const std::lock_guard lock(all.mutex);
  all.gpu = &gpu;
  write(all, gpu);
}

void forget_job() {
  Places& all = places();
  const std::lock_guard lock(all.mutex);
  all.gpu = nullptr;
  for (Place& place : all.all)
    place.has.reset();
}

int current_device() {
  CUcontext context = nullptr;
  CUdevice device = -1;
  const Driver& calls = driver();
  if (!calls.ctx_get_current || !calls.ctx_get_device ||
      calls.ctx_get_current(&context) != CUDA_SUCCESS || !context ||
      calls.ctx_get_device(&device) != CUDA_SUCCESS)
    return -1;
  return device;
}

void require_own_device(PeGpu& gpu) {
  const int current = current_device();
  if (current >= 0 && current != gpu.info().device)
    throw Error(ExitCode::usage, "GPU " + std::to_string(current), "use",
                "it is the calling thread's current device, but this PE uses GPU " +
                    std::to_string(gpu.info().device),
                "call cudaSetDevice(" + std::to_string(gpu.info().device) +
                    ") in this thread, or choose the other GPU before nvshmem_init");
}

} // namespace shmemctl::nvshmem
