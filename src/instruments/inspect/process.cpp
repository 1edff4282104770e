#include "src/instruments/inspect/process.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <pwd.h>
#include <set>
#include <sys/socket.h>
#include <system_error>
#include <utility>

#include "src/base/text.h"

namespace shmemctl::inspect {

namespace {

constexpr std::size_t max_text_bytes = 64U << 20, max_threads = 4096;

std::string folder_of(int pid) {
  return "/proc/" + std::to_string(pid);
}

/// An entry of the user database, which is more than /etc/passwd (LDAP, SSSD): nsswitch.conf(5).
/// @param look_up getpwnam_r() or getpwuid_r() with the name or number bound
template <class LookUp>
std::optional<std::pair<std::string, unsigned>> user_entry(LookUp&& look_up) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> text(1024);
  int error_number = 0;
  while ((error_number = look_up(&entry, text.data(), text.size(), &found)) == ERANGE &&
         text.size() < max_text_bytes)
    text.resize(2 * text.size());
  if (error_number != 0 || !found)
    return std::nullopt;
  return std::pair(std::string(found->pw_name), unsigned{found->pw_uid});
}

/// Takes the next word; "" at the end.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

std::optional<std::uint64_t> unsigned_value(std::string_view text, int base = 10) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

/// Decodes a path: the kernel writes a line feed as \012, but does not escape a backslash.
std::string unescaped(std::string_view path) {
  std::string text;
  while (!path.empty()) {
    const bool feed = starts_with(path, "\\012");
    text += feed ? '\n' : path.front();
    path.remove_prefix(feed ? 4 : 1);
  }
  return text;
}

struct Address {
  std::string text;
  bool loopback = false;
};

/// "0100007F:1F90" -> 127.0.0.1:8080: 32-bit values in the byte order of the machine.
std::optional<std::pair<Address, std::string>> parse_address(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || (colon != 8 && colon != 32))
    return std::nullopt;
  const auto port = unsigned_value(text.substr(colon + 1), 16);
  std::array<unsigned char, 16> bytes{};
  for (std::size_t at = 0; at < colon; at += 8) {
    const auto word = unsigned_value(text.substr(at, 8), 16);
    if (!word)
      return std::nullopt;
    const auto value = static_cast<std::uint32_t>(*word);
    std::memcpy(bytes.data() + at / 2, &value, sizeof value);
  }
  if (!port || *port > 65535)
    return std::nullopt;
  const bool is_v4 = colon == 8;
  // The prefix of an IPv4 address in an IPv6 socket.
  static constexpr std::array<unsigned char, 12> mapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255};
  const bool is_mapped = !is_v4 && std::equal(mapped.begin(), mapped.end(), bytes.begin());
  const unsigned char* first = bytes.data() + (is_mapped ? mapped.size() : 0);
  char shown[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(is_v4 || is_mapped ? AF_INET : AF_INET6, first, shown, sizeof shown);
  Address address{shown, false};
  address.loopback = is_v4 || is_mapped ? first[0] == 127 : address.text == "::1";
  std::string whole = is_v4 || is_mapped ? address.text : "[" + address.text + "]";
  whole += ":" + std::to_string(*port);
  return std::pair(address, whole);
}

std::string tcp_state(std::string_view code) {
  static constexpr std::array names = {"established", "syn-sent",  "syn-received", "fin-wait-1",
                                       "fin-wait-2",  "time-wait", "close",        "close-wait",
                                       "last-ack",    "listen",    "closing"};
  const auto number = unsigned_value(code, 16);
  return number && *number >= 1 && *number <= names.size() ? names[*number - 1] : "unknown";
}

bool is_device_of_interest(std::string_view target) {
  return starts_with(target, "/dev/infiniband/") || starts_with(target, "/dev/nvidia") ||
         target == "/dev/kfd" || target == "/dev/gdrdrv";
}

/// Reads one process; parts that cannot be read are noted and left out.
class ProcessReader {
public:
  ProcessReader(const Sysroot& sysroot, int pid) : sysroot_(sysroot), folder_(folder_of(pid)) {
    process_.pid = pid;
  }

