#include "src/instruments/gather/recorder.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <fmt/format.h>
#include <optional>
#include <string_view>
#include <unistd.h>
#include <utility>

#include "src/base/text.h"
#include "src/instruments/doctor/kernel_log.h"
#include "src/instruments/doctor/libraries.h"
#include "src/instruments/gather/elf_excerpt.h"
#include "src/instruments/libraries/libraries.h"

namespace shmemctl::gather {

namespace {

constexpr std::size_t max_file_bytes = 64U << 20, max_processes = 1024, max_links = 40;

std::string proc(int pid) {
  return "/proc/" + std::to_string(pid);
}

/// The lines that `keep` accepts, each with a line feed.
template <class Keep>
std::string lines_that(std::string_view text, Keep keep) {
  std::string kept;
  each_line(text, [&](std::string_view line) {
    if (keep(line)) {
      kept += line;
      kept += '\n';
    }
  });
  return kept;
}

bool begins_with_any(std::string_view text, const std::vector<std::string>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [text](const std::string& each) { return starts_with(text, each); });
}

bool is_memory_mount(std::string_view line) {
  const std::vector<std::string> words = split_blanks(line);
  if (words.size() < 4)
    return false;
  for (const char* type : {"tmpfs", "hugetlbfs", "cgroup", "cgroup2"})
    if (words[2] == type)
      return true;
  return words[1] == "/dev/shm";
}

/// "COMMAND\0[3 arguments]\0"
std::string short_command(std::string_view content) {
  const std::vector<std::string> words = inspect::parse_words(content);
  if (words.empty())
    return {};
  std::string text = words[0].substr(words[0].rfind('/') + 1) + '\0';
  if (words.size() > 1)
    text += "[" + counted(words.size() - 1, "argument") + "]" + '\0';
  return text;
}

/// Replaces an address in the format of /proc/net/tcp and tcp6: hexadecimal 32-bit values in host
/// byte order.
std::string replaced_address(std::string_view text, Anonymizer& names) {
  const std::size_t colon = text.find(':');
  std::array<std::uint8_t, 16> bytes{};
  if ((colon != 8 && colon != 32) ||
      text.substr(0, colon).find_first_not_of("0123456789ABCDEFabcdef") != std::string_view::npos)
    return std::string(text);
  for (std::size_t at = 0; at < colon; at += 8) {
    const auto word = static_cast<std::uint32_t>(parse_integer(text.substr(at, 8), 16).value_or(0));
    std::memcpy(bytes.data() + at / 2, &word, sizeof word);
  }
  if (colon == 8) {
    const std::uint32_t changed = names.ipv4(static_cast<std::uint32_t>(bytes[0]) << 24 |
                                             static_cast<std::uint32_t>(bytes[1]) << 16 |
                                             static_cast<std::uint32_t>(bytes[2]) << 8 | bytes[3]);
    bytes = {static_cast<std::uint8_t>(changed >> 24), static_cast<std::uint8_t>(changed >> 16),
             static_cast<std::uint8_t>(changed >> 8), static_cast<std::uint8_t>(changed)};
  } else {
    bytes = names.gid(bytes);
  }
  std::string result;
  for (std::size_t at = 0; at < colon; at += 8) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes.data() + at / 2, sizeof word);
    result += fmt::format("{:08X}", word);
  }
  return result + std::string(text.substr(colon));
}

bool is_refusal(int error_number) {
  return error_number == EACCES || error_number == EPERM;
}

} // namespace

Recorder::Recorder(const Sysroot& sysroot, Anonymizer* names) : sysroot_(sysroot), names_(names) {
  choose_processes();
  learn_names();
}

void Recorder::choose_processes() {
  std::map<int, inspect::ProcessStat> all;
  for (const int pid : inspect::process_ids(sysroot_)) {
    if (const auto stat = inspect::read_stat(sysroot_, pid))
      all.emplace(pid, *stat);
    const auto files = inspect::read_maps(sysroot_, pid);
    if (files && pids_.size() < max_processes &&
        std::any_of(files->begin(), files->end(), [](const libraries::MappedFile& file) {
          return libraries::library_kind(file.path) != nullptr;
        }))
      pids_.insert(pid);
  }
  children_ = pids_;
  for (bool grew = true; grew;) { // a child may have a lower PID than its parent
    grew = false;
    for (const auto& [pid, stat] : all)
      if (children_.count(stat.parent) != 0 && children_.insert(pid).second)
        grew = true;
  }
}

