// Checks whether two processes of one user may pass file descriptors: with pidfd_getfd, which takes
// one from another process, and in a message (SCM_RIGHTS). Both are tried between two child
// processes.
#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/file_descriptor.h"
#include "src/base/text.h"
#include "src/instruments/doctor/checks.h"
#include "src/instruments/doctor/support.h"

namespace shmemctl::doctor {

namespace {

// These system calls have the same numbers on x86-64 and Arm; headers of older systems lack
// them.
constexpr long pidfd_open_number = 434, pidfd_getfd_number = 438;
constexpr std::chrono::seconds trial_deadline{5};
constexpr std::string_view content = "shmemctl";

/// The result for a failed step, with errno: "pidfd_getfd<tab>1".
std::string step_failed(const char* step) {
  return std::string(step) + "\t" + std::to_string(errno);
}

/// Memory that can be reached only through its descriptor, like exported GPU memory of another
/// process.
FileDescriptor make_memory() {
  FileDescriptor memory(::memfd_create("shmemctl-doctor", MFD_CLOEXEC));
  if (memory &&
      ::write(memory.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size()))
    memory.reset();
  return memory;
}

/// Whether the descriptor refers to the memory of the other process.
bool has_content(int memory) {
  std::string bytes(content.size(), '\0');
  return ::pread(memory, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()) &&
         bytes == content;
}

bool send_number(int socket, int number) {
  return ::send(socket, &number, sizeof number, MSG_NOSIGNAL) == sizeof number;
}
std::optional<int> receive_number(int socket) {
  int number = 0;
  return ::recv(socket, &number, sizeof number, MSG_WAITALL) == sizeof number
             ? std::optional<int>(number)
             : std::nullopt;
}

bool send_descriptor(int socket, int descriptor) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(part), &descriptor, sizeof descriptor);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

/// Sends what receive_descriptor() returns as errno, instead of a descriptor.
void send_failure(int socket, int error_number) {
  const char byte = static_cast<char>(error_number);
  static_cast<void>(::send(socket, &byte, sizeof byte, MSG_NOSIGNAL));
}

/// A descriptor, or the step that failed: `sendmsg` of the other process, or `recvmsg`; with errno
/// 0 if the message arrived without the descriptor.
int receive_descriptor(int socket, const char*& failed_step) {
  char byte = 0;
  iovec data{&byte, 1};
  int descriptor = -1;
  failed_step = "recvmsg";
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t count = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (count == 0)
    errno = ECONNRESET;
  if (count != 1)
    return -1;
  if (byte != 0)
    failed_step = "sendmsg";
  errno = byte;
  const cmsghdr* const part = CMSG_FIRSTHDR(&message);
  if (part != nullptr && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS &&
      part->cmsg_len >= CMSG_LEN(sizeof descriptor))
    std::memcpy(&descriptor, CMSG_DATA(part), sizeof descriptor);
  return descriptor;
}

/// Runs in the child that owns the memory: sends the number of its descriptor, then the descriptor
/// itself, and waits until the other child has finished. Without memory it sends -errno instead.
void give(int socket) {
  const FileDescriptor memory = make_memory();
  if (!send_number(socket, memory ? memory.get() : -errno) || !memory)
    return;
  if (!send_descriptor(socket, memory.get()))
    send_failure(socket, errno);
  receive_number(socket);
}

std::string taken_by_pidfd(pid_t owner, int number) {
  const FileDescriptor process(static_cast<int>(::syscall(pidfd_open_number, owner, 0)));
  if (!process)
    return step_failed("pidfd_open");
  const FileDescriptor memory(
      static_cast<int>(::syscall(pidfd_getfd_number, process.get(), number, 0)));
  if (!memory)
    return step_failed("pidfd_getfd");
  return has_content(memory.get()) ? "ok" : "read of the descriptor\t0";
}

std::string taken_by_message(int socket) {
  const char* failed_step = nullptr;
  const FileDescriptor memory(receive_descriptor(socket, failed_step));
  if (!memory)
    return step_failed(failed_step);
  return has_content(memory.get()) ? "ok" : "read of the descriptor\t0";
}

/// Runs in the other child. Returns two lines: the results of pidfd_getfd and of the message.
std::string take(int socket, pid_t owner) {
  const std::optional<int> number = receive_number(socket);
  if (!number || *number < 0) {
    errno = number ? -*number : ECONNRESET;
    return step_failed("memfd_create") + "\n" + step_failed("memfd_create") + "\n";
  }
  const std::string by_pidfd = taken_by_pidfd(owner, *number);
  const std::string by_message = taken_by_message(socket);
  send_number(socket, 0);
  return by_pidfd + "\n" + by_message + "\n";
}

/// Runs in a child process: starts both children, which are siblings like the PEs of a node, and
/// returns the result of take().
std::string try_passing() {
  int ends[2], answer[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return step_failed("socketpair") + "\n" + step_failed("socketpair") + "\n";
  FileDescriptor giver(ends[0]), taker(ends[1]);
  if (::pipe2(answer, O_CLOEXEC) != 0)
    return step_failed("pipe2") + "\n" + step_failed("pipe2") + "\n";
  const FileDescriptor answer_read(answer[0]);
  FileDescriptor answer_write(answer[1]);
  const auto ends_with_its_parent = [] {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::alarm(static_cast<unsigned>(trial_deadline.count()));
  };
  const pid_t owner = ::fork();
  if (owner == 0) {
    ends_with_its_parent();
    taker.reset();
    give(giver.get());
    ::_exit(0);
  }
  const pid_t other = owner > 0 ? ::fork() : -1;
  if (other == 0) {
    ends_with_its_parent();
    giver.reset();
    const std::string text = take(taker.get(), owner);
    const bool written =
        ::write(answer_write.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::_exit(written ? 0 : 1);
  }
  const std::string no_fork = step_failed("fork");
  giver.reset();
  taker.reset();
  answer_write.reset();
  std::string text;
  std::array<char, 256> piece;
  for (ssize_t got = 0; (got = ::read(answer_read.get(), piece.data(), piece.size())) > 0;)
    text.append(piece.data(), static_cast<std::size_t>(got));
  for (const pid_t child : {owner, other})
    if (child > 0)
      ::waitpid(child, nullptr, 0);
  return other > 0 ? text : no_fork + "\n" + no_fork + "\n";
}

/// The two lines of the trial, which is run only once.
const ChildOutput& passing_trial() {
  static const ChildOutput output =
      call_in_child(try_passing, "passing descriptors between two children", trial_deadline);
  return output;
}

std::optional<long long> seccomp_mode(const Sysroot& sysroot) {
  const auto text = field_of(sysroot.read(status_path).value_or(""), "Seccomp:");
  return text ? parse_integer(*text) : std::nullopt;
}

CheckResult tried(const CheckContext& context, std::size_t line,
                  CheckResult (*judge)(const std::string&, const PassingRights&)) {
  if (!context.sysroot.live())
    return skipped("needs the live machine: the system root is a copy");
  const ChildOutput& output = passing_trial();
  const std::vector<std::string> lines = split(output.text, '\n');
  if (!output.problem.empty() || lines.size() <= line || lines[line].empty())
    return skipped("the trial did not end: " +
                       (output.problem.empty() ? std::string("a child died") : output.problem),
                   "two children with a socket pair");
  PassingRights rights;
  rights.ptrace_scope = context.sysroot.read_line("/proc/sys/kernel/yama/ptrace_scope");
  const auto capabilities = effective_capabilities(context.sysroot);
  rights.may_trace = capabilities && has_capability(*capabilities, cap_sys_ptrace);
  rights.seccomp = seccomp_mode(context.sysroot).value_or(0) == 2;
  rights.container = container_evidence(context.sysroot, context.environment).has_value();
  rights.newer_kernel = install_newer_kernel(context.sysroot);
  return judge(lines[line], rights);
}

struct StepFailure {
  std::string step;
  int error = 0;
};

/// Empty for "ok".
std::optional<StepFailure> parse_step(const std::string& line) {
  if (line == "ok")
    return std::nullopt;
  const std::vector<std::string> parts = split(line, '\t');
  return StepFailure{parts[0],
                     static_cast<int>(parts.size() > 1 ? parse_integer(parts[1]).value_or(0) : 0)};
}

std::string failure_text(const StepFailure& failure) {
  if (failure.error != 0)
    return failure.step + ": " + std::strerror(failure.error);
  return failure.step + (failure.step == "recvmsg" ? ": the message has no descriptor"
                                                   : ": not what the other process sent");
}

/// The result if the failure does not show whether descriptors may be passed: a step that only
/// prepares the trial, or a limit.
std::optional<CheckResult> not_tried(const StepFailure& failure) {
  static constexpr std::array preparations = {"memfd_create", "socketpair", "pipe2", "fork"};
  const bool at_limit = failure.error == EMFILE || failure.error == ENFILE ||
                        failure.error == ENOMEM || failure.error == EAGAIN ||
                        failure.error == ENOBUFS;
  if (!at_limit &&
      std::find(preparations.begin(), preparations.end(), failure.step) == preparations.end())
    return std::nullopt;
  return skipped("the trial was not possible: " + failure_text(failure),
                 "two children with a socket pair",
                 at_limit ? "check the limits of open files, processes and memory (ulimit -n, "
                            "ulimit -u, ulimit -v), then repeat"
                          : "");
}

constexpr const char* allow_by_profile =
    "docker run --cap-add=SYS_PTRACE --security-opt seccomp=unconfined  # or a profile that allows "
    "pidfd_getfd";

} // namespace

CheckResult judge_pidfd_getfd(const std::string& answer, const PassingRights& rights) {
  const auto failure = parse_step(answer);
  if (!failure)
    return passed("a process may take a descriptor of its sibling",
                  "pidfd_getfd between two children: done");
  if (auto result = not_tried(*failure))
    return *result;
  std::string evidence = failure_text(*failure);
  if (rights.ptrace_scope)
    evidence += "; /proc/sys/kernel/yama/ptrace_scope: " + *rights.ptrace_scope;
  if (rights.seccomp)
    evidence += "; /proc/self/status: Seccomp 2";
  const std::string effect =
      ": libraries that share GPU memory by pidfd_getfd (PyTorch's symmetric memory, FlashInfer, "
      "UCX) fail";
  const bool restricted = rights.ptrace_scope && *rights.ptrace_scope != "0" && !rights.may_trace;
  if (failure->error == ENOSYS && !rights.seccomp)
    return warned("the kernel has no pidfd_getfd, which came with Linux 5.6" + effect, evidence,
                  rights.newer_kernel);
  // A seccomp filter may answer ENOSYS before the kernel sees the call.
  if (failure->error == ENOSYS || (rights.seccomp && !restricted))
    return warned("a seccomp filter refuses pidfd_getfd" + effect, evidence, allow_by_profile);
  if (restricted)
    return warned(
        "Yama does not let a process take a descriptor of its sibling" + effect, evidence,
        *rights.ptrace_scope == "3"
            ? std::string("echo kernel.yama.ptrace_scope=0 > /etc/sysctl.d/99-ptrace.conf && "
                          "reboot  # 3 cannot be lowered without a reboot")
            : std::string("sysctl -w kernel.yama.ptrace_scope=0") +
                  (rights.container ? "  # on the host; or docker run --cap-add=SYS_PTRACE" : ""));
  return warned("a process may not take a descriptor of its sibling" + effect, evidence,
                rights.container ? allow_by_profile
                                 : "ausearch -m avc -ts recent; dmesg | grep -i apparmor  # what "
                                   "security module refuses it");
}

CheckResult judge_descriptor_passing(const std::string& answer, const PassingRights& rights) {
  const auto failure = parse_step(answer);
  if (!failure)
    return passed("processes pass descriptors in messages",
                  "SCM_RIGHTS between two children: done");
  if (auto result = not_tried(*failure))
    return *result;
  return failed("processes cannot pass descriptors in messages (SCM_RIGHTS): PEs cannot share GPU "
                "memory or a heap",
                failure_text(*failure) + (rights.seccomp ? "; /proc/self/status: Seccomp 2" : ""),
                rights.container || rights.seccomp
                    ? "docker run --security-opt seccomp=unconfined --security-opt "
                      "apparmor=unconfined"
                    : "ausearch -m avc -ts recent; dmesg | grep -i apparmor  # what security "
                      "module refuses it");
}

CheckResult pidfd_getfd(const CheckContext& context) {
  return tried(context, 0, judge_pidfd_getfd);
}

CheckResult descriptor_passing(const CheckContext& context) {
  return tried(context, 1, judge_descriptor_passing);
}

} // namespace shmemctl::doctor
