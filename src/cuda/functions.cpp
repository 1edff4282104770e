#include "src/cuda/functions.h"

namespace shmemctl::cuda {

namespace {

/// cuGetProcAddress finds the version of a function that the toolkit's header declares.
class Lookup {
public:
  explicit Lookup(const DynamicLibrary& library)
      : get_(library.function<std::remove_pointer_t<decltype(&::cuGetProcAddress)>>(
            "cuGetProcAddress_v2")) {}

  bool works() const { return get_ != nullptr; }

  template <class Function>
  void require(Function*& function, const char* symbol) {
    void* address = nullptr;
    CUdriverProcAddressQueryResult found{};
    if (get_(symbol, &address, CUDA_VERSION, CU_GET_PROC_ADDRESS_DEFAULT, &found) != CUDA_SUCCESS ||
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
  std::string missing_;
};

} // namespace

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
