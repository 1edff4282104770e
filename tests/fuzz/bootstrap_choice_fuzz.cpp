// Any environment leads to a bootstrap or to an Error, never to a job of one among several.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "src/base/text.h"
#include "src/runtime/bootstrap/select.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shmemctl;
  Environment environment;
  for (const std::string& line : split({reinterpret_cast<const char*>(data), size}, '\n')) {
    const std::size_t equals = line.find('=');
    if (equals != std::string::npos)
      environment[line.substr(0, equals)] = line.substr(equals + 1);
  }
  // No input may choose which file is opened.
  environment["SHMEMCTL_MPI_LIBRARY"] = "libno-such-mpi.so";
  environment["SHMEMCTL_PMIX_LIBRARY"] = "libno-such-pmix.so";
  try {
    const BootstrapChoice choice = choose_bootstrap(Options(environment), environment);
    const bool asked = Options(environment).value("BOOTSTRAP").set() &&
                       lower(Options(environment).text("BOOTSTRAP")) != "auto";
    if (choice.name == "single" && !asked && launched_size(environment) > 1)
      std::abort();
    if (choice.name.empty() || choice.reason.empty() || launcher_name(environment).empty())
      std::abort();
  } catch (const Error& error) {
    if (error.fix().empty() || error.message().find('\n') != std::string::npos)
      std::abort();
  }
  return 0;
}
