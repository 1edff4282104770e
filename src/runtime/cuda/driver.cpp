#include "src/runtime/cuda/driver.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "src/base/process.h"
#include "src/base/text.h"

namespace shmemctl::cuda {

namespace {

std::string uuid_text(const CUuuid& uuid) {
  std::string text = "GPU";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10)
      text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

/// CUDA_ERROR_CONTAINED, which headers of older toolkits do not define: memory has failed, and only
/// this process has to end.
constexpr auto error_contained = static_cast<CUresult>(226);

/// The fix for this kind of failure.
const char* fix_of(CUresult result) {
  switch (result) {
  case CUDA_ERROR_OUT_OF_MEMORY:
    return "check which processes use the memory (that of a GPU: with nvidia-smi), or lower "
           "SHMEMCTL_SYMMETRIC_SIZE";
  case CUDA_ERROR_ECC_UNCORRECTABLE:
  case error_contained:
    return "drain the node and reset the GPU: its memory has failed (nvidia-smi -q -d ECC)";
  case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    return "reset the GPU and check the cables: an NVLink has failed (nvidia-smi nvlink -e)";
  case CUDA_ERROR_DEVICE_UNAVAILABLE:
    return "check the compute mode (nvidia-smi -q -d COMPUTE): in an exclusive mode only one "
           "process "
           "may use the GPU";
  case CUDA_ERROR_SYSTEM_NOT_READY:
    return "start the fabric manager: systemctl start nvidia-fabricmanager";
  case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    return "reboot, or reload the driver's module: its version differs from that of libcuda";
  case CUDA_ERROR_LAUNCH_TIMEOUT:
    return "use a GPU that drives no display (nvidia-smi -q -d DISPLAY): a display ends long "
           "kernels";
  case CUDA_ERROR_ASSERT:
    return "check this PE's output for the assert that has failed in a kernel";
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_LAUNCH_FAILED:
    return "run the program under compute-sanitizer: a kernel of this PE has failed; if that finds "
           "nothing, check dmesg for Xid errors other than 13, 31 and 43 (a broken GPU)";
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_UNKNOWN:
    return "check dmesg for Xid errors (79: the GPU has left the bus) and nvidia-smi; reset the "
           "GPU or restart the node";
  case CUDA_ERROR_NOT_PERMITTED:
  case CUDA_ERROR_OPERATING_SYSTEM:
    return "check the limits of the container, and dmesg for messages of the driver";
  default:
    return "check dmesg for Xid errors, and run shmemctl doctor --only driver,gpu";
  }
}

} // namespace

std::shared_ptr<const Driver> Driver::open(const std::string& library_file, std::string& why) {
  std::shared_ptr<const Functions> functions = load_functions(library_file, why);
  return functions ? start(std::move(functions), why) : nullptr;
}

std::shared_ptr<const Driver> Driver::start(std::shared_ptr<const Functions> functions,
                                            std::string& why) {
  const std::shared_ptr<Driver> driver(new Driver(std::move(functions)));
  const Functions& call = driver->call();
  const CUresult begun = [&] {
    const SignalsBlocked blocked(SignalsBlocked::But::faults); // the driver starts threads
    return call.init(0);
  }();
  if (begun != CUDA_SUCCESS) {
    why = "cuInit: " + driver->text_of(begun);
    return nullptr;
  }
  int count = 0;
  call.driver_get_version(&driver->version_);
  if (const CUresult result = call.device_get_count(&count); result != CUDA_SUCCESS || count == 0) {
    why = result == CUDA_SUCCESS ? "no GPU is visible"
                                 : "cuDeviceGetCount: " + driver->text_of(result);
    return nullptr;
  }
  for (int ordinal = 0; ordinal < count; ++ordinal)
    driver->devices_.push_back(driver->describe(ordinal));
  return driver;
}

std::string Driver::text_of(CUresult result) const {
  const char* name = nullptr;
  const char* words = nullptr;
  functions_->get_error_name(result, &name);
  functions_->get_error_string(result, &words);
  return (name ? name : "error " + std::to_string(static_cast<int>(result))) +
         (words ? std::string(": ") + words : "");
}

void Driver::require(CUresult result, const std::string& subject, const std::string& attempted,
                     Where where) const {
  if (result != CUDA_SUCCESS)
    throw error_of(result, subject, attempted, std::move(where));
}

Error Driver::error_of(CUresult result, const std::string& subject, const std::string& attempted,
                       Where where, const DriverReport& driver_report) const {
  return Error(ExitCode::unavailable, subject, attempted,
               text_of(result) + (driver_report.words.empty() ? "" : "; " + driver_report.words),
               driver_report.fix.empty() ? fix_of(result) : driver_report.fix, std::move(where));
}

bool Driver::is_of_device(CUresult result) {
  switch (result) {
  case CUDA_ERROR_NO_DEVICE:
  case CUDA_ERROR_DEVICE_UNAVAILABLE:
  case CUDA_ERROR_ECC_UNCORRECTABLE:
  case CUDA_ERROR_NVLINK_UNCORRECTABLE:
  case error_contained:
  case CUDA_ERROR_OPERATING_SYSTEM:
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_CONTEXT_IS_DESTROYED:
  case CUDA_ERROR_ASSERT:
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_LAUNCH_FAILED:
  case CUDA_ERROR_MPS_RPC_FAILURE:
  case CUDA_ERROR_MPS_CLIENT_TERMINATED:
  case CUDA_ERROR_UNKNOWN:
    return true;
  default:
    return false;
  }
}

DeviceInfo Driver::describe(int ordinal) const {
  const std::string subject = "GPU " + std::to_string(ordinal);
  DeviceInfo info;
  info.ordinal = ordinal;
  CUdevice device = 0;
  require(functions_->device_get(&device, ordinal), subject, "open");
  std::array<char, 128> text{};
  if (functions_->device_get_name(text.data(), text.size() - 1, device) == CUDA_SUCCESS)
    info.name = text.data();
  text.fill('\0');
  if (functions_->device_get_pci_bus_id(text.data(), text.size() - 1, device) == CUDA_SUCCESS)
    info.pci_address = lower(text.data());
  CUuuid uuid{};
  if (functions_->device_get_uuid(&uuid, device) == CUDA_SUCCESS)
    info.uuid = uuid_text(uuid);
  functions_->device_total_mem(&info.total_bytes, device);
  const auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    return functions_->device_get_attribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
  };
  info.compute_major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  info.compute_minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  info.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  constexpr double transfers_of_clock = 2, bits_of_byte = 8, from_kHz_GBps = 1e-6;
  info.memory_GBps = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) * transfers_of_clock *
                     attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / bits_of_byte *
                     from_kHz_GBps;
  info.virtual_memory = attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) != 0;
  info.descriptors =
      attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) != 0;
  info.fabric_handles = attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED) != 0;
  info.rdma_of_virtual =
      attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED) != 0;
  info.dma_buf = attribute(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED) != 0;
  info.rdma_order = attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING);
  info.rdma_flush = (attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS) &
                     CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST) != 0;
  info.cooperative_launch = attribute(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) != 0;
  info.stream_operations = attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS) != 0;
  info.unified_addressing = attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING) != 0;
  info.host_atomics = attribute(CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED) != 0;
  return info;
}