void Recorder::learn_names() {
  if (names_ == nullptr)
    return;
  names_->add_host(sysroot_.read_line("/proc/sys/kernel/hostname").value_or(""));
  names_->add_host(sysroot_.read_line("/etc/hostname").value_or(""));
  each_line(sysroot_.read("/etc/hosts").value_or(""), [this](std::string_view line) {
    line = line.substr(0, line.find('#'));
    const std::vector<std::string> words = split_blanks(line);
    for (std::size_t i = 1; i < words.size(); ++i)
      names_->add_host(words[i]);
  });
  // Accounts of people, and of users whose processes are recorded.
  std::set<std::string> users;
  for (const int pid : pids_)
    if (const auto user = inspect::user_of(sysroot_, pid))
      users.insert(std::to_string(*user));
  each_line(sysroot_.read("/etc/passwd", max_file_bytes).value_or(""), [&](std::string_view line) {
    const std::vector<std::string> fields = split(line, ':');
    if (fields.size() < 6)
      return;
    const long long number = parse_integer(fields[2]).value_or(0);
    if (users.count(fields[2]) != 0 || (number >= 1000 && number < 65534))
      names_->add_user(fields[0]);
  });
  // Users that only a directory service knows: names of home folders, and names in the job's
  // variables.
  for (const std::string& name : sysroot_.list("/home"))
    names_->add_user(name);
  for (const int pid : pids_) {
    const auto variables =
        inspect::parse_environment(sysroot_.read(proc(pid) + "/environ").value_or(""));
    const auto value = [&variables](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? std::string() : found->second;
    };
    for (const char* name : {"USER", "LOGNAME"})
      names_->add_user(value(name));
    for (const char* name : {"HOSTNAME", "SLURMD_NODENAME", "SLURM_SUBMIT_HOST", "MASTER_ADDR"})
      if (const std::string host = value(name);
          host.find_first_not_of("0123456789.:") != std::string::npos &&
          host.find(':') == std::string::npos)
        names_->add_host(host);
  }
}

void Recorder::put(const std::string& path, FileEntry entry) {
  const std::string place = this->path(path);
  if (tree_.find(place) != nullptr)
    return; // two patterns name the same path
  const auto depth = static_cast<std::size_t>(std::count(place.begin(), place.end(), '/'));
  std::size_t longest = 0;
  for (const std::string& part : split(place, '/'))
    longest = std::max(longest, part.size());
  if (place.size() > archive_limits::max_path_bytes || depth > archive_limits::max_depth ||
      longest > archive_limits::max_name_bytes ||
      tree_.entries().size() + depth > archive_limits::max_entries ||
      !tree_.add(place, std::move(entry)))
    left_out_.push_back(place);
}

void Recorder::put_file(const std::string& path, std::string content, int error_number) {
  FileEntry entry;
  entry.kind = FileEntry::Kind::file;
  entry.content = std::move(content);
  entry.error_number = error_number;
  put(path, std::move(entry));
}

void Recorder::add(const std::string& path, const std::string& content) {
  put_file(path, content);
}

std::string Recorder::enter(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string above = slash == 0 ? "" : path.substr(0, slash);
  const auto known = entered_.find(above);
  std::deque<std::string> pending;
  for (std::string& part : split(known != entered_.end() ? path.substr(slash) : path, '/'))
    if (!part.empty())
      pending.push_back(std::move(part));
  std::string done = known != entered_.end() ? known->second : "";
  std::size_t links = 0;
  while (!pending.empty()) {
    if (known == entered_.end() && pending.size() == 1) // all but the last part
      entered_.emplace(above, done);
    const std::string part = pending.front();
    pending.pop_front();
    if (part == ".")
      continue;
    if (part == "..") {
      done.erase(std::min(done.rfind('/'), done.size()));
      continue;
    }
    const std::string next = done + "/" + part;
    const auto target = sysroot_.read_link(next);
    if (!target) {
      done = next;
      continue;
    }
    if (++links > max_links)
      return {};
    FileEntry entry;
    entry.kind = FileEntry::Kind::link;
    entry.content = this->path(*target);
    put(next, std::move(entry));
    if (starts_with(*target, "/"))
      done.clear();
    std::vector<std::string> parts;
    for (std::string& each : split(*target, '/'))
      if (!each.empty())
        parts.push_back(std::move(each));
    pending.insert(pending.begin(), parts.begin(), parts.end());
  }
  return sysroot_.exists(done.empty() ? "/" : done) ? done : std::string();
}