  std::optional<Process> read() {
    const auto stat = read_stat(sysroot_, process_.pid);
    if (!stat)
      return std::nullopt;
    process_.stat = *stat;
    process_.status = parse_status(part("status"));
    process_.user = user_of(sysroot_, process_.pid);
    if (process_.user)
      process_.user_name = user_name(sysroot_, *process_.user);
    process_.command = parse_words(part("cmdline"));
    process_.limits = part("limits");
    if (const auto text = optional_part("environ"))
      process_.environment = parse_environment(*text);
    if (const auto text = optional_part("maps"))
      process_.maps = parse_maps(*text);
    read_exe();
    read_namespaces();
    read_descriptors();
    read_connections();
    read_threads();
    if (!read_stat(sysroot_, process_.pid)) // a process that is ending may be readable only in part
      return std::nullopt;
    return std::move(process_);
  }

private:
  void skip(const std::string& what, int error_number) {
    process_.skipped.push_back({what, reason_of(error_number)});
  }

  std::optional<std::string> optional_part(const std::string& name) {
    FileContent content = sysroot_.read_or_reason(folder_ + "/" + name, max_text_bytes);
    if (content.error_number == 0)
      return std::move(content.bytes);
    skip(name, content.error_number);
    return std::nullopt;
  }
  std::string part(const std::string& name) { return optional_part(name).value_or(""); }

  void read_exe() {
    if (const auto target = sysroot_.read_link(folder_ + "/exe"))
      process_.exe = *target;
    else
      skip("exe", errno);
  }

  void read_namespaces() {
    for (const char* kind : {"cgroup", "ipc", "mnt", "net", "pid", "user", "uts"})
      if (const auto target = sysroot_.read_link(folder_ + "/ns/" + kind))
        process_.namespaces[kind] = *target;
    if (process_.namespaces.empty())
      skip("ns", errno);
  }

  void read_descriptors() {
    const std::vector<std::string> numbers = sysroot_.list(folder_ + "/fd");
    if (numbers.empty()) {
      const auto content = sysroot_.read_or_reason(folder_ + "/fd");
      if (content.error_number != EISDIR)
        skip("fd", content.error_number);
      else
        process_.skipped.push_back(
            {"fd", "not readable, or none open: needs the same user, or root with CAP_SYS_PTRACE"});
      return;
    }
    for (const std::string& number : numbers) {
      const auto target = sysroot_.read_link(folder_ + "/fd/" + number);
      const auto value = parse_integer(number);
      if (!target || !value)
        continue;
      if (starts_with(*target, "socket:[")) {
        if (const auto inode = unsigned_value(std::string_view(*target).substr(
                8, target->size() - std::min<std::size_t>(9, target->size()))))
          process_.sockets.push_back(*inode);
      } else if (is_device_of_interest(*target)) {
        process_.devices.push_back({static_cast<int>(*value), *target});
      }
    }
  }

  void read_connections() {
    if (process_.sockets.empty())
      return;
    const std::set<std::uint64_t> own(process_.sockets.begin(), process_.sockets.end());
    for (const char* name : {"net/tcp", "net/tcp6"})
      for (TcpConnection& connection :
           parse_tcp(sysroot_.read(folder_ + "/" + name, max_text_bytes).value_or("")))
        if (own.count(connection.inode) != 0)
          process_.connections.push_back(std::move(connection));
  }

  void read_threads() {
    const std::vector<std::string> ids = sysroot_.list(folder_ + "/task");
    for (const std::string& id : ids) {
      const std::string folder = folder_ + "/task/" + id;
      const auto stat = parse_stat(sysroot_.read(folder + "/stat").value_or(""));
      const auto number = parse_integer(id);
      if (!stat || !number)
        continue;
      Thread thread;
      thread.id = static_cast<int>(*number);
      thread.name = stat->name;
      thread.state = stat->state;
      thread.cpu_ticks = stat->cpu_ticks;
      if (process_.threads.size() < max_threads && thread.state != 'R')
        read_wait(folder, thread);
      process_.threads.push_back(std::move(thread));
    }
    if (wait_error_ != 0)
      skip("task/*/syscall", wait_error_);
  }

