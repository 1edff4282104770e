#include "src/launch/program.h"

#include <cerrno>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/text.h"

namespace shmemctl {

namespace {

constexpr const char* default_path = "/usr/local/bin:/usr/bin:/bin";

/// 0 if the file can be executed, else an errno value.
int why_not_executable(const std::string& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0)
    return errno;
  if (S_ISDIR(status.st_mode))
    return EISDIR;
  return ::access(file.c_str(), X_OK) == 0 ? 0 : errno;
}

} // namespace

Error cannot_run(const std::string& name, int error_number) {
  const bool absent = error_number == ENOENT || error_number == ENOTDIR;
  return {ExitCode::usage, name, "run", absent ? "no such program" : std::strerror(error_number),
          absent ? "check its name and PATH" : "make it an executable file"};
}

std::string find_program(const std::string& name, const Environment& environment) {
  if (name.empty())
    throw cannot_run(name, ENOENT);
  if (name.find('/') != std::string::npos) {
    if (const int error_number = why_not_executable(name); error_number != 0)
      throw cannot_run(name, error_number);
    return name;
  }
  const auto path = environment.find("PATH");
  int worst = ENOENT;
  for (const std::string& folder :
       split(path == environment.end() ? default_path : path->second, ':')) {
    std::string file = (folder.empty() ? "." : folder) + "/" + name;
    const int error_number = why_not_executable(file);
    if (error_number == 0)
      return file;
    if (error_number == EACCES)
      worst = EACCES;
  }
  throw cannot_run(name, worst);
}

} // namespace shmemctl
