#include "src/runtime/bootstrap/mpi_library.h"

#include <dlfcn.h>
#include <vector>

#include "src/base/error.h"

namespace shmemctl {

namespace {

constexpr std::size_t error_text_bytes = 512;    // MPI_MAX_ERROR_STRING is 256 in Open MPI
constexpr std::size_t version_text_bytes = 8192; // MPICH's MPI_MAX_LIBRARY_VERSION_STRING
constexpr const char* world_symbol = "ompi_mpi_comm_world";
using GetLibraryVersion = int(char* text, int* length);

constexpr const char* without_mpi =
    "point SHMEMCTL_MPI_LIBRARY at Open MPI's libmpi.so.40 (apt install libopenmpi3), or choose "
    "another SHMEMCTL_BOOTSTRAP (for MPICH and Intel MPI: pmi)";

/// The first line of an MPI's description of itself, which it returns even before MPI_Init.
std::string version_text(GetLibraryVersion* get_library_version) {
  if (get_library_version == nullptr)
    return "a library without MPI_Get_library_version";
  std::vector<char> text(version_text_bytes, '\0');
  int length = 0;
  if (get_library_version(text.data(), &length) != MpiLibrary::success)
    return "a library that does not report its version";
  std::string words = text.data();
  words = words.substr(0, words.find('\n'));
  for (char& letter : words)
    letter = letter == '\t' ? ' ' : letter;
  return printable(words, 100);
}

/// Two MPIs in one process overwrite each other's symbols.
void refuse_another_mpi(const std::string& name) {
  void* get_library_version = ::dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
  if (get_library_version == nullptr || ::dlsym(RTLD_DEFAULT, world_symbol) != nullptr)
    return;
  throw Error(ExitCode::unavailable, name, "load",
              "this program is already linked with another MPI: " +
                  version_text(reinterpret_cast<GetLibraryVersion*>(get_library_version)),
              "link the program with Open MPI, or choose another SHMEMCTL_BOOTSTRAP (for MPICH and "
              "Intel MPI: pmi)");
}

class MpiLoader {
public:
  explicit MpiLoader(const DynamicLibrary& library) : library_(library) {}

  template <class Function>
  void load(Function*& function, const char* symbol) {
    function = library_.function<Function>(symbol);
    if (function == nullptr)
      missing(symbol);
  }
  /// Loads the address of a predefined handle. A program that is linked with MPI may contain the
  /// object itself (a copy relocation). Then the library uses that object, too, and its own is
  /// never filled, so the global lookup is needed.
  template <class Handle>
  void load_handle(Handle*& handle, const char* symbol) {
    if (library_.object<Handle>(symbol) == nullptr)
      missing(symbol);
    handle = static_cast<Handle*>(::dlsym(RTLD_DEFAULT, symbol));
    if (handle == nullptr)
      missing(symbol);
  }

private:
  [[noreturn]] void missing(const char* symbol) const {
    throw Error(ExitCode::unavailable, library_.file(), "use",
                std::string("missing symbol ") + symbol + "; the library is too old or damaged",
                "install Open MPI 3.1 or later, or choose another SHMEMCTL_BOOTSTRAP");
  }
  const DynamicLibrary& library_;
};

void load_all(MpiLibrary& mpi) {
  MpiLoader loader(mpi.library);
  loader.load(mpi.Initialized, "MPI_Initialized");
  loader.load(mpi.Finalized, "MPI_Finalized");
  loader.load(mpi.Init_thread, "MPI_Init_thread");
  loader.load(mpi.Finalize, "MPI_Finalize");
  loader.load(mpi.Abort, "MPI_Abort");
  loader.load(mpi.Error_string, "MPI_Error_string");
  loader.load(mpi.Comm_rank, "MPI_Comm_rank");
  loader.load(mpi.Comm_size, "MPI_Comm_size");
  loader.load(mpi.Comm_test_inter, "MPI_Comm_test_inter");
  loader.load(mpi.Comm_idup, "MPI_Comm_idup");
  loader.load(mpi.Comm_free, "MPI_Comm_free");
  loader.load(mpi.Comm_set_errhandler, "MPI_Comm_set_errhandler");
  loader.load(mpi.Iallgather, "MPI_Iallgather");
  loader.load(mpi.Ialltoall, "MPI_Ialltoall");
  loader.load(mpi.Ibarrier, "MPI_Ibarrier");
  loader.load(mpi.Ibcast, "MPI_Ibcast");
  loader.load(mpi.Isend, "MPI_Isend");
  loader.load(mpi.Recv, "MPI_Recv");
  loader.load(mpi.Iprobe, "MPI_Iprobe");
  loader.load(mpi.Request_free, "MPI_Request_free");
  loader.load(mpi.Test, "MPI_Test");
  loader.load_handle(mpi.world, world_symbol);
  loader.load_handle(mpi.no_comm, "ompi_mpi_comm_null");
  loader.load_handle(mpi.byte, "ompi_mpi_byte");
  loader.load_handle(mpi.errors_return, "ompi_mpi_errors_return");
}

} // namespace

std::string MpiLibrary::error_text(int code) const {
  char text[error_text_bytes] = "";
  int length = 0;
  if (Error_string(code, text, &length) != success)
    return "MPI error " + std::to_string(code);
  return text;
}

MpiLibrary open_mpi_library(const std::string& name) {
  refuse_another_mpi(name);
  std::string why;
  // Probes the library without keeping it loaded if it is not Open MPI.
  auto library = DynamicLibrary::open({name}, &why);
  if (!library)
    throw Error(ExitCode::unavailable, name, "load", why, without_mpi);
  if (library->object<char>(world_symbol) == nullptr)
    throw Error(ExitCode::unavailable, library->file(), "use",
                "not Open MPI but " +
                    version_text(library->function<GetLibraryVersion>("MPI_Get_library_version")),
                without_mpi);
  // The symbols must be global: plugins of some builds of Open MPI are not linked with libmpi.
  library = DynamicLibrary::open({name}, &why, {.global_symbols = true, .stay_loaded = true});
  if (!library)
    throw Error(ExitCode::unavailable, name, "load", why, without_mpi);
  MpiLibrary mpi{.library = std::move(*library)};
  load_all(mpi);
  return mpi;
}

} // namespace shmemctl