  void read_wait(const std::string& folder, Thread& thread) {
    thread.wchan = sysroot_.read_line(folder + "/wchan").value_or("");
    if (thread.wchan == "0")
      thread.wchan.clear();
    if (wait_error_ != 0)
      return; // the reason is the same for all threads
    const FileContent call = sysroot_.read_or_reason(folder + "/syscall");
    if (call.error_number == ENOENT || call.error_number == ESRCH)
      return;
    wait_error_ = call.error_number;
    std::string_view line = call.bytes;
    if (const auto number = parse_integer(trim(take_word(line))); number && *number >= 0)
      thread.system_call = static_cast<long>(*number);
  }

  const Sysroot& sysroot_;
  std::string folder_;
  Process process_;
  int wait_error_ = 0;
};

} // namespace

std::vector<MappedFile> parse_maps(std::string_view text) {
  std::vector<MappedFile> files;
  std::set<std::pair<std::string, std::uint64_t>> seen;
  each_line(text, [&](std::string_view line) {
    const std::string_view range = take_word(line);
    take_word(line); // rights
    take_word(line); // offset
    const std::string_view device = take_word(line);
    const auto inode = unsigned_value(take_word(line));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (!inode || *inode == 0 || !starts_with(line, "/") ||
        range.find('-') == std::string_view::npos ||
        !seen.emplace(std::string(device), *inode).second)
      return;
    constexpr std::string_view gone = " (deleted)";
    MappedFile file;
    file.deleted = ends_with(line, gone);
    file.path = unescaped(line.substr(0, line.size() - (file.deleted ? gone.size() : 0)));
    file.device = device;
    file.inode = *inode;
    file.range = range;
    files.push_back(std::move(file));
  });
  return files;
}

std::optional<ProcessStat> parse_stat(std::string_view text) {
  // The name may contain blanks and parentheses; it ends at the last closing one.
  const std::size_t open = text.find('('), close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return std::nullopt;
  ProcessStat stat;
  stat.name = text.substr(open + 1, close - open - 1);
  std::string_view rest = text.substr(close + 1);
  std::vector<std::string_view> fields;
  for (std::string_view word = take_word(rest); !word.empty() && fields.size() < 32;
       word = take_word(rest))
    fields.push_back(word);
  constexpr std::size_t user_time = 11, system_time = 12, start_time = 19;
  if (fields.size() <= start_time || fields[0].size() != 1)
    return std::nullopt;
  const auto parent = parse_integer(fields[1]);
  const auto user = unsigned_value(fields[user_time]), system = unsigned_value(fields[system_time]),
             start = unsigned_value(trim(fields[start_time]));
  if (!parent || *parent < 0 || *parent > 1 << 30 || !user || !system || !start)
    return std::nullopt;
  stat.state = fields[0][0];
  stat.parent = static_cast<int>(*parent);
  stat.cpu_ticks = *user + *system;
  stat.start_ticks = *start;
  return stat;
}

std::vector<TcpConnection> parse_tcp(std::string_view text) {
  std::vector<TcpConnection> connections;
  each_line(text, [&connections](std::string_view line) {
    take_word(line); // "0:"
    const auto local = parse_address(take_word(line));
    const auto remote = parse_address(take_word(line));
    const std::string state = tcp_state(take_word(line));
    const std::string_view queues = take_word(line);
    for (int unused = 0; unused < 4; ++unused) // timer, retransmits, user, timeout
      take_word(line);
    const auto inode = unsigned_value(take_word(line));
    if (!local || !remote || !inode)
      return;
    TcpConnection connection;
    connection.local = local->second;
    connection.remote = remote->second;
    connection.state = state;
    connection.local_only = local->first.loopback || local->first.text == remote->first.text;
    connection.queued_bytes =
        unsigned_value(queues.substr(0, std::min(queues.find(':'), queues.size())), 16).value_or(0);
    connection.inode = *inode;
    connections.push_back(std::move(connection));
  });
  return connections;
}

