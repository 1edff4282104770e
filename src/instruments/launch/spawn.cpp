#include "src/instruments/launch/spawn.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/text.h"

namespace shmemctl {

namespace {

/// An argv array of pointers into the given texts.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts)
    result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// All that the child needs, prepared before fork(), because the child may only make system calls.
struct Prepared {
  const char* program;
  char* const* arguments;
  char* const* environment;
  int descriptors[3];
  const rlimit* open_files;
  const cpu_set_t* cpus; ///< nullptr: as this process
  std::size_t cpus_bytes;
  pid_t parent;
  int status;
  int inherited; ///< -1: none
};

/// The kernel's mask of these CPUs; empty if there are none.
std::vector<cpu_set_t> mask_of(const CpuSet& cpus) {
  if (cpus.empty())
    return {};
  std::vector<cpu_set_t> mask(static_cast<std::size_t>(cpus.last()) / CPU_SETSIZE + 1);
  for (const int cpu : cpus.cpus())
    CPU_SET_S(static_cast<std::size_t>(cpu), mask.size() * sizeof(cpu_set_t), mask.data());
  return mask;
}

[[noreturn]] void fail_in_child(int status) {
  const int error_number = errno;
  static_cast<void>(!::write(status, &error_number, sizeof error_number));
  ::_exit(127);
}

[[noreturn]] void run_child(const Prepared& prepared, const SignalGate& signals) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() != prepared.parent) // the parent died before the line above
    ::_exit(127);
  for (int standard = 0; standard <= 2; ++standard)
    if (prepared.descriptors[standard] >= 0 && ::dup2(prepared.descriptors[standard], standard) < 0)
      fail_in_child(prepared.status);
  if (prepared.inherited >= 0 && ::fcntl(prepared.inherited, F_SETFD, 0) != 0)
    fail_in_child(prepared.status);
  if (prepared.open_files)
    ::setrlimit(RLIMIT_NOFILE, prepared.open_files);
  if (prepared.cpus) // a PE that cannot be bound runs unbound
    static_cast<void>(::sched_setaffinity(0, prepared.cpus_bytes, prepared.cpus));
  signals.restore_in_child();
  ::execve(prepared.program, prepared.arguments, prepared.environment);
  fail_in_child(prepared.status);
}

} // namespace

Spawned::Spawned(const SpawnRequest& request, const SignalGate& signals) {
  std::vector<std::string> argument_texts = request.arguments;
  std::vector<std::string> environment_texts;
  for (const auto& [name, value] : request.environment)
    environment_texts.push_back(name + "=" + value);
  const std::vector<char*> arguments = pointers(argument_texts);
  const std::vector<char*> environment = pointers(environment_texts);
  const std::vector<cpu_set_t> cpus = mask_of(request.cpus);
  Pipe status = Pipe::make();
  const Prepared prepared{request.program.c_str(),
                          arguments.data(),
                          environment.data(),
                          {request.standard_input, request.standard_output, request.standard_error},
                          request.open_files ? &*request.open_files : nullptr,
                          cpus.empty() ? nullptr : cpus.data(),
                          cpus.size() * sizeof(cpu_set_t),
                          ::getpid(),
                          status.write_end.get(),
                          request.inherited};
  pid_ = ::fork();
  if (pid_ == 0)
    run_child(prepared, signals);
  if (pid_ < 0)
    throw system_error(request.program, "fork", errno,
                       "start fewer PEs, or raise the limit of processes (ulimit -u)");
  status_ = std::move(status.read_end);
}

int Spawned::started() {
  int error_number = 0;
  ssize_t count = 0;
  do
    count = ::read(status_.get(), &error_number, sizeof error_number);
  while (count < 0 && errno == EINTR);
  status_.reset();
  return count == sizeof error_number ? error_number : 0;
}

Pipe Pipe::make() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw system_error("pipe", "create", errno,
                       "start fewer PEs, or raise the limit of open files (ulimit -n)");
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

void fill_standard_descriptors() {
  for (int standard = 0; standard <= 2; ++standard)
    if (::fcntl(standard, F_GETFD) < 0)
      // open() returns the lowest free number
      static_cast<void>(::open("/dev/null", O_RDWR));
}

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

/// The fix for a program that exists and cannot be executed.
const char* fix_of(int error_number) {
  switch (error_number) {
  case E2BIG:
    return "pass fewer or shorter arguments and environment variables, or raise the limit of the "
           "stack, of which they may take a quarter (ulimit -s)";
  case EAGAIN:
  case ENOMEM:
    return "check the limits of processes and memory (ulimit -u, ulimit -v)";
  case ENOEXEC:
    return "pass a program for this machine, or a script whose first line is #! and its "
           "interpreter";
  case EACCES:
    return "make it executable (chmod +x), and the interpreter of a script too";
  case ETXTBSY:
    return "wait until it has been written";
  default:
    return "make it an executable file";
  }
}

} // namespace

Error cannot_run(const std::string& name, int error_number) {
  const bool absent = error_number == ENOENT || error_number == ENOTDIR;
  return {ExitCode::usage, name, "run", absent ? "no such program" : std::strerror(error_number),
          absent ? "check its name and PATH" : fix_of(error_number)};
}

Error cannot_execute(const std::string& name, const std::string& file, int error_number) {
  // execve() also returns ENOENT if the file exists and what has to load it does not.
  if (error_number != ENOENT || why_not_executable(file) != 0)
    return cannot_run(name, error_number);
  std::ifstream stream(file);
  char magic[2] = {};
  if (!stream.read(magic, sizeof magic) || std::string_view(magic, sizeof magic) != "#!")
    return {ExitCode::usage, name, "run", "the dynamic loader that it names is missing",
            "pass a program that was built for this system"};
  std::string line;
  std::getline(stream, line);
  if (line.find('\r') != std::string::npos)
    return {ExitCode::usage, name, "run", "its first line ends with a carriage return",
            "write its lines with line feeds only: sed -i 's/\\r$//' " + file};
  const std::string interpreter(trim(line));
  return {ExitCode::usage, name, "run",
          "its interpreter " + printable(interpreter.substr(0, interpreter.find_first_of(" \t"))) +
              " is missing",
          "install it, or name another one in the first line"};
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
