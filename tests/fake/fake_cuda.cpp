// A CUDA driver without a GPU, for tests: its devices' memory is host memory that the kernel keeps
// inaccessible until cuMemSetAccess. As strict as the real one about sizes, whole mappings and
// order, and with limits and failures that a test asks for:
//   FAKE_CUDA_DEVICES  how many (2)
//   FAKE_CUDA_BYTES    memory of each (1 GiB); what is committed beyond is "out of memory"
//   FAKE_CUDA_FAIL     "cuMemMap:3:700": the third call of that function answers 700
//   FAKE_CUDA_STICKY   what failed once fails from then on, in every call that touches the device
//   FAKE_CUDA_NO_PEER  no device reaches another one
//   FAKE_CUDA_LACKS    number of a device attribute that is 0 (102: virtual memory)
//   FAKE_CUDA_STRICT   processors cannot touch the devices' memory at all: only copies can
#include <cuda.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace {

constexpr std::size_t granularity = 2u << 20;

struct Allocation {
  int file = -1;
  std::size_t size = 0;
  int device = 0;
  int uses = 0; // its handle and its mappings
};
struct Mapping {
  std::size_t size = 0;
  Allocation* memory = nullptr;
  std::byte* alias = nullptr; // where the made-up driver itself reads and writes it
  bool imported = false;      // by cuIpcOpenMemHandle
};
/// What a process hands to another one.
struct IpcHandle {
  std::uint64_t magic;
  std::int64_t pid;
  std::int64_t file;
  std::uint64_t size;
};
constexpr std::uint64_t ipc_magic = 0x66616b6569706331;
static_assert(sizeof(IpcHandle) <= sizeof(CUipcMemHandle));

std::mutex mutex;
std::map<CUdeviceptr, std::size_t> reserved;
std::map<CUdeviceptr, Mapping> mapped;
std::map<std::string, int> calls;
std::map<int, std::size_t> committed; // by device
bool initialized = false;
thread_local std::vector<CUcontext> contexts;
std::map<CUdeviceptr, Mapping> allocated;     // cuMemAlloc and cuIpcOpenMemHandle
std::map<std::uintptr_t, std::size_t> pinned; // cuMemHostRegister
std::map<std::uintptr_t, std::size_t> host;   // cuMemHostAlloc
std::set<std::uintptr_t> streams;
std::uintptr_t next_stream = 0x1000;
int retained = 0;
bool held = false;     // what is in streams is not done
bool blocking = false; // nor does a question about them return
int blocked = 0;       // that do not return now
std::condition_variable let_go_on;
CUresult broken = CUDA_SUCCESS; // what every call answers (FAKE_CUDA_STICKY)

bool strict() {
  return std::getenv("FAKE_CUDA_STRICT") != nullptr;
}

long number(const char* name, long otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atol(text) : otherwise;
}

int devices() {
  return static_cast<int>(number("FAKE_CUDA_DEVICES", 2));
}

/// After a kernel's failure a real driver still pushes and pops contexts.
bool touches_device(const std::string& name) {
  return name.rfind("cuCtx", 0) != 0 && name.rfind("cuDevice", 0) != 0;
}

