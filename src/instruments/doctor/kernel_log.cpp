#include "src/instruments/doctor/kernel_log.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <sys/klog.h>
#include <tuple>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file_descriptor.h"
#include "src/base/text.h"
#include "src/instruments/doctor/support.h"

namespace shmemctl::doctor {

namespace {

constexpr std::size_t max_events = 1000;
constexpr std::size_t max_log_bytes = std::size_t{64} << 20;

constexpr std::array<std::pair<const char*, const char*>, 6> actions = {
    {{"none", "nothing to be done"},
     {"restart-app", "restart the application"},
     {"reset-gpu", "reset the GPU"},
     {"reboot", "reboot the node"},
     {"replace", "replace the hardware"},
     {"investigate", "look into it"}}};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

std::string action_of(const CatalogueEntry& entry) {
  for (const auto& [name, words] : actions)
    if (entry.value("action") == name)
      return name;
  entry.refuse_key("action", printable(entry.value("action")) + " is not an action",
                   "none, restart-app, reset-gpu, reboot, replace or investigate");
}

/// Removes "[   12.345678]" or "[Tue Nov  3 10:00:00 2026]" from the beginning of `text` and
/// returns the time in it.
std::string_view take_bracketed_time(std::string_view& text) {
  if (text.empty() || text[0] != '[')
    return {};
  const std::size_t end = text.find(']');
  if (end == std::string_view::npos || end > 40)
    return {};
  const std::string_view inside = trim(text.substr(1, end - 1));
  const bool seconds = !inside.empty() && is_digit(inside[0]) &&
                       inside.find_first_not_of("0123456789.") == std::string_view::npos;
  const bool date = inside.size() >= 20 && std::count(inside.begin(), inside.end(), ':') == 2;
  if (!seconds && !date)
    return {};
  text = text.substr(end + 1);
  return inside;
}

/// The length of "Nov  3 10:00:00" or "2026-11-03T10:00:00.123456+00:00" at the beginning; 0 if
/// there is no date.
std::size_t leading_date(std::string_view text) {
  const auto digits = [&](std::size_t at, std::size_t count) {
    for (std::size_t i = at; i < at + count; ++i)
      if (i >= text.size() || !is_digit(text[i]))
        return false;
    return true;
  };
  if (digits(0, 4) && text.size() > 19 && text[4] == '-' && text[10] == 'T') {
    const std::size_t blank = text.find(' ');
    return blank == std::string_view::npos || blank > 40 ? 0 : blank;
  }
  constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";
  if (text.size() < 16 || text[3] != ' ' || text[6] != ' ' || text[9] != ':' || text[12] != ':')
    return 0;
  const std::size_t month = months.find(text.substr(0, 3));
  return month != std::string_view::npos && month % 3 == 0 && digits(7, 2) && digits(13, 2) ? 15
                                                                                            : 0;
}

} // namespace

std::vector<KernelMessage> parse_kernel_messages(const std::string& text,
                                                 const std::string& subject) {
  using Key = CatalogueKey;
  CatalogueReader reader({{"source", {}, true},
                          {"message",
                           {{"check"},
                            {"severity"},
                            {"action"},
                            {"least", Key::optional},
                            {"pattern"},
                            {"meaning"},
                            {"fix"},
                            {"cites"},
                            {"example"}}}});
  std::map<std::string, std::string> sources;
  std::vector<KernelMessage> messages;
  for (const CatalogueEntry& entry : reader.read(text, subject)) {
    if (entry.kind == "source") {
      sources.emplace(entry.id, entry.text);
      continue;
    }
    KernelMessage message;
    message.id = entry.id;
    message.check = entry.value("check");
    message.severity = entry.severity("severity");
    message.action = action_of(entry);
    message.least = entry.count("least", 1);
    message.pattern = entry.patterns("pattern").front();
    message.meaning = entry.value("meaning");
    message.fix = entry.value("fix");
    const auto source = sources.find(entry.value("cites"));
    if (source == sources.end())
      entry.refuse_key("cites",
                       "source " + printable(entry.value("cites")) + " is not defined above",
                       "a line above it: source NAME REFERENCE");
    message.source = source->second;
    message.example = entry.value("example");
    messages.push_back(std::move(message));
  }
  return messages;
}

const std::vector<KernelMessage>& kernel_messages() {
  static const std::vector<KernelMessage> messages =
      parse_kernel_messages(kernel_messages_text(), "built-in kernel messages");
  return messages;
}

std::string action_words(const std::string& action) {
  for (const auto& [name, words] : actions)
    if (action == name)
      return words;
  return action;
}

std::optional<KernelLine> parse_kernel_line(std::string_view line) {
  KernelLine result;
  // /dev/kmsg: "6,339,5140900,-;message"
  const std::size_t semicolon = line.find(';');
  if (semicolon != std::string_view::npos && semicolon < 64 && !line.empty() && is_digit(line[0]) &&
      std::count(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(semicolon), ',') >= 3) {
    const std::size_t second = line.find(',', line.find(',') + 1);
    const std::size_t third = line.find(',', second + 1);
    return KernelLine{line.substr(second + 1, third - second - 1), line.substr(semicolon + 1)};
  }
  if (line.size() > 2 && line[0] == '<' && is_digit(line[1])) // dmesg -r
    if (const std::size_t end = line.find('>'); end != std::string_view::npos && end < 6)
      line = line.substr(end + 1);
  if (starts_with(line, "kern ")) // dmesg -x: "kern  :info  : [    0.1] message"
    if (const std::size_t bracket = line.find('[');
        bracket != std::string_view::npos && bracket < 20)
      line = line.substr(bracket);
  if (const std::size_t date = leading_date(line); date != 0) {
    result.time = line.substr(0, date);
    line = line.substr(date);
    if (result.time.find(',') != std::string_view::npos) { // dmesg --time-format iso: no host
      result.message = trim(line);
      return result;
    }
    const std::size_t tag = line.find(" kernel: ");
    if (tag == std::string_view::npos || tag > 300)
      return std::nullopt;
    line = line.substr(tag + 9);
    take_bracketed_time(line);
  } else {
    result.time = take_bracketed_time(line);
  }
  result.message = trim(line);
  return result;
}

std::optional<PciAddress> address_in(std::string_view message, std::size_t begin) {
  std::optional<PciAddress> before;
  for (std::size_t i = 0; i < message.size();) {
    if (!is_hex(message[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < message.size() &&
           (is_hex(message[end]) || message[end] == ':' || message[end] == '.'))
      ++end;
    std::string_view word = message.substr(i, end - i);
    const std::size_t start = i;
    i = end;
    while (!word.empty() && (word.back() == ':' || word.back() == '.'))
      word.remove_suffix(1);
    const auto colons = std::count(word.begin(), word.end(), ':');
    const bool function = word.find('.') != std::string_view::npos;
    // The address in an Xid message has no function: "0000:3b:00". Two numbers with one colon may
    // be anything.
    if (!(colons == 2 && word.find(':') >= 4) && !(colons == 1 && function))
      continue;
    const auto address = parse_pci_address(function ? std::string(word) : std::string(word) + ".0");
    if (!address)
      continue;
    if (start >= begin)
      return address;
    before = address;
  }
  return before;
}

namespace {

/// What starts anew when the kernel logs a message: the machine, a driver, or a GPU.
enum class Start { none, boot, driver, driver_loaded, gpu_reset };
Start start_at(std::string_view message) {
  if (starts_with(message, "Linux version "))
    return Start::boot;
  // This is the first message when the driver is loaded. Failures to initialise a GPU may come
  // between it and the line that contains the version.
  if (starts_with(message, "nvidia-nvlink: Nvlink Core is being initialized"))
    return Start::driver;
  if (starts_with(message, "NVRM: loading NVIDIA UNIX"))
    return Start::driver_loaded;
  // A reset of the PCI function: "nvidia 0000:3b:00.0: reset done". A GPU that is passed through to
  // a virtual machine is reset under vfio-pci.
  if ((starts_with(message, "nvidia ") || starts_with(message, "vfio-pci ")) &&
      ends_with(message, ": reset done"))
    return Start::gpu_reset;
  // Xid 154 with the recovery action "None": the driver reports that no further action is needed.
  if (starts_with(message, "NVRM: Xid (") && ends_with(message, " (None)") &&
      message.find("): 154,") != std::string_view::npos)
    return Start::gpu_reset;
  return Start::none;
}

/// @param gpu the GPU that was reset; events of other GPUs are not cured
bool cures(Start start, const std::optional<PciAddress>& gpu, const KernelEvent& event) {
  const KernelMessage& message = *event.message;
  if (message.action == "replace")
    return false;
  if (start == Start::boot)
    return true;
  if (message.action == "reboot")
    return false;
  if (start == Start::gpu_reset)
    return message.check == "xid" && gpu && event.address == gpu;
  return message.check == "xid" || (message.check == "nvrm" && start == Start::driver);
}

void cure(Start start, const std::optional<PciAddress>& gpu, std::vector<KernelEvent>& events) {
  for (KernelEvent& event : events)
    if (event.count > event.cured && cures(start, gpu, event)) {
      event.cured = event.count;
      event.cure = start == Start::boot        ? "the last boot"
                   : start == Start::gpu_reset ? "the GPU was reset"
                                               : "the driver was loaded again";
    }
}

} // namespace

KernelEvents find_kernel_events(std::string_view log, const std::vector<KernelMessage>& messages,
                                const std::string& check) {
  KernelEvents found;
  std::map<std::tuple<const KernelMessage*, std::optional<PciAddress>, std::string>, std::size_t>
      known;
  while (!log.empty()) {
    std::string_view raw = take_line(log);
    if (!raw.empty() && raw.back() == '\r')
      raw.remove_suffix(1);
    const std::optional<KernelLine> line = parse_kernel_line(raw);
    if (!line || line->message.empty())
      continue;
    ++found.lines;
    if (const Start start = start_at(line->message); start != Start::none) {
      cure(start, address_in(line->message, 0), found.events);
      if (start != Start::gpu_reset) // the line may also match the catalogue
        continue;
    }
    for (const KernelMessage& message : messages) {
      if (message.check != check)
        continue;
      const std::optional<LinePattern::Match> match = message.pattern.match(line->message);
      if (!match)
        continue;
      KernelEvent event;
      event.message = &message;
      event.address = address_in(line->message, match->begin);
      event.detail = printable(std::string(trim(match->captured)), 60);
      const auto [entry, fresh] = known.try_emplace(
          std::tuple(event.message, event.address, event.detail), found.events.size());
      if (fresh && found.events.size() == max_events) {
        known.erase(entry);
        break;
      }
      if (fresh) {
        event.first = std::string(line->time);
        found.events.push_back(std::move(event));
      }
      KernelEvent& counted = found.events[entry->second];
      ++counted.count;
      counted.last = std::string(line->time);
      counted.line = printable(std::string(line->message), 300);
      break;
    }
  }
  return found;
}

namespace {

/// "GPU3 (0000:5d:00.0)", "mlx5_0 (0000:14:00.0)", or the address alone.
std::string device_name(const Node& node, const PciAddress& address) {
  const auto is_at = [&](int pci) {
    return pci >= 0 && node.pci[static_cast<std::size_t>(pci)].address == address;
  };
  for (const Gpu& gpu : node.gpus)
    if (is_at(gpu.pci))
      return gpu_name(node, gpu);
  for (const Nic& nic : node.nics)
    if (is_at(nic.pci))
      return nic.name + " (" + to_string(address) + ")";
  return to_string(address);
}

std::string subject_of(const KernelEvent& event, const Node& node) {
  std::vector<std::string> parts;
  if (event.address)
    parts.push_back(device_name(node, *event.address));
  if (!event.detail.empty())
    parts.push_back(event.detail);
  return join(parts, ", ");
}

std::string described(const KernelEvent& event, const Node& node) {
  const std::string subject = subject_of(event, node);
  return event.message->id + (subject.empty() ? "" : " on " + subject) +
         (event.count == 1 ? "" : ", " + std::to_string(event.count) + " times") +
         (event.cured == event.count ? ", before " + event.cure : "");
}

std::string times_of(const KernelEvent& event) {
  if (event.first.empty())
    return "";
  const std::string first = printable(event.first, 40), last = printable(event.last, 40);
  return event.count == 1 ? ", at " + first : ", first at " + first + ", last at " + last;
}

} // namespace

CheckResult judge_kernel_events(const KernelEvents& found, const std::string& origin,
                                const Node& node) {
  std::vector<const KernelEvent*> bad, harmless;
  for (const KernelEvent& event : found.events) {
    const bool counts = event.message->severity != Severity::info && event.count > event.cured &&
                        event.count - event.cured >= event.message->least;
    (counts ? bad : harmless).push_back(&event);
  }
  std::stable_sort(bad.begin(), bad.end(), [](const KernelEvent* left, const KernelEvent* right) {
    return left->message->severity > right->message->severity;
  });
  const std::string evidence = origin + ": " + counted(found.lines, "line");
  const auto names = [&](const std::vector<const KernelEvent*>& events) {
    std::vector<std::string> list;
    list.reserve(events.size());
    for (const KernelEvent* event : events)
      list.push_back(described(*event, node));
    return name_list(list);
  };
  if (bad.empty())
    return passed("the kernel log has no message of this kind that matters" +
                      (harmless.empty() ? std::string() : "; seen: " + names(harmless)),
                  evidence);
  const KernelEvent& worst = *bad.front();
  std::string reason = described(worst, node) + ": " + worst.message->meaning + " (" +
                       action_words(worst.message->action) + ")";
  if (bad.size() > 1)
    reason += "; also " + names({bad.begin() + 1, bad.end()});
  const std::string shown = evidence + times_of(worst) + ": " + worst.line;
  return worst.message->severity == Severity::error ? failed(reason, shown, worst.message->fix)
                                                    : warned(reason, shown, worst.message->fix);
}

namespace {

constexpr const char* kmsg_path = "/dev/kmsg";

/// Reads all messages in the kernel's buffer from /dev/kmsg.
std::optional<std::string> read_kmsg(int& error) {
  const FileDescriptor kmsg(::open(kmsg_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!kmsg) {
    error = errno;
    return std::nullopt;
  }
  std::string text;
  std::array<char, 16384> record; // a read returns one record, of 8 KiB at most
  while (text.size() < max_log_bytes) {
    const ssize_t count = ::read(kmsg.get(), record.data(), record.size());
    if (count > 0) {
      text.append(record.data(), static_cast<std::size_t>(count));
      continue;
    }
    if (count < 0 &&
        // EPIPE: the record was overwritten; the next one can be read
        (errno == EINTR || errno == EPIPE))
      continue;
    if (count < 0 && errno != EAGAIN) {
      error = errno;
      return std::nullopt;
    }
    break;
  }
  return text;
}

/// Reads the kernel's messages with the system call that dmesg uses.
std::optional<std::string> read_kernel_buffer() {
  constexpr int read_all = 3, size_of_buffer = 10; // syslog(2)
  const int size = ::klogctl(size_of_buffer, nullptr, 0);
  if (size <= 0)
    return std::nullopt;
  std::string text(std::min(static_cast<std::size_t>(size), max_log_bytes), '\0');
  const int count = ::klogctl(read_all, text.data(), static_cast<int>(text.size()));
  if (count <= 0)
    return std::nullopt;
  text.resize(static_cast<std::size_t>(count));
  return text;
}

} // namespace

KernelLogRead read_kernel_log(const Sysroot& sysroot) {
  KernelLogRead result;
  if (!sysroot.live()) {
    for (const char* path : {kmsg_path, "/var/log/kern.log", "/var/log/messages", "/var/log/dmesg"})
      if (auto text = sysroot.read(path, max_log_bytes)) {
        result.log = {path, std::move(*text)};
        return result;
      }
    result.problem = "the copied tree has no kernel log";
    result.evidence = absent("/var/log/kern.log");
    return result;
  }
  int error = 0;
  if (auto text = read_kmsg(error)) {
    result.log = {kmsg_path, std::move(*text)};
    return result;
  }
  if (auto text = read_kernel_buffer()) {
    result.log = {"the kernel's buffer", std::move(*text)};
    return result;
  }
  result.problem = "the kernel log cannot be read here";
  result.evidence = std::string(kmsg_path) + ": " + std::strerror(error);
  result.fix = "as root: dmesg > kernel.log; then shmemctl doctor --kernel-log kernel.log";
  return result;
}

} // namespace shmemctl::doctor