std::vector<std::string> parse_words(std::string_view text) {
  if (ends_with(text, std::string_view("\0", 1)))
    text.remove_suffix(1);
  return text.empty() ? std::vector<std::string>() : split(text, '\0');
}

std::map<std::string, std::string> parse_environment(std::string_view text) {
  std::map<std::string, std::string> variables;
  for (const std::string& word : parse_words(text)) {
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos && equals > 0)
      variables.emplace(word.substr(0, equals), word.substr(equals + 1));
  }
  return variables;
}

std::map<std::string, std::string> parse_status(std::string_view text) {
  std::map<std::string, std::string> fields;
  each_line(text, [&fields](std::string_view line) {
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos)
      fields.emplace(line.substr(0, colon), trim(line.substr(colon + 1)));
  });
  return fields;
}

std::vector<int> process_ids(const Sysroot& sysroot) {
  std::vector<int> ids;
  for (const std::string& name : sysroot.list("/proc"))
    if (const auto id = parse_integer(name); id && *id > 0 && *id < 1 << 30)
      ids.push_back(static_cast<int>(*id));
  return ids;
}

std::optional<ProcessStat> read_stat(const Sysroot& sysroot, int pid) {
  return parse_stat(sysroot.read(folder_of(pid) + "/stat").value_or(""));
}

std::optional<unsigned> user_of(const Sysroot& sysroot, int pid) {
  const auto fields = parse_status(sysroot.read(folder_of(pid) + "/status").value_or(""));
  const auto ids = fields.find("Uid");
  if (ids == fields.end())
    return std::nullopt;
  const std::vector<std::string> words = split_blanks(ids->second);
  const auto id = words.size() > 1 ? unsigned_value(words[1]) : std::nullopt;
  return id && *id <= 0xffffffffU ? std::optional(static_cast<unsigned>(*id)) : std::nullopt;
}

std::optional<unsigned> user_id(const Sysroot& sysroot, const std::string& name) {
  for (const std::string& line : split(sysroot.read("/etc/passwd").value_or(""), '\n')) {
    const std::vector<std::string> fields = split(line, ':');
    if (fields.size() > 2 && fields[0] == name)
      if (const auto id = unsigned_value(fields[2]); id && *id <= 0xffffffffU)
        return static_cast<unsigned>(*id);
  }
  if (sysroot.live())
    if (const auto entry =
            user_entry([&](auto... result) { return ::getpwnam_r(name.c_str(), result...); }))
      return entry->second;
  const auto number = unsigned_value(name);
  return number && *number <= 0xffffffffU ? std::optional(static_cast<unsigned>(*number))
                                          : std::nullopt;
}

std::string user_name(const Sysroot& sysroot, unsigned id) {
  for (const std::string& line : split(sysroot.read("/etc/passwd").value_or(""), '\n')) {
    const std::vector<std::string> fields = split(line, ':');
    if (fields.size() > 2 && fields[2] == std::to_string(id))
      return fields[0];
  }
  if (sysroot.live())
    if (const auto entry = user_entry([&](auto... result) { return ::getpwuid_r(id, result...); }))
      return entry->first;
  return std::to_string(id);
}

std::optional<std::vector<MappedFile>> read_maps(const Sysroot& sysroot, int pid) {
  const auto text = sysroot.read(folder_of(pid) + "/maps", max_text_bytes);
  return text ? std::optional(parse_maps(*text)) : std::nullopt;
}

std::optional<Process> read_process(const Sysroot& sysroot, int pid) {
  return ProcessReader(sysroot, pid).read();
}

std::optional<Rank> rank_of(const Process& process) {
  if (!process.environment)
    return std::nullopt;
  for (const char* name :
       {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    const auto variable = process.environment->find(name);
    if (variable == process.environment->end())
      continue;
    if (const auto number = parse_integer(variable->second);
        number && *number >= 0 && *number < 1 << 30)
      return Rank{static_cast<int>(*number), name};
  }
  return std::nullopt;
}

} // namespace shmemctl::inspect