/// Counts the call; not CUDA_SUCCESS if it is the one that shall fail.
CUresult begin(const char* name) {
  if (!initialized && std::strcmp(name, "cuInit") != 0)
    return CUDA_ERROR_NOT_INITIALIZED;
  if (broken != CUDA_SUCCESS && touches_device(name))
    return broken;
  const char* wish = std::getenv("FAKE_CUDA_FAIL");
  const int count = ++calls[name];
  if (!wish)
    return CUDA_SUCCESS;
  const std::string text(wish), function = text.substr(0, text.find(':'));
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

#define BEGIN(name)                                                                                \
  const std::lock_guard lock(mutex);                                                               \
  if (const CUresult failure = begin(#name); failure != CUDA_SUCCESS)                              \
    return failure;
#define NEED_CONTEXT                                                                               \
  if (contexts.empty())                                                                            \
    return CUDA_ERROR_INVALID_CONTEXT;

void let_go(Allocation* memory) {
  if (--memory->uses > 0)
    return;
  committed[memory->device] -= memory->size;
  ::close(memory->file);
  delete memory;
}

/// The reservation that holds all of it.
bool is_reserved(CUdeviceptr at, std::size_t size) {
  auto next = reserved.upper_bound(at);
  if (next == reserved.begin())
    return false;
  --next;
  return at + size <= next->first + next->second;
}

bool touches_mapping(CUdeviceptr at, std::size_t size) {
  for (const auto& [begin_of, mapping] : mapped)
    if (at < begin_of + mapping.size && begin_of < at + size)
      return true;
  return false;
}

#define NEED_STREAM(stream)                                                                        \
  if (streams.count(reinterpret_cast<std::uintptr_t>(stream)) == 0)                                \
    return CUDA_ERROR_INVALID_HANDLE;

std::byte* make_alias(int file, std::size_t size) {
  void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}

/// The piece of device memory at `address`, as this library reaches it, and how much of it follows;
/// other memory is the host's, which is not asked about.
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

CUresult init(unsigned flags) {
  BEGIN(cuInit)
  initialized = true;
  return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult get_version(int* version) {
  BEGIN(cuDriverGetVersion)
  *version = 12080;
  return CUDA_SUCCESS;
}
CUresult error_name(CUresult error, const char** text) {
  *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
  return CUDA_SUCCESS;
}
CUresult error_string(CUresult error, const char** text) {
  *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "a failure that a test asked for";
  return CUDA_SUCCESS;
}
CUresult device_get(CUdevice* device, int ordinal) {
  BEGIN(cuDeviceGet)
  *device = ordinal;
  return ordinal >= 0 && ordinal < devices() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult device_count(int* count) {
  BEGIN(cuDeviceGetCount)
  *count = devices();
  return CUDA_SUCCESS;
}
CUresult attribute(int* value, CUdevice_attribute which, CUdevice) {
  BEGIN(cuDeviceGetAttribute)
  if (number("FAKE_CUDA_LACKS", -1) == static_cast<long>(which)) {
    *value = 0;
    return CUDA_SUCCESS;
  }
  switch (which) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = 9;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
  case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED:
    *value = 0;
    return CUDA_SUCCESS;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    *value = 132;
    return CUDA_SUCCESS;
  default:
    *value = 1;
    return CUDA_SUCCESS;
  }
}
CUresult device_name(char* name, int length, CUdevice device) {
  BEGIN(cuDeviceGetName)
  std::snprintf(name, static_cast<std::size_t>(length), "Fake GPU %d", device);
  return CUDA_SUCCESS;
}
CUresult bus_id(char* text, int length, CUdevice device) {
  BEGIN(cuDeviceGetPCIBusId)
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02X:00.0", 0x1a + device);
  return CUDA_SUCCESS;
}
CUresult device_uuid(CUuuid* uuid, CUdevice device) {
  BEGIN(cuDeviceGetUuid)
  std::memset(uuid, 0, sizeof *uuid);
  uuid->bytes[15] = static_cast<char>(device + 1);
  return CUDA_SUCCESS;
}
CUresult can_access(int* yes, CUdevice a, CUdevice b) {
  BEGIN(cuDeviceCanAccessPeer)
  *yes = a != b && !std::getenv("FAKE_CUDA_NO_PEER");
  return CUDA_SUCCESS;
}
CUresult p2p_attribute(int* value, CUdevice_P2PAttribute, CUdevice, CUdevice) {
  BEGIN(cuDeviceGetP2PAttribute)
  *value = 1;
  return CUDA_SUCCESS;
}
CUresult total_mem(std::size_t* bytes, CUdevice) {
  BEGIN(cuDeviceTotalMem)
  *bytes = static_cast<std::size_t>(number("FAKE_CUDA_BYTES", 1l << 30));
  return CUDA_SUCCESS;
}
CUresult retain(CUcontext* context, CUdevice device) {
  BEGIN(cuDevicePrimaryCtxRetain)
  ++retained;
  *context = reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(device) + 1);
  return CUDA_SUCCESS;
}
CUresult release(CUdevice) {
  BEGIN(cuDevicePrimaryCtxRelease)
  --retained;
  return CUDA_SUCCESS;
}
CUresult push(CUcontext context) {
  BEGIN(cuCtxPushCurrent)
  contexts.push_back(context);
  return CUDA_SUCCESS;
}
CUresult pop(CUcontext* context) {
  BEGIN(cuCtxPopCurrent)
  NEED_CONTEXT
  *context = contexts.back();
  contexts.pop_back();
  return CUDA_SUCCESS;
}
CUresult set_current(CUcontext context) {
  BEGIN(cuCtxSetCurrent)
  if (!contexts.empty())
    contexts.pop_back();
  if (context)
    contexts.push_back(context);
  return CUDA_SUCCESS;
}
CUresult priorities(int* least, int* greatest) {
  BEGIN(cuCtxGetStreamPriorityRange)
  NEED_CONTEXT
  *least = 0;
  *greatest = -5;
  return CUDA_SUCCESS;
}
CUresult stream_create(CUstream* stream, unsigned flags, int priority) {
  BEGIN(cuStreamCreateWithPriority)
  NEED_CONTEXT
  if (priority != -5 || flags != CU_STREAM_NON_BLOCKING)
    return CUDA_ERROR_INVALID_VALUE;
  streams.insert(next_stream);
  *stream = reinterpret_cast<CUstream>(next_stream++);
  return CUDA_SUCCESS;
}
CUresult stream_destroy(CUstream stream) {
  BEGIN(cuStreamDestroy)
  NEED_STREAM(stream)
  streams.erase(reinterpret_cast<std::uintptr_t>(stream));
  return CUDA_SUCCESS;
}
CUresult stream_synchronize(CUstream stream) {
  std::unique_lock lock(mutex);
  if (const CUresult failure = begin("cuStreamSynchronize"); failure != CUDA_SUCCESS)
    return failure;
  NEED_STREAM(stream)
  return CUDA_SUCCESS;
}
CUresult stream_query(CUstream stream) {
  std::unique_lock lock(mutex);
  if (const CUresult failure = begin("cuStreamQuery"); failure != CUDA_SUCCESS)
    return failure;
  NEED_STREAM(stream)
  ++blocked;
  let_go_on.wait(lock, [] { return !blocking; });
  --blocked;
  return held ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}
CUresult mem_info(std::size_t* free_bytes, std::size_t* total) {
  BEGIN(cuMemGetInfo)
  *total = static_cast<std::size_t>(number("FAKE_CUDA_BYTES", 1l << 30));
  *free_bytes = *total - committed[0];
  return CUDA_SUCCESS;
}
CUresult get_granularity(std::size_t* bytes, const CUmemAllocationProp*,
                         CUmemAllocationGranularity_flags) {
  BEGIN(cuMemGetAllocationGranularity)
  *bytes = granularity;
  return CUDA_SUCCESS;
}
CUresult reserve(CUdeviceptr* at, std::size_t size, std::size_t alignment, CUdeviceptr,
                 unsigned long long) {
  BEGIN(cuMemAddressReserve)
  if (size == 0 || size % granularity != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const std::size_t unit = alignment > granularity ? alignment : granularity;
  void* raw =
      ::mmap(nullptr, size + unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED)
    return CUDA_ERROR_OUT_OF_MEMORY;
  const auto start = reinterpret_cast<CUdeviceptr>(raw);
  const CUdeviceptr aligned = (start + unit - 1) / unit * unit;
  if (aligned > start)
    ::munmap(raw, aligned - start);
  if (start + unit > aligned)
    ::munmap(reinterpret_cast<void*>(aligned + size), start + unit - aligned);
  *at = aligned;
  reserved[aligned] = size;
  return CUDA_SUCCESS;
}
CUresult address_free(CUdeviceptr at, std::size_t size) {
  BEGIN(cuMemAddressFree)
  const auto found = reserved.find(at);
  if (found == reserved.end() || found->second != size || touches_mapping(at, size))
    return CUDA_ERROR_INVALID_VALUE;
  ::munmap(reinterpret_cast<void*>(at), size);
  reserved.erase(found);
  return CUDA_SUCCESS;
}
CUresult mem_create(CUmemGenericAllocationHandle* handle, std::size_t size,
                    const CUmemAllocationProp* wanted, unsigned long long) {
  BEGIN(cuMemCreate)
  NEED_CONTEXT
  if (size == 0 || size % granularity != 0 || wanted->type != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_INVALID_VALUE;
  const int device = wanted->location.id;
  const auto limit = static_cast<std::size_t>(number("FAKE_CUDA_BYTES", 1l << 30));
  if (committed[device] + size > limit)
    return CUDA_ERROR_OUT_OF_MEMORY;
  const int file = ::memfd_create("fake-gpu", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(size)) != 0)
    return CUDA_ERROR_OPERATING_SYSTEM;
  committed[device] += size;
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(new Allocation{file, size, device, 1});
  return CUDA_SUCCESS;
}
CUresult mem_release(CUmemGenericAllocationHandle handle) {
  BEGIN(cuMemRelease)
  let_go(reinterpret_cast<Allocation*>(handle));
  return CUDA_SUCCESS;
}
CUresult mem_map(CUdeviceptr at, std::size_t size, std::size_t offset,
                 CUmemGenericAllocationHandle handle, unsigned long long) {
  BEGIN(cuMemMap)
  auto* memory = reinterpret_cast<Allocation*>(handle);
  if (size == 0 || size % granularity != 0 || offset != 0 || size > memory->size ||
      !is_reserved(at, size) || touches_mapping(at, size))
    return CUDA_ERROR_INVALID_VALUE;
  if (::mmap(reinterpret_cast<void*>(at), size, PROT_NONE, MAP_SHARED | MAP_FIXED, memory->file,
             0) == MAP_FAILED)
    return CUDA_ERROR_OPERATING_SYSTEM;
  std::byte* const alias = make_alias(memory->file, size);
  if (!alias)
    return CUDA_ERROR_OPERATING_SYSTEM;
  ++memory->uses;
  mapped[at] = {size, memory, alias, false};
  return CUDA_SUCCESS;
}
CUresult mem_unmap(CUdeviceptr at, std::size_t size) {
  BEGIN(cuMemUnmap)
  const auto found = mapped.find(at);
  if (found == mapped.end() || found->second.size != size)
    return CUDA_ERROR_INVALID_VALUE;
  ::mmap(reinterpret_cast<void*>(at), size, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  ::munmap(found->second.alias, size);
  let_go(found->second.memory);
  mapped.erase(found);
  return CUDA_SUCCESS;
}
CUresult set_access(CUdeviceptr at, std::size_t size, const CUmemAccessDesc* access,
                    std::size_t count) {
  BEGIN(cuMemSetAccess)
  const auto found = mapped.find(at);
  if (found == mapped.end() || found->second.size != size || count != 1 ||
      access->location.id >= devices() || access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
    return CUDA_ERROR_INVALID_VALUE;
  return strict() || ::mprotect(reinterpret_cast<void*>(at), size, PROT_READ | PROT_WRITE) == 0
             ? CUDA_SUCCESS
             : CUDA_ERROR_OPERATING_SYSTEM;
}
CUresult export_handle(void* file, CUmemGenericAllocationHandle handle,
                       CUmemAllocationHandleType type, unsigned long long) {
  BEGIN(cuMemExportToShareableHandle)
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_NOT_SUPPORTED;
  const int copy = ::fcntl(reinterpret_cast<Allocation*>(handle)->file, F_DUPFD_CLOEXEC, 0);
  std::memcpy(file, &copy, sizeof copy);
  return copy < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}
CUresult import_handle(CUmemGenericAllocationHandle* handle, void* file,
                       CUmemAllocationHandleType type) {
  BEGIN(cuMemImportFromShareableHandle)
  NEED_CONTEXT
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_NOT_SUPPORTED;
  const int copy =
      ::fcntl(static_cast<int>(reinterpret_cast<std::uintptr_t>(file)), F_DUPFD_CLOEXEC, 0);
  struct stat status {};
  if (copy < 0 || ::fstat(copy, &status) != 0 || !S_ISREG(status.st_mode))
    return CUDA_ERROR_INVALID_HANDLE;
  constexpr int nobody = -1; // its memory is another one's
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(
      new Allocation{copy, static_cast<std::size_t>(status.st_size), nobody, 1});
  return CUDA_SUCCESS;
}
CUresult handle_for_range(void*, CUdeviceptr, std::size_t, CUmemRangeHandleType,
                          unsigned long long) {
  BEGIN(cuMemGetHandleForAddressRange)
  return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult memset_async(CUdeviceptr at, unsigned char value, std::size_t size, CUstream stream) {
  BEGIN(cuMemsetD8Async)
  NEED_CONTEXT
  NEED_STREAM(stream)
  while (size > 0) {
    std::size_t piece = size;
    std::byte* const place = reach(at, piece);
    std::memset(place, value, piece);
    at += piece;
    size -= piece;
  }
  return CUDA_SUCCESS;
}
CUresult memcpy_async(CUdeviceptr to, CUdeviceptr from, std::size_t size, CUstream stream) {
  BEGIN(cuMemcpyAsync)
  NEED_CONTEXT
  NEED_STREAM(stream)
  while (size > 0) {
    std::size_t piece = size;
    std::byte* const target = reach(to, piece);
    const std::byte* const source = reach(from, piece);
    if (piece == 8 && (to | from) % 8 == 0) // as the copy engine does: a flag is never half there
      __atomic_store_n(reinterpret_cast<std::uint64_t*>(target),
                       *reinterpret_cast<const std::uint64_t*>(source), __ATOMIC_RELEASE);
    else
      std::memmove(target, source, piece);
    to += piece;
    from += piece;
    size -= piece;
  }
  return CUDA_SUCCESS;
}
bool overlaps(const std::map<std::uintptr_t, std::size_t>& table, std::uintptr_t at,
              std::size_t size) {
  for (const auto& [begin_of, its_size] : table)
    if (at < begin_of + its_size && begin_of < at + size)
      return true;
  return false;
}
CUresult host_register(void* memory, std::size_t size, unsigned) {
  BEGIN(cuMemHostRegister)
  NEED_CONTEXT
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  if (size == 0 || at % 4096 != 0 || ::msync(memory, size, MS_ASYNC) != 0) // not all mapped
    return CUDA_ERROR_INVALID_VALUE;
  if (overlaps(pinned, at, size))
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  pinned[at] = size;
  return CUDA_SUCCESS;
}
CUresult host_unregister(void* memory) {
  BEGIN(cuMemHostUnregister)
  NEED_CONTEXT
  return pinned.erase(reinterpret_cast<std::uintptr_t>(memory)) == 1
             ? CUDA_SUCCESS
             : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}
CUresult host_pointer(CUdeviceptr* at, void* memory, unsigned) {
  BEGIN(cuMemHostGetDevicePointer)
  NEED_CONTEXT
  const auto place = reinterpret_cast<std::uintptr_t>(memory);
  *at = reinterpret_cast<CUdeviceptr>(memory);
  return overlaps(pinned, place, 1) || overlaps(host, place, 1) ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_VALUE;
}
CUresult host_alloc(void** memory, std::size_t size, unsigned) {
  BEGIN(cuMemHostAlloc)
  NEED_CONTEXT
  void* const at =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED)
    return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(at, 0x5a, size); // the driver does not clear it
  host[reinterpret_cast<std::uintptr_t>(at)] = size;
  *memory = at;
  return CUDA_SUCCESS;
}
CUresult free_host(void* memory) {
  BEGIN(cuMemFreeHost)
  NEED_CONTEXT
  const auto found = host.find(reinterpret_cast<std::uintptr_t>(memory));
  if (found == host.end())
    return CUDA_ERROR_INVALID_VALUE;
  ::munmap(memory, found->second);
  host.erase(found);
  return CUDA_SUCCESS;
}
/// Maps the file for the devices; with FAKE_CUDA_STRICT for nobody else.
CUresult add_allocation(CUdeviceptr* at, Allocation* memory, bool imported) {
  void* const place = ::mmap(nullptr, memory->size, strict() ? PROT_NONE : PROT_READ | PROT_WRITE,
                             MAP_SHARED, memory->file, 0);
  std::byte* const alias = make_alias(memory->file, memory->size);
  if (place == MAP_FAILED || !alias)
    return CUDA_ERROR_OPERATING_SYSTEM;
  *at = reinterpret_cast<CUdeviceptr>(place);
  allocated[*at] = {memory->size, memory, alias, imported};
  return CUDA_SUCCESS;
}
CUresult drop_allocation(CUdeviceptr at, bool imported) {
  const auto found = allocated.find(at);
  if (found == allocated.end() || found->second.imported != imported)
    return CUDA_ERROR_INVALID_VALUE;
  ::munmap(reinterpret_cast<void*>(at), found->second.size);
  ::munmap(found->second.alias, found->second.size);
  let_go(found->second.memory);
  allocated.erase(found);
  return CUDA_SUCCESS;
}
CUresult mem_alloc(CUdeviceptr* at, std::size_t size) {
  BEGIN(cuMemAlloc)
  NEED_CONTEXT
  const int device = static_cast<int>(reinterpret_cast<std::uintptr_t>(contexts.back())) - 1;
  const auto limit = static_cast<std::size_t>(number("FAKE_CUDA_BYTES", 1l << 30));
  const std::size_t whole = (size + 511) / 512 * 512;
  if (size == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (committed[device] + whole > limit)
    return CUDA_ERROR_OUT_OF_MEMORY;
  const int file = ::memfd_create("fake-gpu", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(whole)) != 0)
    return CUDA_ERROR_OPERATING_SYSTEM;
  committed[device] += whole;
  return add_allocation(at, new Allocation{file, whole, device, 1}, false);
}
CUresult mem_free(CUdeviceptr at) {
  BEGIN(cuMemFree)
  NEED_CONTEXT
  return drop_allocation(at, false);
}
CUresult ipc_get(CUipcMemHandle* handle, CUdeviceptr at) {
  BEGIN(cuIpcGetMemHandle)
  NEED_CONTEXT
  const auto found = allocated.find(at);
  if (found == allocated.end() || found->second.imported)
    return CUDA_ERROR_INVALID_VALUE;
  const IpcHandle words{ipc_magic, ::getpid(), found->second.memory->file, found->second.size};
  std::memset(handle, 0, sizeof *handle);
  std::memcpy(handle, &words, sizeof words);
  return CUDA_SUCCESS;
}
CUresult ipc_open(CUdeviceptr* at, CUipcMemHandle handle, unsigned flags) {
  BEGIN(cuIpcOpenMemHandle)
  NEED_CONTEXT
  IpcHandle words{};
  std::memcpy(&words, &handle, sizeof words);
  if (words.magic != ipc_magic || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
    return CUDA_ERROR_INVALID_VALUE;
  if (words.pid == ::getpid())
    return CUDA_ERROR_INVALID_CONTEXT;
  const std::string path =
      "/proc/" + std::to_string(words.pid) + "/fd/" + std::to_string(words.file);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0)
    return CUDA_ERROR_INVALID_HANDLE;
  constexpr int nobody = -1;
  return add_allocation(at, new Allocation{file, words.size, nobody, 1}, true);
}
CUresult ipc_close(CUdeviceptr at) {
  BEGIN(cuIpcCloseMemHandle)
  NEED_CONTEXT
  return drop_allocation(at, true);
}

#define ENTRY(name, function)                                                                      \
  { name, reinterpret_cast<void*>(function) }
const std::map<std::string, void*> table = {
    ENTRY("cuInit", init),
    ENTRY("cuDriverGetVersion", get_version),
    ENTRY("cuGetErrorName", error_name),
    ENTRY("cuGetErrorString", error_string),
    ENTRY("cuDeviceGet", device_get),
    ENTRY("cuDeviceGetCount", device_count),
    ENTRY("cuDeviceGetAttribute", attribute),
    ENTRY("cuDeviceGetName", device_name),
    ENTRY("cuDeviceGetPCIBusId", bus_id),
    ENTRY("cuDeviceGetUuid", device_uuid),
    ENTRY("cuDeviceCanAccessPeer", can_access),
    ENTRY("cuDeviceGetP2PAttribute", p2p_attribute),
    ENTRY("cuDeviceTotalMem", total_mem),
    ENTRY("cuDevicePrimaryCtxRetain", retain),
    ENTRY("cuDevicePrimaryCtxRelease", release),
    ENTRY("cuCtxPushCurrent", push),
    ENTRY("cuCtxPopCurrent", pop),
    ENTRY("cuCtxGetStreamPriorityRange", priorities),
    ENTRY("cuStreamCreateWithPriority", stream_create),
    ENTRY("cuStreamDestroy", stream_destroy),
    ENTRY("cuStreamSynchronize", stream_synchronize),
    ENTRY("cuStreamQuery", stream_query),
    ENTRY("cuMemGetInfo", mem_info),
    ENTRY("cuMemGetAllocationGranularity", get_granularity),
    ENTRY("cuMemAddressReserve", reserve),
    ENTRY("cuMemAddressFree", address_free),
    ENTRY("cuMemCreate", mem_create),
    ENTRY("cuMemRelease", mem_release),
    ENTRY("cuMemMap", mem_map),
    ENTRY("cuMemUnmap", mem_unmap),
    ENTRY("cuMemSetAccess", set_access),
    ENTRY("cuMemExportToShareableHandle", export_handle),
    ENTRY("cuMemImportFromShareableHandle", import_handle),
    ENTRY("cuMemGetHandleForAddressRange", handle_for_range),
    ENTRY("cuMemsetD8Async", memset_async),
    ENTRY("cuMemcpyAsync", memcpy_async),
    ENTRY("cuMemHostRegister", host_register),
    ENTRY("cuMemHostUnregister", host_unregister),
    ENTRY("cuMemHostGetDevicePointer", host_pointer),
    ENTRY("cuMemHostAlloc", host_alloc),
    ENTRY("cuMemFreeHost", free_host),
    ENTRY("cuMemAlloc", mem_alloc),
    ENTRY("cuMemFree", mem_free),
    ENTRY("cuIpcGetMemHandle", ipc_get),
    ENTRY("cuIpcOpenMemHandle", ipc_open),
    ENTRY("cuIpcCloseMemHandle", ipc_close),
    ENTRY("cuCtxSetCurrent", set_current),
};

} // namespace

extern "C" {
CUresult cuGetProcAddress_v2(const char* name, void** address, int, cuuint64_t,
                             CUdriverProcAddressQueryResult* found) {
  const char* missing = std::getenv("FAKE_CUDA_WITHOUT");
  const auto entry = table.find(name);
  const bool there = entry != table.end() && (!missing || std::strcmp(missing, name) != 0);
  *address = there ? entry->second : nullptr;
  if (found)
    *found = there ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return there ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
/// For tests: what is still held, as text: "reserved 0 mapped 0 committed 0 ...".
const char* fake_cuda_held() {
  const std::lock_guard lock(mutex);
  static thread_local std::string text;
  std::size_t bytes = 0;
  for (const auto& [device, size] : committed)
    bytes += device >= 0 ? size : 0;
  text = "reserved " + std::to_string(reserved.size()) + " mapped " +
         std::to_string(mapped.size()) + " committed " + std::to_string(bytes) + " allocated " +
         std::to_string(allocated.size()) + " host " + std::to_string(host.size() + pinned.size()) +
         " streams " + std::to_string(streams.size()) + " contexts " + std::to_string(retained);
  return text.c_str();
}
/// For tests: from now on streams are not done, until they are let go.
void fake_cuda_hold(int on) {
  const std::lock_guard lock(mutex);
  held = on != 0;
}
/// For tests: from now on questions about streams do not return, until they are let go.
void fake_cuda_block(int on) {
  const std::lock_guard lock(mutex);
  blocking = on != 0;
  let_go_on.notify_all();
}
/// For tests: how many do not return now.
int fake_cuda_blocked() {
  const std::lock_guard lock(mutex);
  return blocked;
}
/// For tests: where a processor reaches memory of a device, to do what a kernel would.
void* fake_cuda_reach(void* address) {
  const std::lock_guard lock(mutex);
  std::size_t size = 1;
  return reach(reinterpret_cast<CUdeviceptr>(address), size);
}
/// For tests: how often a function was called.
int fake_cuda_calls(const char* name) {
  const std::lock_guard lock(mutex);
  return calls[name];
}
}