void Recorder::record() {
  for (const RecordedFiles& row : recorded_files())
    record_row(row);
  record_mapped_libraries();
  record_wheels();
  record_packages();
  record_kernel_log();
}

void Recorder::record_row(const RecordedFiles& row) {
  if (starts_with(row.path, "/")) // the libraries of {libraries} come with the mapped files
    expand("", split(std::string_view(row.path).substr(1), '/'), 0, row);
}

void Recorder::expand(const std::string& folder, const std::vector<std::string>& parts,
                      std::size_t next, const RecordedFiles& row) {
  if (next == parts.size()) {
    record_file(folder, row);
    return;
  }
  const std::string& part = parts[next];
  if (part == "{pid}" || part == "{child}") {
    for (const int pid : part == "{pid}" ? pids_ : children_)
      expand(folder + "/" + std::to_string(pid), parts, next + 1, row);
    return;
  }
  if (part.find_first_of("*?") == std::string::npos) {
    expand(folder + "/" + part, parts, next + 1, row);
    return;
  }
  for (const std::string& name : sysroot_.list(folder.empty() ? "/" : folder))
    if (matches_pattern(name, part))
      expand(folder + "/" + name, parts, next + 1, row);
}

void Recorder::record_presence(const std::string& path) {
  const std::string real = enter(path);
  if (real.empty())
    return;
  FileEntry entry;
  entry.kind = sysroot_.is_directory(real) ? FileEntry::Kind::folder : FileEntry::Kind::file;
  put(real, std::move(entry));
}

void Recorder::record_link(const std::string& path, const RecordedFiles& row) {
  const auto target = sysroot_.read_link(path);
  const int problem = errno;
  const std::size_t slash = path.rfind('/');
  const std::string above = enter(path.substr(0, slash));
  if (above.empty())
    return;
  if (!target) {
    if (is_refusal(problem))
      put_file(above + path.substr(slash), "", problem);
    return;
  }
  if (row.treatment == Treatment::descriptor && !starts_with(*target, "socket:[") &&
      !starts_with(*target, "/dev/infiniband/") && !starts_with(*target, "/dev/nvidia") &&
      *target != "/dev/kfd" && *target != "/dev/gdrdrv")
    return;
  FileEntry entry;
  entry.kind = FileEntry::Kind::link;
  entry.content = this->path(*target);
  put(above + path.substr(slash), std::move(entry));
}

void Recorder::record_file(const std::string& path, const RecordedFiles& row) {
  if (row.treatment == Treatment::link || row.treatment == Treatment::descriptor)
    return record_link(path, row);
  if (row.treatment == Treatment::presence)
    return record_presence(path);
  if (row.treatment == Treatment::library)
    return record_library(path);
  FileContent content = sysroot_.read_or_reason(path, max_file_bytes);
  if (content.error_number != 0 && !is_refusal(content.error_number))
    return; // a missing file is missing in the archive as well
  std::string kept = treated(content.bytes, path, row);
  if (kept.empty() && row.treatment == Treatment::lines)
    return;
  const std::string real = enter(path);
  if (!real.empty())
    put_file(real, std::move(kept), content.error_number);
}

