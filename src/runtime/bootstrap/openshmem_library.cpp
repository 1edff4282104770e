#include "src/runtime/bootstrap/openshmem_library.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/process.h"

namespace shmemctl {

namespace {

constexpr const char* without_openshmem =
    "install Open MPI's liboshmem (apt install libopenmpi3), name it with "
    "SHMEMCTL_OPENSHMEM_LIBRARY, or choose another SHMEMCTL_BOOTSTRAP";

// Global, because the exit handler has no other access to it.
std::atomic<bool> left_behind{false};

/// Runs before OpenSHMEM's own exit handler, because it is registered later.
void leave_without_others(int status, void*) {
  if (!left_behind.load(std::memory_order_acquire))
    return;
  std::fflush(nullptr);
  ::_exit(status);
}

/// True if `address` is in the main program.
bool in_main_program(const void* address) {
  struct Search {
    std::uintptr_t address;
    bool found;
  } search{reinterpret_cast<std::uintptr_t>(address), false};
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* data) {
        auto& sought = *static_cast<Search*>(data);
        for (int at = 0; at < object->dlpi_phnum; ++at) {
          const auto& segment = object->dlpi_phdr[at];
          const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
          // _end is the address of the first byte after the data.
          if (segment.p_type == PT_LOAD && sought.address >= begin &&
              sought.address <= begin + segment.p_memsz)
            sought.found = true;
        }
        return 1; // the main program is reported first; no other object is of interest
      },
      &search);
  return search.found;
}

/// Open MPI's OpenSHMEM registers all writable memory below the symbol _end, which should be that
/// of the main program. If the program does not export it, the library finds its own _end, takes
/// the program's heap for static data, and crashes now and then.
void refuse_program_without_end() {
  const void* end = ::dlsym(RTLD_DEFAULT, "_end");
  if (end == nullptr || !in_main_program(end))
    throw Error(ExitCode::unavailable, "OpenSHMEM", "use",
                "this program does not export the symbol _end, without which Open MPI's OpenSHMEM "
                "takes the program's heap for static data and crashes",
                "link the program with -Wl,--export-dynamic-symbol=_end, or choose another "
                "SHMEMCTL_BOOTSTRAP");
}

class OpenshmemLoader {
public:
  explicit OpenshmemLoader(const DynamicLibrary& library) : library_(library) {}

  template <class Function>
  void load(Function*& function, const char* symbol) {
    function = library_.function<Function>(symbol);
    if (function == nullptr)
      missing(symbol);
  }
  [[noreturn]] void missing(const char* symbol) const {
    throw Error(ExitCode::unavailable, library_.file(), "use",
                std::string("missing symbol ") + symbol +
                    "; the library is too old, or not Open MPI's OpenSHMEM",
                without_openshmem);
  }

private:
  const DynamicLibrary& library_;
};

void load_all(OpenshmemLibrary& shmem) {
  OpenshmemLoader loader(shmem.library);
  loader.load(shmem.init_thread, "shmem_init_thread");
  loader.load(shmem.finalize, "shmem_finalize");
  loader.load(shmem.global_exit, "shmem_global_exit");
  loader.load(shmem.my_pe, "shmem_my_pe");
  loader.load(shmem.n_pes, "shmem_n_pes");
  loader.load(shmem.malloc, "shmem_malloc");
  loader.load(shmem.free, "shmem_free");
  loader.load(shmem.putmem, "shmem_putmem");
  loader.load(shmem.uint64_p, "shmem_uint64_p");
  loader.load(shmem.fence, "shmem_fence");
  loader.load(shmem.quiet, "shmem_quiet");
  loader.load(shmem.barrier_all, "shmem_barrier_all");
  loader.load(shmem.progress, "opal_progress");
  shmem.initialized = shmem.library.object<const bool>("oshmem_shmem_initialized");
  if (shmem.initialized == nullptr)
    loader.missing("oshmem_shmem_initialized");
}

} // namespace

int OpenshmemLibrary::initialise() const {
  const SignalDispositions keep;
  int provided = 0;
  const int result = init_thread(thread_serialized, &provided);
  ::on_exit(leave_without_others, nullptr);
  return result;
}

OpenshmemLibrary open_openshmem_library(const std::string& name) {
  refuse_program_without_end();
  // With the memory hooks that the component `patcher` installs, shmem_finalize of Open MPI 4.1
  // crashes. The library reads the variable when it initialises. A user's setting is kept.
  ::setenv("OMPI_MCA_memory", "^patcher", 0);
  std::string why;
  auto library = DynamicLibrary::open({name}, &why, {.global_symbols = true, .stay_loaded = true});
  if (!library)
    throw Error(ExitCode::unavailable, name, "load", why, without_openshmem);
  OpenshmemLibrary shmem{.library = std::move(*library)};
  load_all(shmem);
  return shmem;
}

void abandon_openshmem() noexcept {
  left_behind.store(true, std::memory_order_release);
}

} // namespace shmemctl
