// What the parts of the fake CUDA driver share.
#pragma once

#include <cuda.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace fake_cuda {

inline constexpr std::size_t granularity = 2u << 20;

struct Allocation {
  int file = -1;
  std::size_t size = 0;
  int device = 0;
  int uses = 0; // its handle and its mappings
  int handle_types = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
};
// What a test makes of an allocation (fake_cuda_mark).
enum class MemoryKind { plain, managed, pool };
struct Mapping {
  std::size_t size = 0;
  Allocation* memory = nullptr;
  std::byte* alias = nullptr;      // where the fake driver itself reads and writes it
  bool imported = false;           // by cuIpcOpenMemHandle
  std::uint64_t id = 0;            // never given again
  int opens = 1;                   // of the same handle
  std::int64_t origin[2] = {0, 0}; // process and file, of what was imported
  MemoryKind kind = MemoryKind::plain;
};
/// What a process hands to another one.
struct IpcHandle {
  std::uint64_t magic;
  std::int64_t pid;
  std::int64_t file;
  std::uint64_t size;
};
inline constexpr std::uint64_t ipc_magic = 0x66616b6569706331;
static_assert(sizeof(IpcHandle) <= sizeof(CUipcMemHandle));

extern std::mutex mutex;
extern std::map<CUdeviceptr, std::size_t> reserved;
extern std::map<CUdeviceptr, Mapping> mapped;
extern std::map<std::string, int> calls;
extern std::map<int, std::size_t> committed; // by device
extern std::uint64_t next_id;                // of mappings
extern bool initialized;
extern thread_local std::vector<CUcontext> contexts;
extern std::map<CUdeviceptr, Mapping> allocated;     // cuMemAlloc and cuIpcOpenMemHandle
extern std::map<std::uintptr_t, std::size_t> pinned; // cuMemHostRegister
extern std::map<std::uintptr_t, std::size_t> host;   // cuMemHostAlloc
extern std::set<std::uintptr_t> streams;
extern std::uintptr_t next_stream;
/// By handle: whether it keeps a time, and when it was recorded last, in ns; -1: not yet.
struct Event {
  bool timed = false;
  std::int64_t at_ns = -1;
};
extern std::map<std::uintptr_t, Event> events;
extern std::uintptr_t next_event;
extern int retained;
extern bool held;     // what is in streams is not done
extern bool blocking; // nor does a question about them return
extern int blocked;   // that do not return now
extern std::condition_variable let_go_on;

/// Processors reach no memory of devices (FAKE_CUDA_STRICT); with "vmm" only that of cuMemCreate,
/// so that threads in a kernel's place have the rest.
bool strict();
bool strict_everywhere();
/// A number out of the environment.
long number(const char* name, long otherwise);
int devices();
int driver_version();
/// Counts the call; not CUDA_SUCCESS if it is the one that shall fail.
CUresult begin(const char* name);
void let_go(Allocation* memory);
std::byte* make_alias(int file, std::size_t size);
/// The piece of device memory at `address`, as this library reaches it, and how much of it follows;
/// other memory is the host's, which is not asked about.
std::byte* reach(CUdeviceptr address, std::size_t& size);

/// The mapping of a device that holds the address; nullptr if there is none.
Mapping* mapping_at(CUdeviceptr address, CUdeviceptr& begin_of);

/// The driver's functions by name, a part of them each.
using Functions = std::map<std::string, void*>;
Functions device_functions();
Functions virtual_memory_functions();
Functions memory_functions();
Functions pointer_functions();
Functions host_functions();

} // namespace fake_cuda

#define BEGIN(name)                                                                                \
  const std::lock_guard lock(mutex);                                                               \
  if (const CUresult failure = begin(#name); failure != CUDA_SUCCESS)                              \
    return failure;
#define NEED_CONTEXT                                                                               \
  if (contexts.empty())                                                                            \
    return CUDA_ERROR_INVALID_CONTEXT;
#define NEED_STREAM(stream)                                                                        \
  if (streams.count(reinterpret_cast<std::uintptr_t>(stream)) == 0)                                \
    return CUDA_ERROR_INVALID_HANDLE;
#define ENTRY(name, function)                                                                      \
  { name, reinterpret_cast<void*>(function) }
