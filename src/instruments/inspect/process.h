// A running process of another program as values read from /proc. Nothing here modifies the
// process.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/sysroot.h"
#include "src/instruments/libraries/versions.h"

namespace shmemctl::inspect {

// These names describe library files, whether or not a process has mapped them.
using libraries::Family;
using libraries::leading_version;
using libraries::Libraries;
using libraries::Library;
using libraries::library_kind;
using libraries::library_kind_of_id;
using libraries::library_stem;
using libraries::LibraryKind;
using libraries::LibraryReader;
using libraries::MappedFile;
using libraries::reason_of;
using libraries::release_of;
using libraries::version_findings;

/// The files in the text of /proc/PID/maps, each once (by device and inode), in the order of
/// addresses. Lines of another form are ignored.
std::vector<MappedFile> parse_maps(std::string_view text);

/// The fields of /proc/PID/stat or /proc/PID/task/TID/stat that are used here.
struct ProcessStat {
  std::string name; ///< comm: at most 15 characters, any bytes
  char state = '?';
  int parent = 0;
  std::uint64_t cpu_ticks = 0;   ///< user and system time
  std::uint64_t start_ticks = 0; ///< since boot
};
std::optional<ProcessStat> parse_stat(std::string_view text);

/// One open file descriptor of interest.
struct OpenFile {
  int number = -1;
  std::string target; ///< "/dev/infiniband/uverbs0"
};

struct TcpConnection {
  std::string local, remote;      ///< "10.0.0.1:4711", "[fe80::1]:80"
  std::string state;              ///< "established"
  bool local_only = false;        ///< both ends have the same address, or it is a loopback address
  std::uint64_t queued_bytes = 0; ///< written, but not yet acknowledged
  std::uint64_t inode = 0;
  /// Payload since the connection was made; empty if the kernel was not asked.
  std::optional<std::uint64_t> acknowledged_bytes = std::nullopt, received_bytes = std::nullopt;
  /// The same for the time that was watched; empty if nothing was.
  std::optional<std::uint64_t> window_acknowledged_bytes = std::nullopt,
                               window_received_bytes = std::nullopt;
};
/// The rows of /proc/PID/net/tcp or tcp6.
std::vector<TcpConnection> parse_tcp(std::string_view text);

struct Thread {
  int id = 0;
  std::string name;
  char state = '?';
  std::uint64_t cpu_ticks = 0;
  std::string wchan;               ///< the kernel function in which it sleeps; "" if unknown
  std::optional<long> system_call; ///< number of the system call; empty if the thread runs or the
                                   ///< number is not readable
};

/// An item that could not be read, and the reason.
struct Skipped {
  std::string what, reason;
};

struct Process {
  int pid = 0;
  ProcessStat stat;
  std::optional<unsigned> user; ///< effective user ID
  std::string user_name;        ///< as user_name() returns it
  std::string exe;              ///< "" if it is not readable
  std::vector<std::string> command;
  /// The environment as it was when the process was started.
  std::optional<std::map<std::string, std::string>> environment;
  std::map<std::string, std::string> status; ///< "CapEff" -> "000001ffffffffff"
  std::optional<std::vector<MappedFile>> maps;
  std::string limits;                            ///< the text of /proc/PID/limits
  std::map<std::string, std::string> namespaces; ///< "net" -> "net:[4026531840]"
  std::vector<OpenFile> devices;      ///< /dev/infiniband/*, nvidia*, kfd and gdrdrv that are open
  std::vector<std::uint64_t> sockets; ///< inodes
  std::vector<TcpConnection> connections; ///< connections of its sockets
  std::vector<Thread> threads;
  std::vector<Skipped> skipped;
};

/// "COMMAND\0ARG\0" -> words.
std::vector<std::string> parse_words(std::string_view text);
/// "A=1\0B=2\0" -> map; the first of several equal names counts, as in getenv().
std::map<std::string, std::string> parse_environment(std::string_view text);
/// Lines "Name:\tvalue" -> map.
std::map<std::string, std::string> parse_status(std::string_view text);

/// PIDs of all processes, ascending.
std::vector<int> process_ids(const Sysroot& sysroot);
/// The stat of the process; empty if there is no such process (any more).
std::optional<ProcessStat> read_stat(const Sysroot& sysroot, int pid);
/// Effective user of a process.
std::optional<unsigned> user_of(const Sysroot& sysroot, int pid);
/// User ID by name, or of a number. From /etc/passwd below this root and, on the live machine, from
/// the system's user database (getpwnam_r).
std::optional<unsigned> user_id(const Sysroot& sysroot, const std::string& name);
/// The name of a user, or the number if it has none.
std::string user_name(const Sysroot& sysroot, unsigned id);
std::optional<std::vector<MappedFile>> read_maps(const Sysroot& sysroot, int pid);

/// Reads everything about the process; what cannot be read is listed in `skipped`. Empty if there
/// is no such process, or if it ended meanwhile.
std::optional<Process> read_process(const Sysroot& sysroot, int pid);

/// The rank of a process, and the launcher's variable that contains it.
struct Rank {
  int number = 0;
  std::string variable; ///< "OMPI_COMM_WORLD_RANK"
};
std::optional<Rank> rank_of(const Process& process);

} // namespace shmemctl::inspect