namespace {

/// Looks up functions by cuGetProcAddress, in the version that the toolkit's header declares.
/// cuGetProcAddress_v2 exists since CUDA 12.0, and since then all versions of the functions in the
/// table have had the same parameters.
class Lookup {
public:
  explicit Lookup(const DynamicLibrary& library)
      : get_(library.function<std::remove_pointer_t<decltype(&::cuGetProcAddress)>>(
            "cuGetProcAddress_v2")),
        version_(lookup_version(library)) {}

  bool works() const { return get_ != nullptr; }

  template <class Function>
  void require(Function*& function, const char* symbol) {
    void* address = nullptr;
    CUdriverProcAddressQueryResult found{};
    if (get_(symbol, &address, version_, CU_GET_PROC_ADDRESS_DEFAULT, &found) != CUDA_SUCCESS ||
        address == nullptr) {
      if (missing_.empty())
        missing_ = symbol;
      return;
    }
    function = reinterpret_cast<Function*>(address);
  }
  const std::string& missing() const { return missing_; }

private:
  decltype(&::cuGetProcAddress) get_;
  int version_;
  std::string missing_;
};

} // namespace

int lookup_version(const DynamicLibrary& library) {
  auto* const get_version =
      library.function<std::remove_pointer_t<decltype(&::cuDriverGetVersion)>>(
          "cuDriverGetVersion");
  int version = 0;
  if (get_version == nullptr || get_version(&version) != CUDA_SUCCESS)
    return CUDA_VERSION;
  return std::min<int>(version, CUDA_VERSION);
}

std::shared_ptr<const Functions> load_functions(const std::string& file, std::string& why) {
  std::optional<DynamicLibrary> library =
      DynamicLibrary::open({file}, &why, DynamicLibrary::Needs{.stay_loaded = true});
  if (!library)
    return nullptr;
  Lookup lookup(*library);
  if (!lookup.works()) {
    why = library->file() + " has no cuGetProcAddress_v2: the driver is older than CUDA 12";
    return nullptr;
  }
  auto table = std::make_shared<Functions>();
#define SHMEMCTL_CUDA_REQUIRE(member, name) lookup.require(table->member, #name);
  SHMEMCTL_CUDA_FUNCTIONS(SHMEMCTL_CUDA_REQUIRE)
#undef SHMEMCTL_CUDA_REQUIRE
  if (!lookup.missing().empty()) {
    why = library->file() + " has no " + lookup.missing() + ": update the NVIDIA driver";
    return nullptr;
  }
  table->library = std::move(library);
  return table;
}

} // namespace shmemctl::cuda