std::string Recorder::treated(const std::string& content, const std::string& path,
                              const RecordedFiles& row) {
  const std::vector<std::string> keep = split(row.keep, '|');
  switch (row.treatment) {
  case Treatment::binary:
    return content;
  case Treatment::lines:
    return text(lines_that(content,
                           [&keep](std::string_view line) { return begins_with_any(line, keep); }));
  case Treatment::mounts:
    return text(lines_that(content, is_memory_mount));
  case Treatment::maps:
    return this->path(lines_that(content, [](std::string_view line) {
      const std::vector<libraries::MappedFile> files = inspect::parse_maps(line);
      return !files.empty() && libraries::library_kind(files.front().path) != nullptr;
    }));
  case Treatment::first_word: {
    const std::vector<std::string> words = split_blanks(trim(content));
    return words.empty() ? std::string() : words.front() + "\n";
  }
  case Treatment::command:
    return names_ != nullptr ? text(short_command(content)) : content;
  case Treatment::environment:
    return treated_environment(content);
  case Treatment::kernel_command: {
    std::vector<std::string> words;
    for (const std::string& word : split_blanks(trim(content)))
      if (begins_with_any(word, keep))
        words.push_back(word);
    return text(join(words, " ")) + "\n";
  }
  case Treatment::sockets:
    return treated_sockets(content, path);
  case Treatment::users:
    return treated_users(content);
  default:
    return text(content);
  }
}

std::string Recorder::treated_environment(std::string_view content) {
  std::string kept;
  for (const std::string& word : inspect::parse_words(content)) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || !recorded_variable(word.substr(0, equals)))
      continue;
    const std::string name = word.substr(0, equals), value = word.substr(equals + 1);
    kept += name + "=" + (ends_with(name, "PATH") ? path(value) : text(value)) + '\0';
  }
  return kept;
}

std::string Recorder::treated_sockets(std::string_view content, const std::string& path) {
  const std::string folder = path.substr(0, path.find("/net/"));
  std::set<std::string> own;
  for (const std::string& number : sysroot_.list(folder + "/fd"))
    if (const auto target = sysroot_.read_link(folder + "/fd/" + number);
        target && starts_with(*target, "socket:["))
      own.insert(target->substr(8, target->size() - 9));
  std::string kept;
  bool header = true;
  each_line(content, [&](std::string_view line) {
    std::vector<std::string> words = split_blanks(line);
    constexpr std::size_t local = 1, remote = 2, inode = 9;
    if (std::exchange(header, false)) {
      kept += std::string(line) + "\n";
      return;
    }
    if (words.size() <= inode || own.count(words[inode]) == 0)
      return;
    if (names_ != nullptr) {
      words[local] = replaced_address(words[local], *names_);
      words[remote] = replaced_address(words[remote], *names_);
    }
    kept += "  " + join(words, " ") + "\n";
  });
  return kept;
}

std::string Recorder::treated_users(std::string_view content) const {
  std::set<std::string> users;
  for (const int pid : pids_)
    if (const auto user = inspect::user_of(sysroot_, pid))
      users.insert(std::to_string(*user));
  std::string kept;
  each_line(content, [&](std::string_view line) {
    const std::vector<std::string> fields = split(line, ':');
    if (fields.size() > 3 && users.count(fields[2]) != 0)
      kept += (names_ != nullptr ? names_->text(fields[0]) : fields[0]) + ":x:" + fields[2] + ":" +
              fields[3] + ":::\n";
  });
  return kept;
}

void Recorder::record_library(const std::string& path) {
  int error_number = 0;
  const FileDescriptor file = sysroot_.open(path, error_number);
  const bool by_mapping = path.find("/map_files/") != std::string::npos; // no link to follow
  const std::string real = by_mapping ? path : enter(path);
  if (real.empty() || tree_.find(this->path(real)) != nullptr)
    return;
  if (!file) {
    if (is_refusal(error_number))
      put_file(real, "", error_number);
    return;
  }
  put_file(real, elf_excerpt(libraries::reader_of(file), libraries::library_kind(path)));
}

