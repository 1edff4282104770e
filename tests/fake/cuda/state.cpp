#include "tests/fake/cuda/state.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace fake_cuda {

std::mutex mutex;
std::map<CUdeviceptr, std::size_t> reserved;
std::map<CUdeviceptr, Mapping> mapped;
std::map<std::string, int> calls;
std::map<int, std::size_t> committed; // by device
std::uint64_t next_id = 1;
bool initialized = false;
thread_local std::vector<CUcontext> contexts;
std::map<CUdeviceptr, Mapping> allocated;     // cuMemAlloc and cuIpcOpenMemHandle
std::map<std::uintptr_t, std::size_t> pinned; // cuMemHostRegister
std::map<std::uintptr_t, std::size_t> host;   // cuMemHostAlloc
std::set<std::uintptr_t> streams;
std::uintptr_t next_stream = 0x1000;
std::map<std::uintptr_t, Event> events;
std::uintptr_t next_event = 0x2000000;
int retained = 0;
bool held = false;     // what is in streams is not done
bool blocking = false; // nor does a question about them return
int blocked = 0;       // that do not return now
std::condition_variable let_go_on;

bool strict() {
  return std::getenv("FAKE_CUDA_STRICT") != nullptr;
}
bool strict_everywhere() {
  return strict() && std::strcmp(std::getenv("FAKE_CUDA_STRICT"), "vmm") != 0;
}

long number(const char* name, long otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atol(text) : otherwise;
}

int devices() {
  return static_cast<int>(number("FAKE_CUDA_DEVICES", 2));
}

int driver_version() {
  return static_cast<int>(number("FAKE_CUDA_DRIVER", CUDA_VERSION));
}

namespace {

CUresult broken = CUDA_SUCCESS; // what every call answers (FAKE_CUDA_STICKY)

/// After a kernel's failure a real driver still pushes and pops contexts.
bool touches_device(const std::string& name) {
  return name.rfind("cuCtx", 0) != 0 && name.rfind("cuDevice", 0) != 0;
}

} // namespace

CUresult begin(const char* name) {
  if (!initialized && std::strcmp(name, "cuInit") != 0)
    return CUDA_ERROR_NOT_INITIALIZED;
  if (broken != CUDA_SUCCESS && touches_device(name))
    return broken;
  const char* fault = std::getenv("FAKE_CUDA_FAIL");
  const int count = ++calls[name];
  if (!fault)
    return CUDA_SUCCESS;
  const std::string text(fault), function = text.substr(0, text.find(':'));
  if (function != name)
    return CUDA_SUCCESS;
  const std::string rest = text.substr(text.find(':') + 1);
  const bool now = count == std::atoi(rest.c_str());
  if (!now)
    return CUDA_SUCCESS;
  const auto failure = static_cast<CUresult>(std::atoi(rest.substr(rest.find(':') + 1).c_str()));
  if (std::getenv("FAKE_CUDA_STICKY"))
    broken = failure;
  return failure;
}

void let_go(Allocation* memory) {
  if (--memory->uses > 0)
    return;
  committed[memory->device] -= memory->size;
  ::close(memory->file);
  delete memory;
}

std::byte* make_alias(int file, std::size_t size) {
  void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

std::byte* reach(CUdeviceptr address, std::size_t& size) {
  for (const auto* table : {&mapped, &allocated}) {
    auto piece = table->upper_bound(address);
    if (piece == table->begin())
      continue;
    --piece;
    const std::size_t offset = address - piece->first;
    if (offset >= piece->second.size)
      continue;
    size = std::min(size, piece->second.size - offset);
    return piece->second.alias + offset;
  }
  // Up to the next piece of device memory.
  for (const auto* table : {&mapped, &allocated}) {
    const auto next = table->lower_bound(address);
    if (next != table->end())
      size = std::min<std::size_t>(size, next->first - address);
  }
  return reinterpret_cast<std::byte*>(address);
}

Mapping* mapping_at(CUdeviceptr address, CUdeviceptr& begin_of) {
  for (auto* table : {&mapped, &allocated}) {
    auto piece = table->upper_bound(address);
    if (piece == table->begin())
      continue;
    --piece;
    begin_of = piece->first;
    if (address - begin_of < piece->second.size)
      return &piece->second;
  }
  return nullptr;
}

} // namespace fake_cuda
