// The kernel's log, and the messages in it that mean trouble.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/catalogue_file.h"
#include "src/base/finding.h"
#include "src/base/sysroot.h"
#include "src/instruments/doctor/doctor.h"
#include "src/model/topo/pci_address.h"

namespace shmemctl::doctor {

/// An entry of the catalogue (kernel_messages.conf describes its format).
struct KernelMessage {
  std::string id, check; ///< `check` is "xid" for kernel-log-xid
  Severity severity = Severity::warning;
  std::string action;    ///< "none", "restart-app", "reset-gpu", "reboot", "replace", "investigate"
  std::size_t least = 1; ///< minimum number of occurrences on one device
  LinePattern pattern;
  std::string meaning, fix, example;
  std::string source; ///< the text of the reference
};

/// Parses a catalogue. Throws Error (usage) with the line and what was expected there.
std::vector<KernelMessage> parse_kernel_messages(const std::string& text,
                                                 const std::string& subject);
/// The catalogue that is embedded in this binary.
std::string kernel_messages_text();
/// The messages of the catalogue, parsed once.
const std::vector<KernelMessage>& kernel_messages();

/// "restart the application" for "restart-app".
std::string action_words(const std::string& action);

/// One line of a log, without the text that precedes the message. `time` is written as in the log:
/// for seconds since boot "12.345678"; "" if the line has no time.
struct KernelLine {
  std::string_view time, message;
};
/// Parses a line of /dev/kmsg, of dmesg (with -T, -x, --time-format iso, or without times), of
/// journalctl -k, or of syslog. Empty if another program wrote the line.
std::optional<KernelLine> parse_kernel_line(std::string_view line);

/// The PCI address in the message that is nearest to the match, which starts at `begin`: the first
/// address behind `begin` or, if there is none, the last one before it.
std::optional<PciAddress> address_in(std::string_view message, std::size_t begin);

/// All log lines that match the same entry of the catalogue with the same address and detail.
struct KernelEvent {
  const KernelMessage* message = nullptr;
  std::optional<PciAddress> address;
  std::string detail; ///< the text that the pattern's {} matched
  std::size_t count = 0;
  /// How many of the lines precede an event that cures the problem, and that event: "the GPU was
  /// reset", "the driver was loaded again", "the last boot".
  std::size_t cured = 0;
  std::string cure;
  std::string first, last; ///< times
  std::string line;        ///< the last message
};
struct KernelEvents {
  std::size_t lines = 0;           ///< number of lines that the kernel wrote
  std::vector<KernelEvent> events; ///< in the order of their first appearance; 1000 at most
};
/// Finds the messages that belong to `check`. A boot cures all events before it, except those whose
/// hardware must be replaced. A load of the NVIDIA driver cures Xids and driver failures, except
/// these and those that need a reboot; a reset of a GPU cures the Xids of this GPU, with the same
/// exceptions. Safe for any bytes.
KernelEvents find_kernel_events(std::string_view log, const std::vector<KernelMessage>& messages,
                                const std::string& check);

/// The check's result for these events.
CheckResult judge_kernel_events(const KernelEvents& found, const std::string& origin,
                                const Node& node);

/// A kernel log, or the reason why it cannot be read: `problem` is "" if `log` is valid.
struct KernelLogRead {
  KernelLogText log;
  std::string problem, evidence, fix;
};
/// Reads the kernel log. On the live machine: /dev/kmsg, without waiting for further messages, or
/// the kernel's buffer. In a copied tree: its /dev/kmsg or a file in /var/log. Never throws.
KernelLogRead read_kernel_log(const Sysroot& sysroot);

} // namespace shmemctl::doctor