void Recorder::record_mapped_libraries() {
  for (const std::string& folder : doctor::library_folders(sysroot_)) {
    record_presence(folder);
    for (const std::string& name : sysroot_.list(folder))
      for (const RecordedFiles& row : recorded_files())
        if (constexpr std::string_view place = "{libraries}/";
            starts_with(row.path, place) &&
            matches_pattern(name, std::string_view(row.path).substr(place.size())))
          record_library(folder + "/" + name);
  }
  const std::string own =
      sysroot_.live() ? sysroot_.read_link("/proc/self/ns/mnt").value_or("") : "";
  for (const int pid : pids_) {
    const auto files = inspect::read_maps(sysroot_, pid);
    // The same test as in inspect: a process may see other files.
    const bool elsewhere = sysroot_.live()
                               ? sysroot_.read_link(proc(pid) + "/ns/mnt").value_or(own) != own
                               : sysroot_.is_directory(proc(pid) + "/root");
    if (elsewhere)
      put(proc(pid) + "/root", FileEntry());
    for (const libraries::MappedFile& file : files.value_or(std::vector<libraries::MappedFile>())) {
      if (libraries::library_kind(file.path) == nullptr)
        continue;
      mapped_.insert(file.path);
      if (file.deleted) {
        record_library(proc(pid) + "/map_files/" + file.range);
        if (sysroot_.exists(file.path)) // if it exists again, it was replaced rather than deleted
          record_presence(file.path);
      } else if (elsewhere) {
        int error_number = 0;
        const std::string inside = proc(pid) + "/root" + file.path;
        const FileDescriptor open = sysroot_.open(inside, error_number);
        // Links within that root are not followed.
        if (open || is_refusal(error_number))
          put_file(inside,
                   open
                       ? elf_excerpt(libraries::reader_of(open), libraries::library_kind(file.path))
                       : "",
                   open ? 0 : error_number);
      } else {
        record_library(file.path);
      }
    }
  }
}

void Recorder::record_wheels() {
  std::set<std::string> sites;
  for (const std::string& path : mapped_)
    for (const std::string_view folder : {"/site-packages/", "/dist-packages/"})
      if (const std::size_t at = path.rfind(folder); at != std::string::npos)
        sites.insert(path.substr(0, at + folder.size() - 1));
  for (const std::string& site : sites)
    for (const std::string& name : sysroot_.list(site)) {
      if (!ends_with(name, ".dist-info"))
        continue;
      const std::string record = site + "/" + name + "/RECORD";
      const std::string kept =
          lines_that(sysroot_.read(record, max_file_bytes).value_or(""), [](std::string_view line) {
            return libraries::library_kind(line.substr(0, line.find(','))) != nullptr;
          });
      const std::string real = kept.empty() ? std::string() : enter(record);
      if (!real.empty())
        put_file(real, path(kept));
    }
}

void Recorder::record_packages() {
  const std::string folder = "/var/lib/dpkg/info/";
  std::set<std::string> packages;
  for (const std::string& name : sysroot_.list(folder)) {
    if (!ends_with(name, ".list"))
      continue;
    const std::string kept =
        lines_that(sysroot_.read(folder + name, max_file_bytes).value_or(""),
                   [](std::string_view line) { return libraries::library_kind(line) != nullptr; });
    const std::string real = kept.empty() ? std::string() : enter(folder + name);
    if (real.empty())
      continue;
    put_file(real, kept);
    packages.insert(name.substr(0, std::min(name.find(':'), name.size() - 5)));
  }
  if (packages.empty())
    return;
  bool wanted = false;
  const std::string kept = lines_that(
      sysroot_.read("/var/lib/dpkg/status", max_file_bytes).value_or(""),
      [&](std::string_view line) {
        if (starts_with(line, "Package: "))
          wanted = packages.count(std::string(line.substr(9))) != 0;
        return wanted && (starts_with(line, "Package: ") || starts_with(line, "Version: "));
      });
  const std::string real = enter("/var/lib/dpkg/status");
  if (!real.empty())
    put_file(real, kept);
}

void Recorder::record_kernel_log() {
  const doctor::KernelLogRead read = doctor::read_kernel_log(sysroot_);
  if (!read.problem.empty())
    return;
  const std::vector<doctor::KernelMessage>& messages = doctor::kernel_messages();
  const std::string kept = lines_that(read.log.text, [&messages](std::string_view line) {
    const auto parsed = doctor::parse_kernel_line(line);
    return parsed && std::any_of(messages.begin(), messages.end(),
                                 [&parsed](const doctor::KernelMessage& message) {
                                   return message.pattern.matches(parsed->message);
                                 });
  });
  const std::string place = starts_with(read.log.origin, "/") ? read.log.origin : "/dev/kmsg";
  put_file(place, text(kept));
}

} // namespace shmemctl::gather
